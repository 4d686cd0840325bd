"""A folder that was damaged, truncated, filled with other files, made read-only or unplugged."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import threading
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.directory.files import FolderObjectStore
from ipfsmem_providers.packs import store as pack_store

from ipfsmem import file_durability
from ipfsmem.content.car import read_car
from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.device import atomic_files, directory_handle, shared_folder
from ipfsmem.errors import ProviderError, ProviderUnavailable
from ipfsmem.provider.contract import Block
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519

T = TypeVar("T")
SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)


def block(text: str) -> Block:
    data = text.encode()
    return raw_cid(hashlib.sha256(data).digest()), data


BLOCKS = [block(f"block {i} " * 20) for i in range(50)]
CIDS = [cid for cid, _ in BLOCKS]


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def fill(folder: Path, blocks: list[Block] = BLOCKS) -> Path:
    """Publish once; return the resulting pack."""
    before = set(folder.glob("packs/*.car"))
    run(DirectoryProvider(folder).put_car(blocks[0][0], blocks, name="n"))
    (pack,) = set(folder.glob("packs/*.car")) - before
    return pack


def read_all(folder: Path) -> dict[CID, bytes]:
    return run(DirectoryProvider(folder).get_blocks(CIDS))


def has_all(folder: Path) -> set[CID]:
    return run(DirectoryProvider(folder).has(CIDS))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def test_packs_are_ordinary_cars(tmp_path: Path) -> None:
    pack = fill(tmp_path)
    assert pack.stem == hashlib.sha256(pack.read_bytes()).hexdigest()
    with pack.open("rb") as file:
        reader = read_car(file)
        assert reader.roots == (CIDS[0],)
        assert list(reader) == BLOCKS


def test_flipped_bit_in_block_is_detected_and_healed_by_next_publish(tmp_path: Path) -> None:
    pack = fill(tmp_path)
    flip(pack, pack.read_bytes().index(BLOCKS[20][1]) + 3)
    provider = DirectoryProvider(tmp_path)
    assert run(provider.get_blocks(CIDS)) == dict(BLOCKS[:20] + BLOCKS[21:])
    # from now on the block is reported as absent, so it is sent again
    for device in (provider, DirectoryProvider(tmp_path)):
        assert run(device.has(CIDS)) == set(CIDS) - {CIDS[20]}
    run(DirectoryProvider(tmp_path).put_car(CIDS[20], [BLOCKS[20]], name="n"))
    for device in (provider, DirectoryProvider(tmp_path)):
        assert run(device.get_blocks(CIDS)) == dict(BLOCKS)
        assert run(device.has(CIDS)) == set(CIDS)


def test_repeated_upload_repairs_the_pack(tmp_path: Path) -> None:
    pack = fill(tmp_path)
    sound = pack.read_bytes()
    flip(pack, sound.index(BLOCKS[20][1]) + 3)
    provider = DirectoryProvider(tmp_path)
    assert CIDS[20] not in run(provider.get_blocks(CIDS))
    run(provider.put_car(CIDS[0], BLOCKS, name="n"))
    assert pack.read_bytes() == sound
    assert run(provider.get_blocks(CIDS)) == dict(BLOCKS) == read_all(tmp_path)


def test_repaired_pack_is_read_again(tmp_path: Path) -> None:
    pack = fill(tmp_path)
    at = pack.read_bytes().index(BLOCKS[20][1]) + 3
    same = DirectoryProvider(tmp_path)
    for _ in range(2):
        flip(pack, at)
        assert CIDS[20] not in run(same.get_blocks(CIDS))
        assert CIDS[20] not in read_all(tmp_path)
        time.sleep(0.02)  # a file system's clock may tick in steps
        flip(pack, at)  # as a backup or a sync program does it: the same size, the same name
        assert run(same.get_blocks(CIDS)) == dict(BLOCKS) == read_all(tmp_path)
        assert has_all(tmp_path) == set(CIDS)


def test_block_damaged_in_one_pack_is_read_from_another(tmp_path: Path) -> None:
    first = fill(tmp_path)
    second = fill(tmp_path, BLOCKS[10:])
    flip(first, first.read_bytes().index(BLOCKS[20][1]) + 3)
    flip(second, second.read_bytes().index(BLOCKS[30][1]) + 3)
    assert read_all(tmp_path) == dict(BLOCKS)
    assert has_all(tmp_path) == set(CIDS)


def test_truncated_pack_is_read_up_to_the_cut(tmp_path: Path) -> None:
    pack = fill(tmp_path)
    data = pack.read_bytes()
    pack.write_bytes(data[: data.index(BLOCKS[30][1]) + 5])
    assert has_all(tmp_path) == set(CIDS[:30])
    assert read_all(tmp_path) == dict(BLOCKS[:30])
    pack.write_bytes(b"")
    assert has_all(tmp_path) == set()
    assert read_all(tmp_path) == {}
    run(DirectoryProvider(tmp_path).put_car(CIDS[0], BLOCKS, name="n"))
    assert read_all(tmp_path) == dict(BLOCKS)


@pytest.mark.parametrize("how", ["missing", "empty", "cut", "noise", "of another pack", "folder"])
def test_unusable_index_is_rebuilt(tmp_path: Path, how: str) -> None:
    index = fill(tmp_path).with_suffix(".idx")
    good = index.read_bytes()
    other = fill(tmp_path, [block("something else")]).with_suffix(".idx")
    match how:
        case "missing":
            index.unlink()
        case "empty":
            index.write_bytes(b"")
        case "cut":
            index.write_bytes(good[:-1])
        case "noise":
            index.write_bytes(os.urandom(len(good)))
        case "of another pack":
            index.write_bytes(other.read_bytes())
        case _:
            index.unlink()
            index.mkdir()
    assert has_all(tmp_path) == set(CIDS)
    assert read_all(tmp_path) == dict(BLOCKS)
    if how != "folder":
        assert index.read_bytes() == good


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(at=471, bit=0)
@given(at=st.integers(0, 3300), bit=st.integers(0, 7))
def test_flipped_bit_of_an_index_hides_no_block(tmp_path: Path, at: int, bit: int) -> None:
    packs = list(tmp_path.glob("packs/*.car"))
    index = (packs[0] if packs else fill(tmp_path)).with_suffix(".idx")
    data = bytearray(index.read_bytes())
    data[at % len(data)] ^= 1 << bit
    index.write_bytes(data)
    assert read_all(tmp_path) == dict(BLOCKS)


def test_damaged_large_index_is_detected_when_a_block_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem_providers.packs import index as pack_index

    monkeypatch.setattr(pack_index, "_SMALL", 0)  # as if it had 24,000 blocks or more
    index = fill(tmp_path).with_suffix(".idx")
    good = index.read_bytes()
    for damaged_at in (good.index(CIDS[5].digest) + 9, good.index(CIDS[5].digest) + 36, 20):
        flip(index, damaged_at)
        provider = DirectoryProvider(tmp_path)
        assert run(provider.get_blocks([CIDS[5]])) == {CIDS[5]: BLOCKS[5][1]}
        assert run(provider.get_blocks(CIDS)) == dict(BLOCKS)
        assert index.read_bytes() == good
    provider = DirectoryProvider(tmp_path)
    assert run(provider.has([CIDS[1], block("no")[0]])) == {CIDS[1]}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_pack_loses_only_the_damaged_blocks(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / hashlib.sha256(repr(data).encode() + os.urandom(8)).hexdigest()[:16]
    folder.mkdir()
    pack = fill(folder)
    bad = bytearray(pack.read_bytes())
    at = data.draw(st.integers(0, len(bad) - 1))
    bad[at] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):
        pack.with_suffix(".idx").unlink()
    pack.write_bytes(bad)
    found = read_all(folder)
    assert found.items() <= dict(BLOCKS).items()
    if pack.with_suffix(".idx").exists() and at > 200:
        hit = [i for i, (cid, text) in enumerate(BLOCKS) if text not in bytes(bad) or cid.encode() not in bad]
        assert len(hit) <= 1


def test_large_index_deleted_while_in_use_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipfsmem_providers.packs import index as pack_index

    monkeypatch.setattr(pack_index, "_SMALL", 0)
    many = [block(f"small {i}") for i in range(300)]
    index = fill(tmp_path, many).with_suffix(".idx")
    good = index.read_bytes()
    provider = DirectoryProvider(tmp_path)
    for cid, data in many[:4]:
        assert run(provider.has([cid, block("no")[0]])) == {cid}
        index.unlink()
        assert run(provider.has([cid])) == {cid}
        assert run(provider.get_blocks([cid])) == {cid: data}
        assert index.read_bytes() == good
        provider = DirectoryProvider(tmp_path)


def test_noise_for_a_pack(tmp_path: Path) -> None:
    fill(tmp_path)
    packs = tmp_path / "packs"
    for seed in range(40):
        noise = hashlib.sha256(bytes([seed])).digest() * (seed + 1)
        (packs / f"{hashlib.sha256(noise).hexdigest()}.car").write_bytes(noise)
    assert read_all(tmp_path) == dict(BLOCKS)
    assert run(DirectoryProvider(tmp_path).has([block("no")[0]])) == set()


def test_foreign_files_are_unchanged(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.jpg").write_bytes(b"jpg")
    pack = fill(tmp_path)
    strangers = {
        tmp_path / "packs" / "notes.txt": b"x",
        tmp_path / "packs" / "export.car": b"not ours",
        tmp_path / "packs" / f"{'A' * 64}.car": b"not ours",
        tmp_path / "pins.txt": b"x",
    }
    (tmp_path / "pins").mkdir()
    (tmp_path / "names").mkdir()
    strangers[tmp_path / "pins" / "readme.json"] = b"{}"
    strangers[tmp_path / "pins" / f"x.{hashlib.sha256(b'n').hexdigest()[:16]}.json"] = b"[" * 5000
    strangers[tmp_path / "names" / f"{NAME}.txt"] = b"x"
    strangers[tmp_path / "names" / f"{NAME}.1.ipns-record"] = b"damaged"
    for path, data in strangers.items():
        path.write_bytes(data)
    (tmp_path / "packs" / f"{'0' * 64}.car").mkdir()
    provider = DirectoryProvider(tmp_path)

    async def body() -> None:
        await provider.pin(CIDS[0], "n")
        assert [pin.cid for pin in await provider.pins("n")] == [CIDS[0]]
        assert await provider.get_name(NAME) is None
        record = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 1, datetime(2036, 1, 1, tzinfo=UTC))
        await provider.put_name(NAME, record)
        assert await provider.get_name(NAME) == record
        assert await provider.get_blocks(CIDS) == dict(BLOCKS)

    run(body())
    assert {path: path.read_bytes() for path in strangers} == strangers
    assert (tmp_path / "photos" / "me.jpg").read_bytes() == b"jpg"
    assert pack.exists()


@pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    fill(folder)
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    (folder / "packs" / f"{'1' * 64}.car").symlink_to(secret)
    os.mkfifo(folder / "packs" / f"{'2' * 64}.car")
    run(DirectoryProvider(folder).pin(CIDS[0], "n"))
    (pin,) = (folder / "pins").iterdir()
    pin.unlink()
    os.mkfifo(pin)
    (folder / "names").mkdir()
    (folder / "names" / f"{NAME}.x.ipns-record").symlink_to(secret)
    assert read_all(folder) == dict(BLOCKS)
    assert [pin.cid for pin in run(DirectoryProvider(folder).pins("n"))] == [CIDS[0]]  # by its name
    assert run(DirectoryProvider(folder).get_name(NAME)) is None


def test_pin_file_is_valid_only_for_its_root_and_name(tmp_path: Path) -> None:
    provider = DirectoryProvider(tmp_path)
    run(provider.pin(CIDS[0], "n"))
    (pin,) = (tmp_path / "pins").iterdir()
    data = pin.read_text()
    for wrong in (
        data.replace(str(CIDS[0]), str(CIDS[1])),
        data.replace('"n"', '"m"'),
    ):
        pin.write_text(wrong)
        assert run(provider.pins("n")) == []
        assert run(provider.pins("m")) == []
    for damaged in (
        data.replace('"v":1', '"v":true'),
        data.replace('"created":', '"created":"x","y":'),
        data[:-1],
        "",
    ):
        pin.write_text(damaged)  # its name shows the root it lists, which must outlive its bytes
        assert [pin.cid for pin in run(provider.pins("n"))] == [CIDS[0]]
        assert run(provider.pins("m")) == []
    pin.write_text(data)
    assert [pin.cid for pin in run(provider.pins("n"))] == [CIDS[0]]


def test_unplugged_folder_is_reported_and_used_again(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    provider = DirectoryProvider(stick)

    async def body() -> None:
        for call in (
            provider.has(CIDS),
            provider.get_blocks(CIDS),
            provider.put_car(CIDS[0], BLOCKS, name="n"),
            provider.pin(CIDS[0], "n"),
            provider.pins("n"),
            provider.get_name(NAME),
        ):
            with pytest.raises(ProviderUnavailable, match="is not there") as caught:
                await call
            assert not caught.value.permanent

    run(body())
    assert not stick.exists()  # no folder on the system's disk in place of the stick
    stick.mkdir()
    fill(stick)
    assert run(provider.get_blocks(CIDS)) == dict(BLOCKS)
    stick.rename(tmp_path / "gone")
    run(body())
    stick.mkdir()  # the mount point without the stick
    run(body())
    stick.rmdir()
    (tmp_path / "gone").rename(stick)
    assert run(provider.get_blocks(CIDS)) == dict(BLOCKS)


def test_unplugged_in_the_middle_of_a_publish(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    provider = DirectoryProvider(stick)

    def blocks() -> Any:
        yield from BLOCKS
        stick.rename(tmp_path / "gone")

    with pytest.raises(ProviderUnavailable):
        run(provider.put_car(CIDS[0], blocks(), name="n"))
    (tmp_path / "gone").rename(stick)
    assert run(DirectoryProvider(stick).has(CIDS)) == set()
    run(provider.put_car(CIDS[0], BLOCKS, name="n"))
    assert read_all(stick) == dict(BLOCKS)


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_disk_error_leaves_no_partial_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    fill(tmp_path, BLOCKS[:10])
    listing = sorted(path.name for path in (tmp_path / "packs").iterdir())
    provider = DirectoryProvider(tmp_path)

    class Broken:
        """The os module with one call that fails."""

        def __getattr__(self, name: str) -> Any:
            return self._fail if name == call else getattr(os, name)

        def _fail(self, *args: Any, **kwargs: Any) -> Any:
            raise OSError(code, os.strerror(code), "the file")

    with monkeypatch.context() as patch:
        patch.setattr(shared_folder, "os", Broken())
        patch.setattr(atomic_files, "os", Broken())
        patch.setattr(file_durability, "os", Broken())
        patch.setattr(directory_handle, "os", Broken())
        for work in (
            provider.put_car(CIDS[0], BLOCKS, name="n"),
            provider.pin(CIDS[0], "n"),
        ):
            with pytest.raises(ProviderUnavailable) as caught:
                run(work)
            assert str(tmp_path) in str(caught.value)
            if code == errno.ENOSPC:
                assert "no space left" in str(caught.value)
    assert sorted(path.name for path in (tmp_path / "packs").iterdir()) == listing
    assert run(provider.pins("n")) == []
    assert read_all(tmp_path) == dict(BLOCKS[:10])
    run(provider.put_car(CIDS[0], BLOCKS, name="n"))
    assert read_all(tmp_path) == dict(BLOCKS)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_full_device_leaves_no_partial_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def full(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            os.close(real(path, flags, mode, dir_fd=dir_fd))
            return real("/dev/full", os.O_WRONLY)
        return real(path, flags, mode, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(ProviderUnavailable, match="no space left"):
            run(DirectoryProvider(tmp_path).put_car(CIDS[0], BLOCKS, name="n"))
    assert run(DirectoryProvider(tmp_path).has(CIDS)) == set()
    assert list((tmp_path / "packs").iterdir()) == []


def test_unwritable_folder_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = fill(tmp_path)
    pack.with_suffix(".idx").unlink()
    real = os.open

    def read_only(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", read_only)
    assert has_all(tmp_path) == set(CIDS)
    assert read_all(tmp_path) == dict(BLOCKS)
    with pytest.raises(ProviderUnavailable, match="no permission"):
        run(DirectoryProvider(tmp_path).put_car(CIDS[0], BLOCKS, name="n"))


@pytest.mark.parametrize("place", ["packs", "pins", "names"])
def test_file_in_place_of_a_folder_is_reported(tmp_path: Path, place: str) -> None:
    (tmp_path / place).write_bytes(b"mine")
    provider = DirectoryProvider(tmp_path)
    record = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 1, datetime(2036, 1, 1, tzinfo=UTC))
    work = {
        "packs": provider.put_car(CIDS[0], BLOCKS, name="n"),
        "pins": provider.pin(CIDS[0], "n"),
        "names": provider.put_name(NAME, record),
    }
    with pytest.raises(ProviderError, match=place):
        run(work.pop(place))
    for other in work.values():
        other.close()
    assert (tmp_path / place).read_bytes() == b"mine"


def test_small_packs_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_store.Packs, "max_packs", 8)
    provider, reader = DirectoryProvider(tmp_path), DirectoryProvider(tmp_path)
    for number, item in enumerate(BLOCKS):
        run(provider.put_car(item[0], [item], name="n"))
        assert len(list((tmp_path / "packs").glob("*.car"))) <= 8
        assert run(reader.get_blocks(CIDS)) == dict(BLOCKS[: number + 1])
        assert run(reader.has(CIDS)) == set(CIDS[: number + 1])
    for pack in (tmp_path / "packs").glob("*.car"):
        assert pack.stem == hashlib.sha256(pack.read_bytes()).hexdigest()
        with pack.open("rb") as file:
            assert list(read_car(file))
        assert pack.with_suffix(".idx").exists()
    assert read_all(tmp_path) == dict(BLOCKS)


def test_merging_leaves_damaged_packs_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_store.Packs, "max_packs", 4)
    damaged = fill(tmp_path, BLOCKS[:2])
    flip(damaged, damaged.read_bytes().index(BLOCKS[0][1]))
    before = damaged.read_bytes()
    for item in BLOCKS[2:]:
        run(DirectoryProvider(tmp_path).put_car(item[0], [item], name="n"))
    assert damaged.read_bytes() == before
    assert len(list((tmp_path / "packs").glob("*.car"))) <= 5  # the others are merged nevertheless
    assert read_all(tmp_path) == dict(BLOCKS[1:])


def test_merged_pack_is_reproducible_and_never_removed_by_its_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_store.Packs, "max_packs", 2)
    outcomes = []
    for name, order in (("a", BLOCKS[:6]), ("b", BLOCKS[5::-1])):
        folder = tmp_path / name
        folder.mkdir()
        packs = pack_store.Packs(FolderObjectStore(folder, "packs"))
        for item in order:
            writer = pack_store.PackWriter(packs.store.new_file(), item[0])
            writer.add(*item)
            packs.place(writer)
        packs.compact()
        (outcome,) = packs.inventory().packs
        outcomes.append(outcome)
        # parts restored by a slow sync program, next to the file that contains them all
        for item in order[:3]:
            writer = pack_store.PackWriter(packs.store.new_file(), item[0])
            writer.add(*item)
            packs.place(writer)
        packs.compact()
        assert list(packs.inventory().packs) == [outcome]
        assert read_all(folder) == dict(BLOCKS[:6])
    assert outcomes[0] == outcomes[1]


def test_leftovers_are_deleted_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_store.Packs, "max_packs", 2)
    fill(tmp_path, BLOCKS[:1])
    packs = tmp_path / "packs"
    old, new, lonely = packs / ".new-1-old", packs / ".new-2-new", packs / f"{'3' * 64}.idx"
    for path in (old, new, lonely):
        path.write_bytes(b"x")
    (tmp_path / "pins").mkdir()
    old_pin = tmp_path / "pins" / ".new-3-pin"
    old_pin.write_bytes(b"x")
    for path in (old, lonely, old_pin):
        os.utime(path, (1, 1))
    for item in BLOCKS[1:4]:
        run(DirectoryProvider(tmp_path).put_car(item[0], [item], name="n"))
    assert [path.exists() for path in (old, new, lonely, old_pin)] == [False, True, False, False]


def test_cancelled_in_the_middle(tmp_path: Path) -> None:
    async def body() -> None:
        provider = DirectoryProvider(tmp_path)
        task: asyncio.Task[CID]

        def blocks() -> Any:
            for number in range(20):
                yield block(str(number) * 400_000)
                if number == 12:
                    task.cancel()

        task = asyncio.ensure_future(provider.put_car(CIDS[0], blocks(), name="n"))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list((tmp_path / "packs").iterdir()) == []
        await provider.put_car(CIDS[0], BLOCKS, name="n")

    run(body())
    assert read_all(tmp_path) == dict(BLOCKS)


def test_cancelled_publish_waits_for_the_running_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its thread could write to a closed or reused descriptor."""
    real_write, real_drop = shared_folder.NewFile.write, shared_folder.NewFile.drop
    writing, torn = threading.Event(), []

    def write(self: shared_folder.NewFile, data: Any) -> None:
        writing.set()
        time.sleep(0.05)
        real_write(self, data)
        writing.clear()

    def drop(self: shared_folder.NewFile) -> None:
        torn.append(writing.is_set())
        real_drop(self)

    monkeypatch.setattr(shared_folder.NewFile, "write", write)
    monkeypatch.setattr(shared_folder.NewFile, "drop", drop)

    async def body() -> None:
        task = asyncio.ensure_future(DirectoryProvider(tmp_path).put_car(CIDS[0], BLOCKS, name="n"))
        while not writing.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(body())
    assert torn and not any(torn)
