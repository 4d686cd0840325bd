"""The webdav provider at Apache's mod_dav, whose folder another device uses on its disk."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import multiprocessing
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.packs import pins
from ipfsmem_providers.packs.store import Packs
from ipfsmem_providers.remote.provider import RemotePacks

from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.provider.contract import Provider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.apache import apache, apache_folder, give
from tests.support.device_lab import load
from tests.support.patience import PATIENCE
from tests.unit.providers.dav_lab import ACCOUNT, DavFolder

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x2d"))
_MODULES = (
    "mpm_event",
    "authn_core",
    "authz_core",
    "authn_file",
    "auth_basic",
    "authz_user",
    "alias",
    "dav",
    "dav_fs",
)


#: What pages of other origins need, as in docs/reference/providers.md.
_CORS = (
    'Header always set Access-Control-Allow-Origin "*"',
    'Header always set Access-Control-Allow-Methods "GET, PUT, DELETE, MKCOL, MOVE, PROPFIND, OPTIONS"',
    'Header always set Access-Control-Allow-Headers "Authorization, Content-Type, Depth, Destination, Overwrite, Range"',
)


def webdav_at_apache(folder: Path, stack: ExitStack, *, for_pages: bool = False) -> DavFolder:
    """A folder behind mod_dav and a password; `for_pages`: pages of all origins may use it."""
    folder = apache_folder(folder, stack)
    at = folder / "dav" / "my memory"
    at.mkdir(parents=True)
    (folder / "locks").mkdir()
    give(folder / "dav")
    give(folder / "locks")
    user, password = ACCOUNT["webdav_user"], ACCOUNT["webdav_password"]
    digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()
    (folder / "users").write_text(f"{user}:{{SHA}}{digest}\n")
    url = apache(
        folder, stack, (*_MODULES, "headers") if for_pages else _MODULES,
        [
            f"DavLockDB {folder}/locks/db", f"Alias /dav {folder}/dav", "<Location /dav>", "Dav On", "AuthType Basic", "AuthName dav",
            f"AuthUserFile {folder}/users", *(_CORS if for_pages else ()),
            "<LimitExcept OPTIONS>", "Require valid-user", "</LimitExcept>", "</Location>",
        ],
    )  # fmt: skip
    _until_answers(url)
    return DavFolder(f"{url}/dav/my%20memory", at)


def _until_answers(url: str) -> None:
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(f"{url}/dav/").close()
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < ends, f"{url} does not answer"
            time.sleep(0.05)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[DavFolder]:
    with ExitStack() as stack:
        yield webdav_at_apache(tmp_path, stack)


def test_devices_share_a_folder_on_a_disk_and_at_a_server(at: DavFolder, tmp_path: Path) -> None:
    a = load(tmp_path, "a", [at.open()], wallet=WALLET)
    a.write("note", "from a")
    asyncio.run(a.sync())
    b = load(tmp_path, "b", [at.mounted()], wallet=WALLET)
    assert b.read("note").file.body == "from a"  # type: ignore[union-attr]
    for turn in range(2):
        b.write("note", f"from b {turn}")
        b.write(f"b{turn}", "also from b")
        asyncio.run(b.sync())
        asyncio.run(a.sync())
        assert a.read("note").file.body == f"from b {turn}"  # type: ignore[union-attr]
        a.write("note", f"from a {turn}")
        asyncio.run(a.sync())
        asyncio.run(b.sync())
        assert b.read("note").file.body == f"from a {turn}"  # type: ignore[union-attr]
    assert a.status().root == b.status().root
    assert not asyncio.run(a.sync()).blocks_sent
    everywhere = {name for folder in at.folder.iterdir() for name in os.listdir(folder)}
    assert not [name for name in everywhere if name.startswith((".new-", ".hidden-"))]


def test_concurrent_writers_lose_nothing(at: DavFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the network and on the disk, while packs and pins are merged."""
    for kind in (RemotePacks, Packs):
        monkeypatch.setattr(kind, "max_packs", 4)
    monkeypatch.setattr(pins, "MAX_FILES", 6)

    async def write(number: int, provider: Provider) -> list[BuiltTree]:
        trees = [build_tree({"a.md": f"{number} {turn}".encode() * 99}) for turn in range(6)]
        for tree in trees:
            await _publish(provider, tree)
        await provider.close()
        return trees

    async def body() -> None:
        await _publish(at.open(), build_tree({"first": b""}))
        writers = [at.open(), at.open(), at.mounted()]
        done = await asyncio.gather(*(write(number, one) for number, one in enumerate(writers)))
        for provider in (at.open(), at.mounted()):
            for tree in (tree for trees in done for tree in trees):
                assert await _is_whole(provider, tree)
            await provider.close()

    asyncio.run(body())


def test_publisher_killed_at_any_request_loses_nothing(at: DavFolder) -> None:
    first = build_tree({"a.md": b"first"})
    asyncio.run(_publish(at.open(), first))
    trees, killed = [first], True
    while killed:
        step = len(trees)
        trees.append(_killed_tree(step))
        killed = _killed(at, step)

        async def body() -> None:
            provider = at.open()
            pinned = {pin.cid for pin in await provider.pins("n")}
            assert {tree.cid for tree in trees[:-1]} <= pinned
            for tree in trees:
                assert tree.cid not in pinned or await _is_whole(provider, tree)
            await _publish(provider, trees[-1])
            assert await _is_whole(provider, trees[-1])
            await provider.close()

        asyncio.run(body())
    assert len(trees) > 8


def _killed_tree(step: int) -> BuiltTree:
    return build_tree({"a.md": f"killed at {step}".encode(), "sub/b.md": f"also at {step}".encode()})


def _killed(at: DavFolder, step: int) -> bool:
    """Publish in a process that is killed before its request number `step`; return whether it reached it."""
    # A fork of this process could wait for a lock that one of its threads holds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    child = context.Process(target=_publish_until, args=(at, step))
    child.start()
    child.join(PATIENCE)
    if child.exitcode is None:
        child.kill()
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode != 0


def _publish_until(at: DavFolder, step: int) -> None:
    left = itertools.count(1)
    send = Http._send

    async def counted(self: Http, *args: Any) -> Any:
        if next(left) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return await send(self, *args)

    Http._send = counted  # type: ignore[method-assign]
    asyncio.run(_publish(at.open(), _killed_tree(step)))


async def _publish(provider: Provider, tree: BuiltTree) -> None:
    await provider.put_car(tree.cid, tree.blocks, name="n")
    await provider.pin(tree.cid, "n")


async def _is_whole(provider: Provider, tree: BuiltTree) -> bool:
    found = await provider.get_blocks([cid for cid, _ in tree.blocks])
    return found == dict(tree.blocks) and tree.cid in {pin.cid for pin in await provider.pins("n")}
