"""A hostile shared folder: nothing outside it is read, written or removed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.content.tree import build_tree
from ipfsmem.device import directory_handle
from ipfsmem.device.shared_folder import NewFile
from ipfsmem.errors import ProviderError
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes")

SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
RECORD = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 2, datetime(2036, 1, 1, tzinfo=UTC))
OLDER = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 1, datetime(2036, 1, 1, tzinfo=UTC))
TREE = build_tree({"a": b"a" * 5000, "b": b"b" * 9000})
WEEK = 7 * 86_400
STEM = "1" * 64


def test_files_that_a_killed_rsync_left_are_ignored(tmp_path: Path) -> None:
    async def body() -> None:
        provider = DirectoryProvider(str(tmp_path))
        await provider.put_car(TREE.cid, TREE.blocks, name="n")
        pin = await provider.pin(TREE.cid, "n")
        await provider.put_name(NAME, RECORD)
        for file in [one for one in tmp_path.rglob("*") if one.is_file()]:
            data = file.read_bytes()
            for end, left in (("AbC9xZ", data[: len(data) // 2]), ("Zz_1yX", b"")):
                file.with_name(f".{file.name}.{end}").write_bytes(left)
        again = DirectoryProvider(str(tmp_path))
        assert [one.cid for one in await again.pins("n")] == [TREE.cid] and not again.unread()
        assert await again.get_name(NAME) == RECORD
        assert await again.get_blocks([TREE.cid]) == {TREE.cid: dict(TREE.blocks)[TREE.cid]}
        assert not await again.missing_blocks()
        await again.unpin(pin)
        await again.collect()
        assert await again.pins("n") == []

    asyncio.run(body())


def block(n: int) -> tuple[CID, bytes]:
    data = b"block %d" % n * 100
    return raw_cid(sha256(data).digest()), data


def work(provider: DirectoryProvider) -> list[str]:
    """Make every call of a provider; return the texts of the errors."""
    said: list[str] = []

    async def each() -> None:
        pins = [await attempt(provider.pin(TREE.cid, "n"))]
        for body in (
            provider.put_car(TREE.cid, TREE.blocks, name="n"), provider.has([TREE.cid]), provider.get_blocks([TREE.cid]),
            provider.listing(), provider.missing_blocks(), provider.pins("n"), provider.put_name(NAME, RECORD),
            provider.get_name(NAME), provider.collect(),
        ):  # fmt: skip
            await attempt(body)
        await attempt(provider.unpin_all([pin for pin in pins if pin is not None]))

    async def attempt(body: Any) -> Any:
        try:
            return await asyncio.wait_for(body, 60)
        except ProviderError as error:
            said.append(str(error))
            return None

    asyncio.run(each())
    return said


def everything_of_ours(where: Path) -> None:
    """Create week-old files in a folder elsewhere under every name that this provider creates or removes."""
    where.mkdir()
    for name in (
        f".new-{STEM}", f"{STEM}.idx", f"{STEM}.lost", f"{STEM}.going", f"{STEM}.pins", f"{STEM}.car",
        f"{TREE.cid}.{sha256(b'n').hexdigest()[:16]}.json", f"{NAME}.{sha256(OLDER).hexdigest()[:16]}.ipns-record",
    ):  # fmt: skip
        (where / name).write_bytes(OLDER if name.endswith("record") else b'{"since":1}')
        os.utime(where / name, (time.time() - WEEK,) * 2)


def picture(where: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in where.rglob("*") if path.is_file()
    }


@pytest.fixture(params=[True, False], ids=["descriptors", "paths"])
def systems(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where folders are opened by descriptor, and as on Windows."""
    monkeypatch.setattr(directory_handle, "_BY_DESCRIPTOR", request.param)


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize("place", ["packs", "pins", "names"])
def test_link_in_place_of_a_folder_is_not_followed(tmp_path: Path, place: str) -> None:
    outside, stick = tmp_path / "outside", tmp_path / "stick"
    everything_of_ours(outside)
    before = picture(outside)
    stick.mkdir()
    (stick / place).symlink_to(outside, target_is_directory=True)
    said = work(DirectoryProvider(stick))
    assert picture(outside) == before
    assert any(f"{stick}{os.sep}{place} is in the way" in text and "link" in text for text in said)
    # The folder itself is named by its user, and may be a link.
    (stick / place).unlink()
    (tmp_path / "my-stick").symlink_to(stick, target_is_directory=True)
    assert work(DirectoryProvider(tmp_path / "my-stick")) == []


