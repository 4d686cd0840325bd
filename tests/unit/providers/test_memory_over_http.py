"""A vault at a peer: created here, restored there with the wallet alone, merged, with outages of the peer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.errors import ConfigError, ProviderUnavailable
from ipfsmem.http import blocks as serving
from ipfsmem.http.running import running
from ipfsmem.memory import Memory
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.clockwork import Clockwork
from tests.servers.faults import Faults
from tests.servers.threaded import serve

WALLET = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
TOKEN = "a token for tests"


def peer_at(url: str) -> PeerProvider:
    return PeerProvider(url, {"peer_token": TOKEN, "timing": Clockwork().timing})


def test_two_devices_sync_through_a_peer(tmp_path: Path) -> None:
    unlock = Unlock(RawKeySigner(WALLET))
    store = tmp_path / "store"
    store.mkdir()

    def device(name: str, url: str) -> Memory:
        open_ = Memory.create if name == "a" else Memory.load
        return open_(
            "alex",
            "encrypted-ipfs",
            provider=peer_at(url),
            unlock=unlock,
            home=tmp_path / name,
            passphrase=False,
        )

    with serve(lambda: serving.app(DirectoryProvider(store), token=TOKEN)) as url:
        one = device("a", url)
        one.write("tone", "wants direct critique", name="Tone", type="feedback")
        asyncio.run(one.sync())
        other = device("b", url)
        assert other.files() == one.files() and "tone" in str(list(other.files()))
        one.write("tone", "wants direct critique\n\nAnd tea", name="Tone", type="feedback")
        other.write("role", "engineer", name="Role", type="user")
        for memory in (one, other, one, other):
            asyncio.run(memory.sync())
        assert one.files() == other.files() and len(one.files()) >= 2
        assert one.status().root == other.status().root
    # The peer is gone: writing continues, and nothing is lost when it returns elsewhere.
    one.write("later", "said while the peer was away", name="Later", type="user")
    with pytest.raises(ProviderUnavailable):
        asyncio.run(one.sync())
    assert b"wants direct" not in b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    one.close()
    other.close()
    with serve(lambda: serving.app(DirectoryProvider(store), token=TOKEN)) as url:
        again, there = device_again(tmp_path, "a", url), device_again(tmp_path, "b", url)
        asyncio.run(again.sync())
        asyncio.run(there.sync())
        assert "later" in str(list(there.files())) and there.files() == again.files()
        again.close()
        there.close()


@pytest.mark.parametrize(
    "answer",
    [(200, "<html>Log in to this network</html>", "text/html"), (404, "404: Not Found", "text/plain")],
)
def test_foreign_answer_for_a_peer_name_is_an_outage(tmp_path: Path, answer: tuple[int, str, str]) -> None:
    store = tmp_path / "store"
    store.mkdir()
    faults = Faults()
    code, text, kind = answer

    def app() -> web.Application:
        made = serving.app(DirectoryProvider(store), token=TOKEN)
        made.middlewares.insert(0, faults.middleware)
        return made

    with serve(app) as url:
        one = Memory.create(
            "alex",
            "encrypted-ipfs",
            provider=peer_at(url),
            unlock=Unlock(RawKeySigner(WALLET)),
            home=tmp_path / "a",
            passphrase=False,
        )
        one.write("tone", "wants direct critique", name="Tone", type="feedback")
        asyncio.run(one.sync())
        other = device_again(tmp_path, "b", url)
        asyncio.run(one.sync())
        one.write("later", "newer", name="Later", type="user")
        asyncio.run(one.sync())
        faults.answer("GET", "/ipns/", code, text, times=-1, kind=kind)
        with pytest.raises(ProviderUnavailable, match="not a name record"):
            asyncio.run(other.sync())
        # Where another provider knows names too, the sync continues, reports the failure, and does not exit
        # with 0.
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        report = asyncio.run(other.sync(provider=[peer_at(url), DirectoryProvider(elsewhere)]))
        assert report.exit_code == 7 and any(name.startswith("peer:") for name in report.not_placed)
        assert "not a name record" in " ".join(notice.text for notice in report.notices)
        faults.clear()
        assert asyncio.run(other.sync()).exit_code == 0
        assert "later" in str(list(other.files()))
        one.close()
        other.close()


def device_again(tmp_path: Path, name: str, url: str) -> Memory:
    unlock = Unlock(RawKeySigner(WALLET))
    return Memory.load(
        "alex", "encrypted-ipfs", provider=peer_at(url), unlock=unlock, home=tmp_path / name, passphrase=False
    )


def test_default_peer_serves_this_machine_only(tmp_path: Path) -> None:
    async def body() -> None:
        app = serving.app(DirectoryProvider(tmp_path))
        with pytest.raises(ConfigError, match="other machines"):
            async with running(app, "0.0.0.0"):
                pass
        async with running(serving.app(DirectoryProvider(tmp_path))) as url:
            assert url.startswith("http://127.0.0.1:")
            peer = PeerProvider(url)
            assert await peer.pins("n") == []
            await peer.close()
            port = int(url.rpartition(":")[2])
            with pytest.raises(ConfigError, match="cannot serve"):
                async with running(serving.app(DirectoryProvider(tmp_path)), port=port):
                    pass

    asyncio.run(body())
