"""Packs that devices hide while removing or replacing them: a late request removes no pack that another
device hid."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.packs import hidden as hidden_files
from ipfsmem_providers.packs.hidden import SWEPT_MAX, hidden_file, hidden_name, is_hidden_pack, leftovers
from ipfsmem_providers.packs.index import scan
from ipfsmem_providers.packs.store import Packs

from ipfsmem.content.cid import raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.provider.contract import Pin
from tests.support.patience import PATIENCE
from tests.unit.providers.dav_lab import dav
from tests.unit.providers.sftp_lab import sftp

TREE = build_tree({"a.md": b"one", "sub/b.md": b"two" * 300})
PACK, LIST = f"{'a' * 64}.car", f"{'b' * 64}.pins"
SINGLE = f"{raw_cid(bytes(32))}.{'c' * 16}.json"
#: The random part of a hidden file's name.
TAG = "0123456789abcdef"


class Devices:
    """A folder, and how devices use it."""

    def __init__(self, folder: Path, opened: Callable[[], Any]) -> None:
        self.folder, self._opened = folder, opened
        self._open: list[Any] = []

    def open(self) -> Any:
        """The provider of another device."""
        self._open.append(self._opened())
        return self._open[-1]

    def pack(self) -> Path:
        """The only pack, stored two days ago."""
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


async def _sweep_packs(provider: Any) -> None:
    """Sweep as a collection does, whatever the date of the newest pack."""
    await provider._run(Packs.sweep, provider._packs, time.time() - 86_400)


def test_late_removal_of_a_lost_session_removes_no_pack_hidden_since(
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
            (pack.parent / asked[0]).unlink(missing_ok=True)  # the server carries it out only now
            return True

        assert not await _take_away(other, pack.name, is_needed)
        assert pack.exists() and await other.get_blocks([TREE.cid])
        await devices.close()

    asyncio.run(body())


def test_suspended_device_removes_no_pack_hidden_since(
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
        former = pack.with_name(f"{hashlib.sha256(b'former').hexdigest()}.car")
        former.with_name(f".new-{former.name}").write_bytes(b"former")
        os.utime(former.with_name(f".new-{former.name}"), (at, at))
        being_hidden = pack.with_name(hidden_name(f"{'1' * 64}.car"))
        being_hidden.write_bytes(b"put today")
        await _sweep(provider)
        assert pack.read_bytes() == data and former.read_bytes() == b"former"
        assert [path.name for path in pack.parent.glob(".*")] == [being_hidden.name]
        await devices.close()

    asyncio.run(body())


def _hide(pack: Path, data: bytes, days: float = 3) -> Path:
    """Leave a hidden pack that was last changed days ago."""
    hidden = pack.with_name(hidden_name(pack.name))
    hidden.write_bytes(data)
    os.utime(hidden, (time.time() - days * 86_400,) * 2)
    return hidden


@pytest.mark.parametrize("part", [0, 50, None], ids=["empty", "truncated", "damaged"])
def test_sweep_keeps_the_only_sound_copy_of_a_pack(devices: Devices, part: int | None) -> None:
    """A server that stored a part of the pack that was put again leaves the sound one hidden."""

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        _hide(pack, sound[:-1], 2)  # newer, but equally damaged
        _hide(pack, sound)
        pack.write_bytes(bytes(len(sound)) if part is None else sound[:part])
        await _sweep(provider)
        assert pack.read_bytes() == sound
        await _sweep(provider)
        assert pack.read_bytes() == sound
        reader = devices.open()
        assert len(await reader.get_blocks([cid for cid, _ in TREE.blocks])) == len(TREE.blocks)
        await devices.close()

    asyncio.run(body())


def test_sweep_restores_the_sound_one_of_hidden_packs(devices: Devices) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        pack.unlink()
        _hide(pack, sound[:50], 2)
        _hide(pack, sound, 4)
        _hide(pack, b"", 3)
        await _sweep(provider)
        assert pack.read_bytes() == sound and not list(pack.parent.glob(".*"))
        await devices.close()

    asyncio.run(body())


MANY = build_tree({f"{number}.md": bytes([number]) * 900 for number in range(10)})


async def _readable(provider: Any) -> set[bytes]:
    return {cid.digest for cid in await provider.get_blocks([cid for cid, _ in MANY.blocks])}


def _rotten(pack: bytes, *blocks: int) -> bytes:
    """Return a pack with one wrong bit in each of these blocks."""
    data = bytearray(pack)
    sections = list(scan(io.BytesIO(pack)))
    for block in blocks:
        data[sections[block].offset + 5] ^= 1
    return bytes(data)


def _digests(pack: bytes, *without: int) -> set[bytes]:
    """The digests of the blocks of a pack."""
    return {one.digest for number, one in enumerate(scan(io.BytesIO(pack))) if number not in without}


@pytest.mark.parametrize("is_whole", [True, False])
def test_damaged_hidden_pack_gets_its_free_name(devices: Devices, is_whole: bool) -> None:
    """The uploading device lost its connection after it had hidden the pack."""

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(MANY.cid, MANY.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        most = _rotten(sound, 8) if is_whole else sound[:-5]
        pack.unlink()
        _hide(pack, most)
        _hide(pack, sound[: len(sound) // 2], 2)
        for _ in range(2):
            sweeper = devices.open()
            await _sweep_packs(sweeper)
            lost = 8 if is_whole else len(_digests(sound)) - 1
            assert pack.read_bytes() == most
            assert await _readable(devices.open()) == _digests(sound, lost)
        await devices.close()

    asyncio.run(body())


def test_whole_unfinished_pack_takes_the_name_of_a_damaged_hidden_one(devices: Devices) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(MANY.cid, MANY.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        pack.unlink()
        _hide(pack, _rotten(sound, 4))
        for name, data in ((".new-1-00", sound), (".new-2-00", sound[:-1])):
            _hide(pack, data, 2).rename(pack.with_name(name))
        for _ in range(2):
            await _sweep_packs(devices.open())
        assert pack.read_bytes() == sound and not list(pack.parent.glob(".*"))
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("standing", [0, 200])
def test_sweep_leaves_the_blocks_of_two_damaged_packs_readable(devices: Devices, standing: int) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(MANY.cid, MANY.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        most = sound[:-1]
        for own, other in ((most[:standing], most), (most, most[:standing])):
            pack.write_bytes(own)
            os.utime(pack, (time.time() - 2 * 86_400,) * 2)
            hidden = _hide(pack, other)
            for _ in range(2):
                await _sweep_packs(devices.open())
                assert pack.read_bytes() == own and hidden.exists()
                assert await _readable(devices.open()) >= _digests(sound, len(_digests(sound)) - 1)
            hidden.unlink()
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("folder", ["packs", "pins"])
def test_sweep_restores_no_damaged_hidden_file(devices: Devices, folder: str) -> None:
    """The upload was cut off; a sync program may deliver the complete file later."""

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.pin(TREE.cid, "n")
        pack = devices.pack()
        if folder == "pins":
            [pack] = (devices.folder / "pins").iterdir()
        sound = pack.read_bytes()
        pack.unlink()
        hidden = _hide(pack, sound[:50])
        for _ in range(2):
            await _sweep(provider)
            assert not pack.exists() and hidden.read_bytes() == sound[:50]
        pack.write_bytes(sound)
        await _sweep(provider)
        assert pack.read_bytes() == sound and not hidden.exists()
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize(
    "stand_in", [".{}.icloud", ".syncthing.{}.tmp", "{}"], ids=["icloud", "syncthing", "folder"]
)
def test_sweep_restores_no_file_over_a_placeholder(tmp_path: Path, stand_in: str) -> None:
    async def body() -> None:
        provider = DirectoryProvider(tmp_path)
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        [pack] = (tmp_path / "packs").glob("*.car")
        hidden = _hide(pack, pack.read_bytes())
        pack.unlink()
        stands = pack.with_name(stand_in.format(pack.name))
        stands.mkdir() if stands == pack else stands.write_bytes(b"")
        conflict = pack.with_name(f"{pack.stem}.sync-conflict-20261130-120000-ABCDEFG.car")
        conflict.write_bytes(b"")
        await _sweep(provider)
        assert hidden.exists() and not pack.is_file()
        stands.rmdir() if stands == pack else stands.unlink()
        await _sweep(provider)
        assert pack.is_file() and not hidden.exists()

    asyncio.run(body())


def test_sweep_saves_blocks_of_a_hidden_pack_missing_in_the_other(devices: Devices) -> None:
    """The hidden one has the most sound blocks, and lacks one that the other has."""

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(MANY.cid, MANY.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        sections = list(scan(io.BytesIO(sound)))
        hidden = _hide(pack, _rotten(sound, 0, 9))
        part = sound[: sections[len(sections) // 2].offset]
        pack.write_bytes(part)
        os.utime(pack, (time.time() - 2 * 86_400,) * 2)
        for _ in range(2):
            await _sweep_packs(devices.open())
            assert await _readable(devices.open()) == _digests(sound, 9)
            # A reader may read block 9 from it.
            assert pack.read_bytes() == part and hidden.exists()
            assert len(list(pack.parent.glob("[!.]*.car"))) == 2
        [block] = [(cid, data) for cid, data in MANY.blocks if cid.digest == sections[9].digest]
        await provider.put_car(MANY.cid, [block], name="n")
        await _sweep_packs(devices.open())
        assert not hidden.exists() and await _readable(devices.open()) == _digests(sound)
        await devices.close()

    asyncio.run(body())


def test_failed_save_of_a_hidden_pack_loses_no_block(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(MANY.cid, MANY.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        rotten = _rotten(sound, 9)
        hidden = _hide(pack, rotten)
        pack.write_bytes(_rotten(sound, 3))
        os.utime(pack, (time.time() - 2 * 86_400,) * 2)
        sweeper = devices.open()

        def fail(*_: Any) -> Any:
            raise ProviderUnavailable("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(sweeper._packs, "write_merged", fail)
            await _sweep_packs(sweeper)
        assert hidden.read_bytes() == rotten and await _readable(devices.open()) == _digests(sound, 3)
        await _sweep_packs(devices.open())
        assert not hidden.exists() and await _readable(devices.open()) == _digests(sound)
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("own", ["pins", "pins list"])
def test_sweep_keeps_the_only_sound_copy_of_a_pin(devices: Devices, own: str) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.pin(TREE.cid, "n")
        [pin] = (devices.folder / "pins").iterdir()
        sound = pin.read_bytes()
        if own == "pins list":
            pin.unlink()
            sound += b"\n"
            pin = pin.with_name(f"{hashlib.sha256(sound).hexdigest()}.pins")
        _hide(pin, sound)
        pin.write_bytes(sound[:20])
        await _sweep(provider)
        assert pin.read_bytes() == sound
        await devices.close()

    asyncio.run(body())


def _in_a_list(pins: Path) -> Path:
    """Move all pins into one list."""
    single = list(pins.glob("b*.json"))
    data = b"".join(sorted(path.read_bytes().rstrip(b"\n") + b"\n" for path in single))
    for path in single:
        path.unlink()
    held = pins / f"{hashlib.sha256(data).hexdigest()}.pins"
    held.write_bytes(data)
    return held


@pytest.mark.parametrize("kept", ["single", "list", "only hidden list"])
def test_unpin_removes_the_pin_from_hidden_files(devices: Devices, kept: str) -> None:
    """A sweep could restore it from there."""

    async def body() -> None:
        provider = devices.open()
        other = build_tree({"b.md": b"other"})
        for tree in (TREE, other):
            await provider.put_car(tree.cid, tree.blocks, name="n")
            await provider.pin(tree.cid, "n")
        pins = devices.folder / "pins"
        file = next(pins.glob(f"{TREE.cid}.*")) if kept == "single" else _in_a_list(pins)
        data = file.read_bytes()
        hidden = [_hide(file, data), _hide(file, data[:20])]
        file.with_name(f".new-{file.name}").write_bytes(data)
        os.utime(file.with_name(f".new-{file.name}"), (0, 0))
        [gone, stays] = sorted(await provider.pins("n"), key=lambda pin: pin.cid != TREE.cid)
        if kept == "only hidden list":
            file.unlink()
        await provider.unpin(gone)
        assert not any(path.exists() for path in hidden) and not file.exists()
        await _sweep(provider)
        reader = devices.open()
        assert [pin.cid for pin in await reader.pins("n")] == [other.cid] == [stays.cid]
        assert await reader._run(reader._pins.roots) == {other.cid} and not reader.unread()
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("kept", ["single", "list"])
def test_hidden_pin_of_an_interrupted_removal_is_restored(devices: Devices, kept: str) -> None:
    async def body() -> None:
        provider = devices.open()
        other = build_tree({"b.md": b"other"})
        for tree in (TREE, other):
            await provider.put_car(tree.cid, tree.blocks, name=f"n{tree.cid}")
            await provider.pin(tree.cid, f"n{tree.cid}")
        pins = devices.folder / "pins"
        file = next(pins.glob(f"{TREE.cid}.*")) if kept == "single" else _in_a_list(pins)
        hidden = _hide(file, file.read_bytes())
        file.unlink()
        sweeper = devices.open()
        await sweeper.unpin(
            (await provider.pins(f"n{other.cid}") or [Pin(other.cid, f"n{other.cid}", "", 0)])[0]
        )
        assert await sweeper._run(sweeper._pins.roots) == {TREE.cid}
        await _sweep(sweeper)
        assert [pin.cid for pin in await devices.open().pins(f"n{TREE.cid}")] == [TREE.cid]
        assert not hidden.exists()
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("kept", ["single", "list"])
def test_publish_restores_a_hidden_pin(devices: Devices, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then it counts as unread."""

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.pin(TREE.cid, "n")
        devices.pack()
        pins = devices.folder / "pins"
        file = next(pins.iterdir()) if kept == "single" else _in_a_list(pins)
        _hide(file, file.read_bytes())
        junk = _hide(pins / f"{'e' * 64}.pins", b"x")
        file.unlink()
        publisher = devices.open()
        assert TREE.cid not in [pin.cid for pin in await publisher.pins("n")] and publisher.unread()
        opened = _opened(publisher, monkeypatch)
        for number in range(3):
            tree = build_tree({"a.md": bytes([number])})
            await publisher.put_car(tree.cid, tree.blocks, name="n")
            await publisher.pin(tree.cid, "n")
        assert file.exists() and opened.count(junk.name) == 1
        assert TREE.cid in [pin.cid for pin in await devices.open().pins("n")]
        await devices.close()

    asyncio.run(body())


