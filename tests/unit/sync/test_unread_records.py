"""A listed but unreadable record is in the report and the exit code, and hides no readable one."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.directory.files import FolderObjectStore
from ipfsmem_providers.packs.object_store import Head
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.cli.sync_cmd import paragraph
from ipfsmem.content.cid import CID, ipns_name
from ipfsmem.errors import ProviderUnavailable
from ipfsmem.http import blocks
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin, Provider
from ipfsmem.sync.report import SyncReport
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.threaded import serve
from tests.support.device_lab import load
from tests.support.effort import each_once

UNLOCK = Unlock(RawKeySigner(bytes(31) + b"\x0b"))
TOKEN = "a token of these tests"


def device(tmp_path: Path, name: str, provider: Provider) -> Memory:
    return load(tmp_path / "homes", name, [provider], wallet=UNLOCK)


def sync(tmp_path: Path, name: str, provider: Provider, body: str | None = None) -> SyncReport:
    with device(tmp_path, name, provider) as memory:
        if body is not None:
            memory.write("k", body)
        return asyncio.run(memory.sync())


def body_on(tmp_path: Path, name: str, provider: Provider) -> str:
    with device(tmp_path, name, provider) as memory:
        return memory.read("k").file.body  # type: ignore[union-attr]


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def garbage(file: Path) -> None:
    file.write_bytes(b"\xff" * 300)


def halved(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def too_long(file: Path) -> None:
    file.write_bytes(file.read_bytes() + bytes(20_000))


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def as_full_folder(file: Path) -> None:
    as_folder(file)
    (file / "kept").write_text("a file of somebody's")


def as_dangling_link(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parent / "nowhere")


def under_another_name(file: Path) -> None:
    """The record is whole, but its newer version is not."""
    (file.parent / f"{file.name.partition('.')[0]}.0123456789abcdef.ipns-record").write_bytes(b"")


DAMAGES = [
    emptied,
    garbage,
    halved,
    too_long,
    as_folder,
    as_full_folder,
    as_dangling_link,
    under_another_name,
]


@contextlib.contextmanager
def over_http(stick: Path) -> Iterator[Provider]:
    store = DirectoryProvider(stick, {"create": True})
    with serve(lambda: blocks.app(store, token=TOKEN)) as url:
        yield PeerProvider(url, {"peer_token": TOKEN})


@contextlib.contextmanager
def as_a_folder(stick: Path) -> Iterator[Provider]:
    yield DirectoryProvider(stick, {"create": True})


WAYS = [as_a_folder, over_http]


@pytest.mark.parametrize(("way", "damage"), each_once(WAYS, DAMAGES))
def test_sync_past_a_damaged_record_reads_the_rest_and_ends_with_45(
    damage: Callable[[Path], None],
    way: Callable[[Path], contextlib.AbstractContextManager[Provider]],
    tmp_path: Path,
) -> None:
    stick = tmp_path / "stick"

    def at() -> contextlib.AbstractContextManager[Provider]:
        return way(stick)

    with at() as place:
        sync(tmp_path, "a", place, "one")
    with at() as place:
        sync(tmp_path, "b", place)
    before = {*(stick / "names").iterdir()}
    with at() as place:
        sync(tmp_path, "a", place, "one changed")
    (file,) = {*(stick / "names").iterdir()} - before
    damage(file)
    with at() as place:
        report = sync(tmp_path, "b", place)
    assert report.exit_code == 45 and "p to date" not in paragraph(report)
    assert [one for one in report.notices if one.kind == "record-unread"]
    with at() as place:
        assert body_on(tmp_path, "b", place) == "one changed"  # the pin list leads there too
    if damage is under_another_name:
        return
    with at() as place:
        sync(tmp_path, "a", place)  # writes its record there again
    with at() as place:
        report = sync(tmp_path, "b", place)
    assert report.exit_code == 0 and "p to date" in paragraph(report)
    kept = [one.read_text() for one in stick.rglob("kept")]
    assert kept == (["a file of somebody's"] if damage is as_full_folder else [])


@pytest.mark.parametrize("part", ["names", "pins", "packs"])
def test_folder_in_place_of_a_device_file_is_moved_aside(part: str, tmp_path: Path) -> None:
    """Its contents are kept, and other providers and devices get the new text."""
    stick, other = tmp_path / "stick", SimProvider(SimCloud(), name="healthy")

    def both() -> list[Provider]:
        return [DirectoryProvider(stick, {"create": True}), other]

    with load(tmp_path / "homes", "a", both(), wallet=UNLOCK) as memory:
        memory.write("k", "one")
        asyncio.run(memory.sync())
    files = [*(stick / part).iterdir()]
    for file in files:
        as_full_folder(file)
    with load(tmp_path / "homes", "a", both(), wallet=UNLOCK) as memory:
        memory.write("k", "two")
        report = asyncio.run(memory.sync())
        assert report.published and report.not_placed == []
        assert asyncio.run(memory.sync()).exit_code == 0
    for name, place in (("b", other), ("c", DirectoryProvider(stick, {"create": True}))):
        assert body_on(tmp_path, name, place) == "two"
    assert len([*stick.rglob("kept")]) == len(files)


def test_file_written_after_folders_were_listed_stays_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stick = tmp_path / "stick"
    provider = DirectoryProvider(stick, {"create": True})
    sync(tmp_path, "a", provider, "one")
    there = [*(stick / "names").iterdir(), *(stick / "pins").iterdir()]

    def listed_before(store: FolderObjectStore, prefix: str = "") -> frozenset[str]:
        return frozenset(file.name for file in there if file.name.startswith(prefix))

    monkeypatch.setattr(FolderObjectStore, "not_files", listed_before)
    sync(tmp_path, "a", provider, "two")
    assert [*stick.rglob("*.aside-*")] == []


def test_garbage_under_a_name_is_replaced_by_the_next_record(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    with as_a_folder(stick) as place:
        sync(tmp_path, "a", place, "one")
    for file in list((stick / "names").iterdir()):
        under_another_name(file)
    garbage_files = [file for file in (stick / "names").iterdir() if file.stat().st_size == 0]
    assert garbage_files
    with as_a_folder(stick) as place:
        assert sync(tmp_path, "a", place, "two").exit_code == 45
    assert all(file.exists() for file in garbage_files)  # it may still be copied
    for file in garbage_files:
        os.utime(file, (1, 1))
    with as_a_folder(stick) as place:
        sync(tmp_path, "a", place, "three")
    left = [file for file in garbage_files if file.exists()]
    assert len(left) < len(garbage_files)  # of published names; anchors are renewed in time


def test_unreadable_old_record_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user of the folder wrote it."""
    stick = tmp_path / "stick"
    with as_a_folder(stick) as place:
        sync(tmp_path, "a", place, "one")
    closed = {f"{file.name.partition('.')[0]}.{'0' * 16}.ipns-record" for file in (stick / "names").iterdir()}
    for name in closed:
        (stick / "names" / name).write_bytes(b"a record")
        os.utime(stick / "names" / name, (1, 1))
    real = FolderObjectStore.heads

    def heads(self: FolderObjectStore, names: Sequence[str], length: int) -> dict[str, Head]:
        if closed.intersection(names):
            raise PermissionError
        return real(self, names, length)

    monkeypatch.setattr(FolderObjectStore, "heads", heads)
    with as_a_folder(stick) as place:
        assert sync(tmp_path, "a", place, "two").exit_code == 45
    assert all((stick / "names" / name).exists() for name in closed)


