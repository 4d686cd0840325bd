"""A server that syncs its vault: its writes are published soon, foreign ones received, and nothing else published."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.api import served
from ipfsmem.device.agent_notes import syncing_notes
from ipfsmem.errors import StorageError
from ipfsmem.http import serving
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from ipfsmem.operations import writing
from ipfsmem.wallet.root_keys import RootKeys
from tests.servers.threaded import serve
from tests.support.api_lab import NEW, Client, Lab, good, told
from tests.support.patience import PATIENCE
from tests.support.web_lab import PEER_TOKEN

ROOT = RootKeys.from_random(b"\x05" * 64, "default", 1)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A provider's folder, and the vault `m` published there, with its second device."""
    kept = tmp_path / "box"
    kept.mkdir()
    return kept


def made(tmp_path: Path, box: Path, mode: ModeName = "encrypted-ipfs") -> Memory:
    return Memory.load(
        "m",
        mode,
        provider=f"directory:{box}",
        unlock=ROOT,
        passphrase=False,
        home=tmp_path / "one",
        create=True,
    )


def lab(tmp_path: Path) -> Lab:
    return Lab(
        tmp_path / "one",
        open_memory=lambda: Memory.load("m", home=tmp_path / "one", passphrase=False),
        sync=True,
    )


async def other_device(tmp_path: Path, box: Path) -> Memory:
    return await Memory.recover(
        "m", provider=f"directory:{box}", unlock=ROOT, passphrase=False, home=tmp_path / "other"
    )


def test_server_publishes_writes_soon_and_pulls_those_of_others(
    tmp_path: Path, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "AFTER_WRITE", 0.05)
    monkeypatch.setattr(served, "SYNC_EVERY", 0.5)
    with made(tmp_path, box) as memory:
        asyncio.run(memory.sync())

    async def ask(client: Client) -> None:
        await good(client.put("/v1/memories/here", json={"body": "Written here."}, headers=NEW), 201)
        async with await other_device(tmp_path, box) as other, asyncio.timeout(PATIENCE):
            while "here" not in other:
                await asyncio.sleep(0.1)
                await other.sync()
            other.write("there", "Written there.")
            await other.sync()
            while True:
                async with client.get("/v1/memories/there") as got:
                    if got.status == 200:
                        break
                await asyncio.sleep(0.1)
        assert (await good(client.get("/v1/memories/there")))[0]["body"] == "Written there."

    lab(tmp_path).run(ask)
    assert syncing_notes(tmp_path / "one" / "m").worked


def test_write_just_before_server_end_is_published(
    tmp_path: Path, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "AFTER_WRITE", 600.0)
    monkeypatch.setattr(served, "SYNC_EVERY", 600.0)
    with made(tmp_path, box) as memory:
        asyncio.run(memory.sync())
    notes = tmp_path / "one" / "m"

    async def ask(client: Client) -> None:
        async with asyncio.timeout(PATIENCE):
            while not syncing_notes(notes).worked:  # the first sync publishes none of the following writes
                await asyncio.sleep(0.05)
        await good(client.put("/v1/memories/last", json={"body": "The last word."}, headers=NEW), 201)

    lab(tmp_path).run(ask)
    with asyncio.run(other_device(tmp_path, box)) as other:
        assert "last" in other


class _Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("stderr", [io.StringIO, _Closed], ids=["open", "closed"])
def test_writes_left_by_a_failed_sync_are_published_at_the_end(
    tmp_path: Path, box: Path, monkeypatch: pytest.MonkeyPatch, stderr: Callable[[], io.StringIO]
) -> None:
    printed = stderr()
    monkeypatch.setattr(served, "sys", SimpleNamespace(stderr=printed))
    monkeypatch.setattr(served, "AFTER_WRITE", 1.5)
    monkeypatch.setattr(served, "SYNC_EVERY", 600.0)
    with made(tmp_path, box) as memory:
        asyncio.run(memory.sync())
    notes, away = tmp_path / "one" / "m", tmp_path / "pulled"

    async def ask(client: Client) -> None:
        async with asyncio.timeout(PATIENCE):
            while not syncing_notes(notes).worked:
                await asyncio.sleep(0.05)
            box.rename(away)
            await good(client.put("/v1/memories/last", json={"body": "The last word."}, headers=NEW), 201)
            while not syncing_notes(notes).failure:
                await asyncio.sleep(0.05)
        away.rename(box)

    lab(tmp_path).run(ask)
    assert printed.getvalue().count("ipfsmem: m is not in sync: ") == (0 if stderr is _Closed else 1)
    with asyncio.run(other_device(tmp_path, box)) as other:
        assert "last" in other


@pytest.mark.parametrize("mode", ["ipfs", "local"])
def test_server_does_not_publish_publicly_without_consent(
    tmp_path: Path, box: Path, mode: ModeName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "AFTER_WRITE", 0.01)
    if mode == "ipfs":
        made(tmp_path, box, mode).close()
    else:
        Memory.load("m", "local", passphrase=False, home=tmp_path / "one", create=True).close()

    async def ask(client: Client) -> None:
        await good(client.put("/v1/memories/here", json={"body": "Written here."}, headers=NEW), 201)
        await asyncio.sleep(0.3)

    lab(tmp_path).run(ask)
    assert list(box.iterdir()) == [] and not syncing_notes(tmp_path / "one" / "m").worked


def test_silent_provider_does_not_prevent_the_server_exit(
    tmp_path: Path, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "LAST_SYNC", 0.2)
    monkeypatch.setattr(served, "AFTER_WRITE", 0.05)
    monkeypatch.setenv("PEER_TOKEN", PEER_TOKEN)
    silent, asked = threading.Event(), threading.Event()

    def peer() -> web.Application:
        app = serving.app(DirectoryProvider(box), token=PEER_TOKEN)

        @web.middleware
        async def until_silent(request: web.Request, handler: Any) -> web.StreamResponse:
            if silent.is_set():
                asked.set()
                await asyncio.Event().wait()
            answered: web.StreamResponse = await handler(request)
            return answered

        app.middlewares.append(until_silent)
        return app

    async def ask(_: Client) -> None:
        assert await asyncio.to_thread(asked.wait, PATIENCE)

    with serve(peer) as url:
        Memory.load(
            "m", "encrypted-ipfs", provider=f"peer:{url}", unlock=ROOT, passphrase=False, home=tmp_path / "one", create=True
        ).close()  # fmt: skip
        silent.set()
        lab(tmp_path).run(ask)


def test_writes_of_a_failed_call_are_published_soon(
    tmp_path: Path, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "AFTER_WRITE", 0.05)
    with made(tmp_path, box) as memory:
        asyncio.run(memory.sync())
    write = writing.write_text

    def fail_halfway(*given: Any, **named: Any) -> Any:
        write(*given, **named)
        raise StorageError("the disk is full")

    async def ask(client: Client) -> None:
        await good(client.put("/v1/memories/first", json={"body": "Whole."}, headers=NEW), 201)
        async with await other_device(tmp_path, box) as other, asyncio.timeout(PATIENCE):
            while "first" not in other:
                await asyncio.sleep(0.1)
                await other.sync()
            with monkeypatch.context() as patch:
                patch.setattr(writing, "write_text", fail_halfway)
                half = client.put("/v1/memories/here", json={"body": "Half."}, headers=NEW)
                await told(half, 507, "StorageError")
            while "here" not in other:
                await asyncio.sleep(0.1)
                await other.sync()

    lab(tmp_path).run(ask)
