"""The HTTP API: processor time of one request at a vault of this size, including the client, because both
run in this process."""

from __future__ import annotations

import asyncio
import time

from bench.context import Context
from bench.process import VAULT_NAME

_TOKEN = "a token of enough length"
_AT_ONCE = 100
#: Budget of one read. A thousand per second on one core use half of it.
READ_BUDGET = 0.002


def api(ctx: Context) -> None:
    """Measure a read of a memory, a page of the list, and a query over one connection."""
    from ipfsmem.api.calls import Caller
    from ipfsmem.api.served import ServedMemory
    from ipfsmem.api.serving import Api
    from ipfsmem.api.who import AccessControl
    from ipfsmem.holding import Holder
    from ipfsmem.http.running import running
    from ipfsmem.memory import Memory

    home = ctx.fresh("api")
    with Memory.create(VAULT_NAME, "local", passphrase=False, home=home) as memory:
        memory.bundles.import_(ctx.folder.parent)
        key = memory.list()[ctx.size // 2].key
    holder = Holder(lambda: Memory.load(VAULT_NAME, home=home, passphrase=False))
    served = ServedMemory(VAULT_NAME, holder)
    doors = AccessControl({VAULT_NAME: served})
    doors.accept_token(_TOKEN, Caller("admin"))

    async def measure() -> dict[str, float]:
        async with running(Api([served], doors).app()) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))

            async def ask(path: str) -> None:
                head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n"
                writer.write(head.encode())
                answer = (await reader.readuntil(b"\r\n\r\n")).lower()
                if not answer.startswith(b"http/1.1 200"):
                    raise RuntimeError(f"{path}: {answer.decode()}")
                await reader.readexactly(int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]))

            found = {}
            for path in (f"/v1/memories/{key}", f"/v1/memories?limit=100&cursor={key}"):
                await ask(path)
                least = float("inf")
                for _ in range(ctx.runs(9)):
                    began = time.process_time()
                    for _ in range(_AT_ONCE):
                        await ask(path)
                    least = min(least, (time.process_time() - began) / _AT_ONCE)
                found[path] = least
            writer.close()
            return found

    try:
        read, page = asyncio.run(measure()).values()
    finally:
        served.close()
    note = "processor time, minimum of several runs, including the client's"
    for name, seconds, budget in (
        ("read over HTTP", read, READ_BUDGET),
        ("a page of 100 over HTTP", page, None),
    ):
        ctx.add(
            name,
            seconds,
            runs=ctx.runs(9),
            budget_seconds=budget,
            note=f"{1 / seconds:,.0f} a second on one core; {note}",
        )