@pytest.mark.parametrize("place", ["packs", "pins", "names"])
def test_link_created_between_two_steps_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The folder is replaced by a link while a file is created in it."""
    outside, stick = tmp_path / "outside", tmp_path / "stick"
    everything_of_ours(outside)
    before = picture(outside)
    stick.mkdir()
    provider = DirectoryProvider(stick)
    real = NewFile.place

    def swapped(file: NewFile, name: str, *, flush: bool = True) -> None:
        if (stick / place).is_dir() and not (stick / place).is_symlink():
            (stick / place).rename(stick / f"{place}-away")
            (stick / place).symlink_to(outside, target_is_directory=True)
        real(file, name, flush=flush)

    monkeypatch.setattr(NewFile, "place", swapped)
    work(provider)
    assert (stick / f"{place}-away").is_dir() and picture(outside) == before


def as_pipe(path: Path, outside: Path) -> None:
    os.mkfifo(path)


def as_folder(path: Path, outside: Path) -> None:
    path.mkdir()


def as_socket(path: Path, outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(path.parent):
        one.bind(path.name)  # the path of a socket has at most 100 characters


def as_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "secret")


def as_hollow(path: Path, outside: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize("make", [as_pipe, as_folder, as_socket, as_link, as_hollow])
def test_special_file_under_any_name_is_skipped(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    """A pipe named like an index must not hang a read. The honest files are read and written as usual."""
    outside, stick = tmp_path / "outside", tmp_path / "stick"
    outside.mkdir()
    (outside / "secret").write_bytes(b"not yours")
    stick.mkdir()
    provider = DirectoryProvider(stick)
    asyncio.run(provider.put_car(TREE.cid, TREE.blocks, name="n"))
    asyncio.run(provider.pin(TREE.cid, "kept"))
    asyncio.run(provider.put_name(NAME, OLDER))
    (pack,) = (stick / "packs").glob("*.car")
    for ending in ("car", "idx", "lost", "going"):
        make(stick / "packs" / f"{STEM}.{ending}", outside)
    for ending in ("lost", "going"):
        make(pack.with_suffix(f".{ending}"), outside)
    make(stick / "packs" / f".new-{STEM}", outside)
    make(stick / "pins" / f"{TREE.cid}.{sha256(b'n').hexdigest()[:16]}.json", outside)
    make(stick / "names" / f"{NAME}.{'2' * 16}.ipns-record", outside)
    work(DirectoryProvider(stick))
    other = DirectoryProvider(stick)
    blocks = asyncio.run(other.get_blocks([cid for cid, _ in TREE.blocks]))
    assert blocks == dict(TREE.blocks)
    assert [pin.cid for pin in asyncio.run(other.pins("kept"))] == [TREE.cid]
    assert asyncio.run(other.get_name(NAME)) == RECORD
    assert (outside / "secret").read_bytes() == b"not yours" and len(list(outside.iterdir())) == 1


def test_oversized_pin_list_stops_a_collection(tmp_path: Path) -> None:
    """It may name any block."""
    provider = DirectoryProvider(tmp_path)
    asyncio.run(provider.put_car(TREE.cid, TREE.blocks, name="n"))
    asyncio.run(provider.pin(TREE.cid, "n"))
    with (tmp_path / "pins" / f"{STEM}.pins").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ProviderError, match="is damaged"):
        asyncio.run(provider.collect())
    assert [pin.cid for pin in asyncio.run(provider.pins("n"))] == [TREE.cid]


def test_sparse_pack_of_false_size_is_bounded(tmp_path: Path) -> None:
    """A terabyte with one valid block."""
    provider = DirectoryProvider(tmp_path)
    asyncio.run(provider.put_car(TREE.cid, TREE.blocks, name="n"))
    (pack,) = (tmp_path / "packs").glob("*.car")
    hollow = pack.with_name(f"{STEM}.car")
    shutil.copy(pack, hollow)
    with hollow.open("r+b") as file:
        file.truncate(1 << 40)
    pack.unlink()
    pack.with_suffix(".idx").unlink()
    assert asyncio.run(DirectoryProvider(tmp_path).get_blocks([TREE.cid])) == {
        TREE.cid: dict(TREE.blocks)[TREE.cid]
    }
    assert asyncio.run(DirectoryProvider(tmp_path).has([block(1)[0]])) == set()