def test_missing_record_of_a_device_causes_a_list_read(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    with as_a_folder(stick) as place:
        sync(tmp_path, "a", place, "one")
        sync(tmp_path, "b", DirectoryProvider(stick))
        before = {*(stick / "names").iterdir()}
        sync(tmp_path, "a", DirectoryProvider(stick), "one changed")
    (file,) = {*(stick / "names").iterdir()} - before
    file.unlink()
    with as_a_folder(stick) as place:
        sync(tmp_path, "b", place)
        assert body_on(tmp_path, "b", DirectoryProvider(stick)) == "one changed"


@pytest.mark.parametrize("damage", [emptied, as_folder, as_full_folder, as_dangling_link])
def test_damaged_pin_file_still_shows_its_root(damage: Callable[[Path], None], tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    with as_a_folder(stick) as place:
        sync(tmp_path, "a", place, "one")
    files = list((stick / "pins").iterdir())
    names = {json.loads(file.read_bytes())["name"] for file in files}

    async def roots() -> set[CID]:
        place = DirectoryProvider(stick)
        return {pin.cid for name in names for pin in await place.pins(name)}

    whole = asyncio.run(roots())
    for file in files:
        damage(file)
    assert asyncio.run(roots()) == whole != set()


def test_unresolvable_name_blocks_no_other_names(tmp_path: Path) -> None:
    cloud = SimCloud()
    sync(tmp_path, "a", SimProvider(cloud), "one")
    sync(tmp_path, "b", SimProvider(cloud))
    sync(tmp_path, "c", SimProvider(cloud))
    sick = SimProvider(cloud)
    with device(tmp_path, "a", SimProvider(cloud)) as a:
        bad = ipns_name(a.replica.device.sign_public)
    sync(tmp_path, "b", SimProvider(cloud), "of b")
    real = sick.get_name

    async def get_name(name: str) -> bytes | None:
        if name == bad:
            raise ProviderUnavailable("simulator: 503 for this name")
        return await real(name)

    sick.get_name = get_name  # type: ignore[method-assign]
    with device(tmp_path, "c", sick) as c:
        report = asyncio.run(c.sync())
        assert c.read("k").file.body == "of b"  # type: ignore[union-attr]
    assert report.exit_code == 45 and "p to date" not in paragraph(report)


@pytest.mark.parametrize("answer", [b"", b"not a record", bytes(200)])
def test_answer_that_is_not_a_record_is_not_up_to_date(answer: bytes, tmp_path: Path) -> None:
    cloud = SimCloud()
    sync(tmp_path, "a", SimProvider(cloud), "one")
    sync(tmp_path, "b", SimProvider(cloud))
    sick = SimProvider(cloud)
    with device(tmp_path, "a", SimProvider(cloud)) as a:
        bad = ipns_name(a.replica.device.sign_public)
    real = sick.get_name

    async def get_name(name: str) -> bytes | None:
        return answer if name == bad else await real(name)

    sick.get_name = get_name  # type: ignore[method-assign]
    with device(tmp_path, "b", sick) as b:
        report = asyncio.run(b.sync())
    assert report.exit_code == 45 and "p to date" not in paragraph(report)


@pytest.mark.parametrize("names", ["none", "all"])
def test_unread_pin_list_is_not_up_to_date(names: str, tmp_path: Path) -> None:
    """A provider without names shows nothing; one that shows all names may know more."""
    cloud = SimCloud()
    sync(tmp_path, "a", SimProvider(cloud), "one")
    sync(tmp_path, "b", SimProvider(cloud))
    sync(tmp_path, "a", SimProvider(cloud))
    sync(tmp_path, "a", SimProvider(cloud), "one changed")
    sick = SimProvider(cloud)
    real = sick.get_name

    async def get_name(name: str) -> bytes | None:
        return None if names == "none" else await real(name)

    async def pins(name: str) -> list[Pin]:
        raise ProviderUnavailable("simulator: 500 for the list")

    sick.get_name = get_name  # type: ignore[method-assign]
    sick.pins = pins  # type: ignore[method-assign]
    report = sync(tmp_path, "b", sick)
    said = paragraph(report)
    if names == "none":
        assert report.exit_code == 7 and "Nothing new from the providers that answered" in said
        assert "p to date" not in said
        assert any("newer texts may be missing" in one.text for one in report.notices)
    else:
        assert report.exit_code == 0 and report.entries_changed == 1
    assert "other devices" not in said and "p to date" not in said


@pytest.mark.parametrize("damage", [as_folder, as_full_folder, as_dangling_link, halved])
def test_pin_list_that_is_not_a_file_is_not_up_to_date(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    stick = tmp_path / "stick"
    with as_a_folder(stick) as place:
        sync(tmp_path, "a", place, "one")
    data = b"".join(sorted(file.read_bytes() + b"\n" for file in (stick / "pins").iterdir()))
    for file in list((stick / "pins").iterdir()):
        file.unlink()
    one = stick / "pins" / f"{hashlib.sha256(data).hexdigest()}.pins"
    one.write_bytes(data)
    with as_a_folder(stick) as place:
        assert sync(tmp_path, "b", place).exit_code == 0
    damage(one)
    place = DirectoryProvider(stick)
    assert asyncio.run(place.pins("ipfsmem-nobody")) == [] and place.unread() == [one.name]
    assert sync(tmp_path, "b", DirectoryProvider(stick), "two").exit_code == 45
    assert one.is_dir() or one.is_symlink() or one.exists(), "it says that there are pins which nobody knows"
