"""How long a healthy provider waits for a write while the provider next to it is faulty; both are HTTP peers
on this machine.

Measured at the healthy one: from the start of the sync until it has the name of the new version."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.context import Context
from bench.process import PASSPHRASE, VAULT_NAME, unlock

if TYPE_CHECKING:
    from aiohttp import web

    from ipfsmem.provider.contract import Provider
    from tests.servers.faults import Faults

_TOKEN = "a token of the bench"
#: Seconds of each answer of a slow provider.
_SLOW = 1.0
_ALONE = "alone"


def neighbours(ctx: Context) -> None:
    """Add one row per neighbour: the median, with the slowest sync in the note."""
    alone = 0.0
    for mood in (_ALONE, "healthy", *_MOODS):
        times = _measure(ctx, mood, ctx.runs(5))
        held, whole = [one[0] for one in times], [one[1] for one in times]
        alone = alone or median(held)
        note = (
            f"{median(held) - alone:+.2f} s; the whole sync {median(whole):.1f} s, at most {max(whole):.1f}"
        )
        name = "write, alone" if mood == _ALONE else f"write, other provider: {mood}"
        ctx.add(name, median(held), runs=len(times), note=note)


def _measure(ctx: Context, mood: str, runs: int) -> list[tuple[float, float]]:
    """Return the seconds until the healthy provider had the write, and of the sync, for each of `runs`
    syncs."""
    from ipfsmem.device.replica import Environment
    from ipfsmem.memory import Memory
    from ipfsmem.vault.home import Home

    at = ctx.fresh("neighbours")
    now = [int(time.time() * 1000)]
    named: list[float] = []
    with _peer(at / "one", named) as (url, _), _peer(at / "two", []) as (other, faults):

        def open_memory() -> Memory:
            company = mood != _ALONE
            # The faulty one first: the order makes no difference.
            urls = [other, url] if company else [url]
            home = Home(folder=at / "home", label="bench", environment=Environment(now=lambda: now[0]))
            providers = [_open(one, company) for one in urls]
            return Memory.load(
                VAULT_NAME, "encrypted-ipfs", provider=providers, unlock=unlock(), passphrase=PASSPHRASE,
                home=home, create=True,
            )  # fmt: skip

        with open_memory() as memory:
            for name, data in sorted(ctx.files.items()):
                memory.write(Path(name).stem, data.decode())
            asyncio.run(memory.sync())
        found: list[tuple[float, float]] = []
        for number in range(runs):
            now[0] += 7_200_000  # no pause of the last sync applies
            with open_memory() as memory:
                memory.write("changed", f"text {number}")
                faults.clear()
                if (fall_ill := _MOODS.get(mood)) is not None:
                    fall_ill(faults)
                named.clear()
                began = time.perf_counter()
                report = asyncio.run(memory.sync())
                whole = time.perf_counter() - began
                assert report.published and named, f"{mood}: the healthy provider did not get the write"
                found.append((named[0] - began, whole))
    return found


def _open(url: str, company: bool) -> Provider:
    from ipfsmem_providers.peer import PeerProvider

    return PeerProvider(url, {"peer_token": _TOKEN, "company": company})


@contextlib.contextmanager
def _peer(folder: Path, named: list[float]) -> Iterator[tuple[str, Faults]]:
    """A peer over a folder; `named` gets the times at which it received a name."""
    from aiohttp import web
    from ipfsmem_providers.directory import DirectoryProvider

    from ipfsmem.http import blocks
    from tests.servers.faults import Faults
    from tests.servers.threaded import serve

    faults, store = Faults(), DirectoryProvider(folder, {"create": True})

    @web.middleware
    async def note(request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
        answer: web.StreamResponse = await handler(request)
        if request.method == "PUT" and "ipns" in request.path and answer.status < 300:
            named.append(time.perf_counter())
        return answer

    def make() -> web.Application:
        app = blocks.app(store, token=_TOKEN)
        app.middlewares.insert(0, faults.middleware)
        app.middlewares.insert(0, note)
        return app

    with serve(make) as url:
        yield url, faults


def _silent(faults: Faults) -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError("unreachable")

    faults.add("*", ".*", never, times=-1)


def _slow(faults: Faults) -> None:
    faults.delay = _SLOW


def _limited(faults: Faults) -> None:
    faults.answer("*", ".*", 429, times=-1, **{"Retry-After": "60"})


def _full(faults: Faults) -> None:
    faults.answer("POST", ".*", 507, '{"error":{"reason":"FULL","details":"no space left"}}', times=-1)
    faults.answer("PUT", ".*", 507, '{"error":{"reason":"FULL","details":"no space left"}}', times=-1)


def _lying(faults: Faults) -> None:
    """Answers everything with success and wrong contents."""
    faults.answer("*", ".*", 200, '{"cids":[],"pins":[],"root":"bafkqaaa"}', times=-1)


_MOODS: dict[str, Callable[[Faults], None]] = {
    "silent": _silent,
    "slow": _slow,
    "429": _limited,
    "full": _full,
    "lying": _lying,
}
