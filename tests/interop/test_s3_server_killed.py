"""A real S3 server behind the Filebase provider, killed in use: nothing is half listed or lost, and the
next run continues."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from ipfsmem_providers.filebase.signing import RequestSigner
from ipfsmem_providers.http.policy import ONCE

from ipfsmem.errors import ProviderUnavailable
from ipfsmem.memory import Memory
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop import trees
from tests.interop.counterparts import after
from tests.interop.seaweed import SeaweedFS, seaweed
from tests.servers import filebase
from tests.unit.providers.services_lab import Account, account

pytestmark = pytest.mark.interop
WALLET = Unlock(RawKeySigner(b"\x2a" * 32))
#: Large enough to be interrupted even if half is compressed; in short lines, which the secret scan skips.
MANY = {f"large{n}": trees.chacha20(f"s3 killed {n}", 250_000).hex("\n", 4) for n in range(60)}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFS]:
    with seaweed(tmp_path_factory.mktemp("seaweed"), filebase.KEY, filebase.SECRET) as server:
        asyncio.run(server.make_bucket(filebase.BUCKET))
        yield server


@pytest.fixture
def at(s3: SeaweedFS) -> Iterator[Account]:
    """The service in front of that server. Its gateway reads through the server too, and ends with it."""
    with account("filebase-s3", s3.url) as made:
        made.settings["retry"] = ONCE

        async def through(request: web.Request) -> web.StreamResponse:
            place = next((p for p, cid in made.server.cids.items() if cid == request.match_info["tail"]), "")
            whole = request.query.get("format") == "car" and bool(place)
            method, url = ("GET", f"{s3.url}/{place}") if whole else ("HEAD", f"{s3.url}/{filebase.BUCKET}")
            headers = RequestSigner(filebase.KEY, filebase.SECRET).headers(method, url)
            async with aiohttp.ClientSession() as session:
                try:
                    async with session.request(method, url, headers=headers) as found:
                        if not whole:
                            answer: web.StreamResponse = await made.server.gateway(request)
                            return answer
                        assert found.status == 200
                        car = web.StreamResponse(headers={"Content-Type": "application/vnd.ipld.car"})
                        await car.prepare(request)
                        async for piece in found.content.iter_any():
                            # A system may buffer all of it, so that the server would have sent everything.
                            await asyncio.sleep(0.002)
                            if not s3.runs:
                                raise aiohttp.ClientConnectionError
                            await car.write(piece)
                        await car.write_eof()
                        return car
                except aiohttp.ClientError:
                    assert request.transport is not None
                    request.transport.abort()
                    raise

        made.server.faults.add("GET", "^/ipfs/", through, times=-1)
        yield made


def again(s3: SeaweedFS) -> None:
    s3.start()
    asyncio.run(s3.make_bucket(filebase.BUCKET))


def device(home: Path, at: Account, **settings: object) -> Memory:
    return Memory.load("m", "encrypted-ipfs", provider=at.open(**settings), unlock=WALLET, passphrase=False, home=home, create=True)  # fmt: skip


def sync(memory: Memory) -> None:
    asyncio.run(memory.sync())


def listed(memory: Memory, at: Account) -> list[str]:
    from ipfsmem.sync.names import pin_name

    assert memory.replica.config.vault is not None
    name = pin_name(bytes.fromhex(memory.replica.config.vault.anchor))
    return sorted(str(pin.cid) for pin in asyncio.run(at.open().pins(name)))


def test_server_killed_during_an_upload_or_a_read_loses_nothing(
    s3: SeaweedFS, at: Account, tmp_path: Path
) -> None:
    a = device(tmp_path / "a", at)
    a.write("small", "text")
    sync(a)
    b = device(tmp_path / "b", at)
    assert b.files() == a.files()
    before, root = listed(a, at), a.status().root
    # -- during an upload ---------------------------------------------------------------------------------------------
    for key, text in MANY.items():
        a.write(key, text)
    kept = a.files()
    a.close()
    a = device(tmp_path / "a", at, progress=after("sent", 5_000_000, s3.kill))
    with pytest.raises(ProviderUnavailable):
        sync(a)
    assert a.files() == kept and a.status().unpublished and a.status().root == root
    again(s3)
    assert listed(a, at) == before  # no part of the upload is stored
    sync(b)
    assert set(b.files()) == set(kept) - set(MANY)
    sync(a)
    assert not a.status().unpublished and a.status().root != root
    assert len(listed(a, at)) == len(before) + 1
    # -- during a tree: a device with unsent changes, and a new one ---------------------------------------------------
    b.write("mine", "written meanwhile")
    own = b.files()
    b.close()
    b = device(tmp_path / "b", at, progress=after("received", 5_000_000, s3.kill))
    with pytest.raises(ProviderUnavailable):
        sync(b)
    assert b.status().unpublished and own["mine"] == b.files()["mine"]
    again(s3)
    with pytest.raises(ProviderUnavailable):
        device(tmp_path / "c", at, progress=after("received", 5_000_000, s3.kill))
    assert not list((tmp_path / "c").iterdir())
    again(s3)
    for memory in (b, a, b):
        sync(memory)
    c = device(tmp_path / "c", at)
    assert a.files() == b.files() == c.files() and set(a.files()) == {*kept, "mine"}
    assert a.files()["mine"] == own["mine"]
    for memory in (a, b, c):
        memory.close()