def _publish(provider: Any, data: bytes) -> Any:
    return provider.put_car(TREE.cid, [(raw_cid(hashlib.sha256(data).digest()), data)], name="n")


def _opened(provider: Any, patch: pytest.MonkeyPatch, fails: str = "none") -> list[str]:
    """Return the hidden files that sweeps open; those with `fails` in their names cannot be read."""
    store, opened = type(provider._packs.store), list[str]()
    open_listed = store.open_listed

    def opening(self: Any, name: str, size: int) -> Any:
        if hidden_file(name):
            opened.append(name)
        if fails in name:
            raise PermissionError(name)
        return open_listed(self, name, size)

    patch.setattr(store, "open_listed", opening)
    return opened


@pytest.mark.parametrize("readable", [True, False])
def test_permanent_leftovers_are_read_once_and_delay_no_others(
    devices: Devices, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        bad = [_hide(pack.with_name(f"{'0' * 62}{number:02x}.car"), b"") for number in range(SWEPT_MAX)]
        opened = _opened(provider, monkeypatch, "none" if readable else f"-{'0' * 62}")
        pack.rename(_hide(pack, b""))
        os.utime(next(pack.parent.glob(f".*{pack.name}")), (time.time() - 3 * 86_400,) * 2)
        for turn in range(3):
            await _publish(provider, b"%d" % turn)
        assert pack.exists() and all(path.exists() for path in bad)
        assert len(opened) == len(set(opened)) == len(bad) + 1
        await provider.collect()
        assert len(opened) == 2 * len(bad) + 1  # it tries each again
        await _publish(provider, b"more")
        assert len(opened) == 2 * len(bad) + 1
        await devices.close()

    asyncio.run(body())


def test_later_processes_read_a_worthless_hidden_pack_once_a_day(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each publish would read it again."""
    if isinstance(devices.open(), DirectoryProvider):
        pytest.skip("a folder on a disk is read at no cost, and keeps no snapshot")

    async def body() -> None:
        first = devices.open()
        await first.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        junk = _hide(pack.with_name(f"{'e' * 64}.car"), b"junk")
        fails = _hide(pack.with_name(f"{'d' * 64}.car"), b"junk")
        opened, cache = _opened(first, monkeypatch, fails.name), b""
        for number in range(3):
            process = devices.open()
            process.begin_snapshot(cache)
            await _publish(process, b"%d" % number)
            cache = process.end_snapshot()
        # An unreadable one may be sound.
        assert opened.count(junk.name) == 1 and opened.count(fails.name) == 3
        now = time.time_ns()
        later = devices.open()
        later._clock = lambda: now + 86_400 * 10**9
        later.begin_snapshot(cache)
        await _publish(later, b"later")
        assert opened.count(junk.name) == 2
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("folder", ["packs", "pins", "small"])
def test_later_processes_read_equally_damaged_files_once_a_day(
    devices: Devices, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    if isinstance(devices.open(), DirectoryProvider):
        pytest.skip("a folder on a disk is read at no cost, and keeps no snapshot")

    async def body() -> None:
        first = devices.open()
        await first.put_car(MANY.cid, MANY.blocks, name="n")
        pack = devices.pack()
        data = _rotten(pack.read_bytes(), 5) if folder == "packs" else b"damaged"
        box = f"{'0' * 16}.a.{'e' * 64}"
        own = {"packs": pack, "pins": devices.folder / "pins" / LIST, "small": devices.folder / "small" / box}
        file = own[folder]
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        os.utime(file, (time.time() - 2 * 86_400,) * 2)
        hidden = _hide(file, data)
        opened, cache = _opened(first, monkeypatch), b""

        async def publish(number: int) -> None:
            nonlocal cache
            process = devices.open()
            process.begin_snapshot(cache)
            await _publish(process, b"%d" % number)
            await _sweep_packs(process)
            cache = process.end_snapshot()

        for number in range(3):
            await publish(number)
        assert opened.count(hidden.name) == 1 and hidden.exists()
        file.write_bytes(data + b"more")  # another verdict
        await publish(3)
        assert opened.count(hidden.name) == 2
        await devices.close()

    asyncio.run(body())


def test_collection_settles_a_pack_behind_many_that_it_cannot(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden_files, "_shuffled", sorted)

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.pin(TREE.cid, "n")
        pack = devices.pack()
        for number in range(2 * SWEPT_MAX):
            _hide(pack.with_name(f"{hashlib.sha256(b'%d' % number).hexdigest()}.car"), b"x")
        _hide(pack, pack.read_bytes())
        pack.unlink()
        await devices.open().collect()
        assert pack.exists()
        await devices.close()

    asyncio.run(body())


def test_sweep_tries_hidden_packs_in_random_order(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        for number in range(SWEPT_MAX):
            _hide(pack.with_name(f"{hashlib.sha256(b'%d' % number).hexdigest()}.car"), b"x")
        _hide(pack, pack.read_bytes())
        pack.unlink()
        sample = hidden_files.secrets.SystemRandom.sample
        drawn: list[int] = []

        def draw(source: Any, items: Any, count: int) -> Any:
            drawn.append(count)
            chosen = sample(source, items, count)
            return sorted(chosen, reverse=True)

        monkeypatch.setattr(hidden_files.secrets.SystemRandom, "sample", draw)
        await _sweep(devices.open())
        assert pack.exists() and SWEPT_MAX + 1 in drawn
        await devices.close()

    asyncio.run(body())


def test_unreadable_hidden_file_does_not_block_a_readable_one(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        newest = _hide(pack, sound, 2)
        _hide(pack, sound)
        pack.unlink()
        _opened(provider, monkeypatch, newest.name)
        await _publish(provider, b"more")
        assert pack.read_bytes() == sound and not list(pack.parent.glob(".hidden-*"))
        await devices.close()

    asyncio.run(body())


def test_large_hidden_pack_is_restored_only_by_a_collection(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        await provider.pin(TREE.cid, "n")
        pack = devices.pack()
        hidden = _hide(pack, pack.read_bytes())
        pack.unlink()
        provider._packs.passed_over.limit = hidden.stat().st_size - 1
        opened = _opened(provider, monkeypatch)
        await _publish(provider, b"more")
        assert hidden.exists() and not opened
        await provider.collect()
        assert pack.exists() and opened == [hidden.name]
        assert provider._packs.passed_over.limit == 64 * 1024 * 1024
        await devices.close()

    asyncio.run(body())


def test_sweep_works_on_a_bounded_number_of_leftovers(tmp_path: Path) -> None:
    with dav(tmp_path) as at:

        async def body() -> None:
            provider = at.open()
            await provider.put_car(TREE.cid, TREE.blocks, name="n")
            [pack] = (at.folder / "packs").glob("*.car")
            for _ in range(2 * SWEPT_MAX):
                _hide(pack, b"")
            at.server.requests.clear()
            await _sweep(provider)
            left = len(list(pack.parent.glob(".hidden-*")))
            assert left == SWEPT_MAX
            # Each is looked up, moved and deleted.
            assert sum(at.server.requests.values()) <= 3 * SWEPT_MAX + 8
            await _sweep(provider)
            assert not list(pack.parent.glob(".hidden-*")) and len(pack.read_bytes()) > 0
            await provider.close()

        asyncio.run(body())


@pytest.mark.parametrize("is_short", [True, False])
def test_badly_stored_pack_is_replaced_by_the_former_one(
    devices: Devices, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    """The server confirms a rename but has only 50 bytes, or others of the same size."""
    if isinstance(devices.open(), DirectoryProvider):
        pytest.skip("a folder on a disk replaces a file at once")

    async def body() -> None:
        provider = devices.open()
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        sound = pack.read_bytes()
        remote = provider._remote
        move = remote._move

        async def move_part(path: str, new: str, size: int | None = None, **how: Any) -> bool:
            if size is not None and new.endswith(pack.name) and not pack.exists():
                (devices.folder / path).write_bytes(sound[:50] if is_short else bytes(size))
            result: bool = (
                await move(path, new, **how)
                if size == len(sound) and is_short
                else await move(path, new, size, **how)
            )
            return result

        with monkeypatch.context() as patch:
            patch.setattr(remote, "_move", move_part)
            patch.setattr(remote, "_extensions", frozenset(), raising=False)
            with pytest.raises(ProviderUnavailable, match="changed while"):
                await remote._place(*await _temporary(devices, sound), sound, True)
        assert pack.read_bytes() == sound
        await devices.close()

    asyncio.run(body())


async def _temporary(devices: Devices, data: bytes) -> tuple[str, str]:
    [pack] = (devices.folder / "packs").glob("*.car")
    (devices.folder / "packs" / ".new-1-00").write_bytes(data)
    return "packs/.new-1-00", f"packs/{pack.name}"


def test_failed_collection_keeps_the_notes_of_a_pack(devices: Devices) -> None:
    async def body() -> None:
        first, other = devices.open(), devices.open()
        await first.put_car(TREE.cid, TREE.blocks, name="n")
        pack = devices.pack()
        notes = [pack.with_suffix(ending) for ending in (".lost", ".going")]
        for note in notes:
            note.write_bytes(b"note")
        held = pack.with_suffix(".idx")
        assert held.exists()

        hidden = pack.with_name(hidden_name(pack.name))
        pack.rename(hidden)
        assert not await _take_away(other, pack.name, lambda: False)
        assert held.exists() and all(note.exists() for note in notes)
        for path in (held, *notes):
            os.utime(path, (time.time() - 2 * 86_400,) * 2)
        os.utime(hidden)
        await other._run(other._packs.sweep, time.time() - 86_400)
        assert held.exists() and all(note.exists() for note in notes)
        await devices.close()

    asyncio.run(body())


@pytest.mark.parametrize("own", [PACK, LIST, SINGLE])
def test_hidden_pack_or_pin_is_recognised_by_its_name(own: str) -> None:
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
