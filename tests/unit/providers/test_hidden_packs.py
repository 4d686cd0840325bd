"""Packs that devices hide while they remove or replace them: nothing that comes late takes one that another device hid."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.packs.hidden import hidden_file, hidden_name, is_hidden_pack, leftovers

from ipfsmem.content.cid import raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderUnavailable
from tests.support.patience import PATIENCE
from tests.unit.providers.dav_lab import dav
from tests.unit.providers.sftp_lab import sftp

TREE = build_tree({"a.md": b"one", "sub/b.md": b"two" * 300})
PACK, LIST = f"{'a' * 64}.car", f"{'b' * 64}.pins"
SINGLE = f"{raw_cid(bytes(32))}.{'c' * 16}.json"
#: The random part of a hidden file's name.
TAG = "0123456789abcdef"


class Devices:
    """A folder, and the way in which devices use it."""

    def __init__(self, folder: Path, opened: Callable[[], Any]) -> None:
        self.folder, self._opened = folder, opened
        self._open: list[Any] = []

    def open(self) -> Any:
        """The provider of another device."""
        self._open.append(self._opened())
        return self._open[-1]

    def pack(self) -> Path:
        """The only pack, which was put two days ago."""
        [pack] = (self.folder / "packs").glob("*.car")
        os.utime(pack, (time.time() - 2 * 86_400,) * 2)
        return pack

    async def close(self) -> None:
        for one in self._open:
            await one.close()


@pytest.fixture(params=["directory", "sftp", "webdav"])
def devices(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Devices]:
    with ExitStack() as stack:
        if request.param == "directory":
            yield Devices(tmp_path, lambda: DirectoryProvider(tmp_path))
        else:
            at: Any = stack.enter_context((sftp if request.param == "sftp" else dav)(tmp_path))
            yield Devices(at.folder, at.open)


async def _take_away(provider: Any, name: str, is_needed: Callable[[], bool]) -> bool:
    """Remove a pack as a collection does."""
    collector = provider._collector(time.time_ns() // 1_000_000)
    result: bool = await provider._run(collector._take_away, name, is_needed)
    return result


def _sweep(provider: Any) -> Any:
    return provider._run(provider._packs.store.sweep, time.time() - 86_400)


def test_late_removal_of_a_lost_session_takes_no_pack_hidden_since(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        lost, sweeper, other = devices.open(), devices.open(), devices.open()
        await lost.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        asked: list[str] = []

        def unlink(name: str, **_: Any) -> None:
            asked.append(name)
            raise ProviderUnavailable("the connection ended")

        with monkeypatch.context() as patch:
            patch.setattr(lost._packs.store, "unlink", unlink)
            with pytest.raises(ProviderUnavailable):
                await _take_away(lost, pack.name, lambda: False)
        assert not pack.exists()
        await _sweep(sweeper)
        assert pack.exists()

        def is_needed() -> bool:
            assert not pack.exists()
            (pack.parent / asked[0]).unlink(missing_ok=True)  # the server does it only now
            return True

        assert not await _take_away(other, pack.name, is_needed)
        assert pack.exists() and await other.get_blocks([TREE.cid])
        await devices.close()

    asyncio.run(body())


def test_device_that_slept_takes_no_pack_hidden_since(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        sleeper, sweeper, other = devices.open(), devices.open(), devices.open()
        await sleeper.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        sleeps, wakes, removed = threading.Event(), threading.Event(), threading.Event()
        unlink = sleeper._packs.store.unlink

        def unlink_later(name: str, **how: Any) -> None:
            if not is_hidden_pack(name):
                unlink(name, **how)
                return
            sleeps.set()
            wakes.wait(PATIENCE)
            try:
                unlink(name, **how)
            finally:
                removed.set()

        monkeypatch.setattr(sleeper._packs.store, "unlink", unlink_later)
        removal = asyncio.create_task(_take_away(sleeper, pack.name, lambda: False))
        await asyncio.to_thread(sleeps.wait, PATIENCE)
        await _sweep(sweeper)

        def is_needed() -> bool:
            wakes.set()
            return removed.wait(PATIENCE)

        assert not await _take_away(other, pack.name, is_needed)
        assert not await removal
        assert pack.exists() and await other.get_blocks([TREE.cid])
        await devices.close()

    asyncio.run(body())


def test_sweep_restores_the_newest_of_hidden_packs_and_removes_the_others(devices: Devices) -> None:
    """An older one may be the damaged pack that it replaced. A pack hidden by an earlier version is restored, too."""

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        data, at = pack.read_bytes(), time.time() - 3 * 86_400
        pack.unlink()
        for number, hidden in enumerate(
            (f".new-{pack.name}", *sorted(hidden_name(pack.name) for _ in range(3)))
        ):
            pack.with_name(hidden).write_bytes(data if number == 2 else bytes(len(data)))
            os.utime(pack.with_name(hidden), (at + 60 * (number == 2),) * 2)
        former = pack.with_name(f"{'0' * 64}.car")
        former.with_name(f".new-{former.name}").write_bytes(b"former")
        os.utime(former.with_name(f".new-{former.name}"), (at, at))
        being_hidden = pack.with_name(hidden_name(f"{'1' * 64}.car"))
        being_hidden.write_bytes(b"put today")
        await _sweep(provider)
        assert pack.read_bytes() == data and former.read_bytes() == b"former"
        assert [path.name for path in pack.parent.glob(".*")] == [being_hidden.name]
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("own", [PACK, LIST, SINGLE])
def test_hidden_pack_or_pin_has_its_own_name_again(own: str) -> None:
    assert hidden_name(own) != hidden_name(own)
    for name in (hidden_name(own), f".new-{own}"):
        assert hidden_file(name) == own and is_hidden_pack(name) == (own == PACK)
        assert leftovers({name: 1}, 2) == [(name, own)] and leftovers({name: 2}, 2) == []


@pytest.mark.parametrize(
    "name", [".new-1-0011223344556677", f".hidden-{TAG}-{'a' * 64}.idx", f".hidden-{TAG}-k51.0011223344556677.ipns-record"]
)  # fmt: skip
def test_other_unfinished_or_hidden_file_is_removed(name: str) -> None:
    assert hidden_file(name) == "" and leftovers({name: 1}, 2) == [(name, "")]


@pytest.mark.parametrize(
    "name", [PACK, LIST, ".hidden-", f".hidden-{PACK}", f".hidden-00-{PACK}", f"x.hidden-{TAG}-{PACK}"]
)
def test_file_of_another_form_is_not_swept(name: str) -> None:
    assert hidden_file(name) == "" and leftovers({name: 1}, 2) == []
