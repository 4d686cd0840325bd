"""A device's process for the network bench: makes a memory, publishes, changes, fetches; or serves blocks as a peer.

    python -m bench.network_device '{"what": "first", "home": ..., "providers": [["kubo:http://...", {}]], ...}'

It prints one line of JSON: requests and bytes on the wire. The bench measures the time of the process from outside.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.process import PASSPHRASE, VAULT_NAME, unlock
from bench.wire import Wire

if TYPE_CHECKING:
    from ipfsmem.content.cid import CID
    from ipfsmem.memory import Memory
    from ipfsmem.provider.contract import Block, Capabilities, Pin, Provider

CHANGES = 3


class GoPeer:
    """The Go peer of the tests as a provider: its gateway reads, its routing stores names, and it accepts
    CARs.

    It keeps everything in memory and lists nothing."""

    def __init__(self, url: str) -> None:
        from ipfsmem_providers.gateways import Gateways
        from ipfsmem_providers.http.client import Http
        from ipfsmem_providers.routing import RoutingProvider

        from ipfsmem.provider.contract import Capabilities

        self.name = "go"
        self.capabilities: Capabilities = Capabilities(blocks=True, dag=True, names=True)
        self._url = url
        self._http = Http("go", trusted=[url])
        self._reader = Gateways(url)
        self._names = RoutingProvider(url)

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Send a CAR."""
        from ipfsmem_providers.http.body import SpooledCar

        with await SpooledCar.write(root, blocks) as car:
            await self._http.request("POST", f"{self._url}/car", body=car)
        return root

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Not used."""
        return set()

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Through the gateway."""
        return await self._reader.get_blocks(cids)

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Through the gateway, as one CAR."""
        return self._reader.get_dag(root)

    async def pin(self, root: CID, name: str) -> Pin:
        """Not offered."""
        raise NotImplementedError

    async def pins(self, name: str) -> list[Pin]:
        """Not offered."""
        raise NotImplementedError

    async def unpin(self, pin: Pin) -> None:
        """Not offered."""
        raise NotImplementedError

    async def put_name(self, name: str, record: bytes) -> None:
        """By delegated routing."""
        await self._names.put_name(name, record)

    async def get_name(self, name: str) -> bytes | None:
        """By delegated routing."""
        return await self._names.get_name(name)

    async def close(self) -> None:
        """Close the connections."""
        for one in (self._reader, self._names, self._http):
            await one.close()


def _open(spec: str, settings: dict[str, Any], wire: Wire) -> Provider:
    from ipfsmem.provider.contract import open_provider

    if "bucket_endpoint" in settings:  # it does not use aiohttp
        settings = {**settings, "bucket_endpoint": wire.relay(settings["bucket_endpoint"])}
    return GoPeer(spec.removeprefix("go:")) if spec.startswith("go:") else open_provider(spec, settings)


async def _sync(memory: Memory, providers: list[Provider], *, publishes: bool = True) -> None:
    try:
        report = await memory.sync()
    finally:
        for provider in providers:
            await provider.close()
    problems = [notice for notice in report.notices if "unavailable" in notice.kind or "fail" in notice.kind]
    if problems or report.published != publishes:
        raise SystemExit(f"{'not ' if publishes else ''}published: {report}")


def _work(job: dict[str, Any], wire: Wire) -> dict[str, Any]:
    from ipfsmem.memory import Memory

    def providers() -> list[Provider]:
        return [_open(spec, settings, wire) for spec, settings in job["providers"]]

    home, what, mode = Path(job["home"]), job["what"], job["mode"]
    own: Any = {"passphrase": PASSPHRASE, "home": home}
    if what == "init":
        Memory.create(
            VAULT_NAME,
            mode,
            provider=providers(),
            unlock=unlock(),
            public_ok=mode == "ipfs",
            **own,
        ).close()
    elif what == "fetch":
        with Memory.load(VAULT_NAME, mode, provider=providers(), unlock=unlock(), **own) as memory:
            found = len(memory.list())
            if found != job["count"]:
                raise SystemExit(f"{found} memories instead of {job['count']}")
    elif what in ("first", "import"):
        chosen = providers()
        with Memory.load(VAULT_NAME, provider=chosen, **own) as memory:
            memory.bundles.import_(Path(job["folder"]))
            if what == "first":
                asyncio.run(_sync(memory, chosen))
    elif what in ("idle", "one", "publish"):
        chosen = providers()
        with Memory.load(VAULT_NAME, provider=chosen, **own) as memory:
            if what == "one":
                path = sorted(Path(job["folder"]).iterdir())[5]
                memory.write_text(path.stem, path.read_bytes() + b"\nEdited once more.\n")
            asyncio.run(_sync(memory, chosen, publishes=what != "idle"))
    elif what == "tree":
        _write_tree(own, Path(job["out"]))
    elif what == "change":
        return _changes(job, wire, own, providers)
    return wire.numbers()


def _write_tree(own: Any, out: Path) -> None:
    """Write the files of the published root, as any reader of the network would find them."""
    from ipfsmem.content.cid import parse_cid
    from ipfsmem.content.fetch import drive
    from ipfsmem.content.reader import Reader
    from ipfsmem.device.bulk import read_blocks
    from ipfsmem.memory import Memory

    def get(cids: list[CID]) -> dict[CID, bytes]:
        found = read_blocks(db, [cid.digest for cid in cids])
        return {cid: found[cid.digest] for cid in cids if cid.digest in found}

    with Memory.load(VAULT_NAME, **own) as memory:
        db = memory.replica.db
        root = (db.get_meta("root") or b"").decode()
        files = drive(Reader().read_tree(parse_cid(root)), get)
    for name, data in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _changes(job: dict[str, Any], wire: Wire, own: Any, providers: Any) -> dict[str, Any]:
    """Return the medians of a few changes, each with newly opened providers."""
    from ipfsmem.memory import Memory

    keys = sorted(path.stem for path in Path(job["folder"]).iterdir())
    rows = []
    for turn in range(CHANGES):
        chosen = providers()
        with Memory.load(VAULT_NAME, provider=chosen, **own) as memory:
            key = keys[(turn * 41 + 5) % len(keys)]
            text = (Path(job["folder"]) / f"{key}.md").read_bytes()
            memory.write_text(key, text + b"\nEdited for the %dth time.\n" % turn)
            wire.reset()
            began = time.perf_counter()
            asyncio.run(_sync(memory, chosen))
            rows.append({"seconds": time.perf_counter() - began, **wire.numbers()})
    return {name: median(row[name] for row in rows) for name in rows[0]}


async def _serve(folder: Path, token: str) -> None:
    from ipfsmem_providers.directory import DirectoryProvider

    from ipfsmem.http.blocks import app
    from ipfsmem.http.running import running

    async with running(app(DirectoryProvider(str(folder)), token=token)) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


def main(text: str) -> None:
    """Run one job."""
    job = json.loads(text)
    if job["what"] == "serve":
        asyncio.run(_serve(Path(job["home"]), job["token"]))
        return
    wire = Wire()
    wire.watch()
    print(json.dumps(_work(job, wire)))


if __name__ == "__main__":
    main(sys.argv[1])
