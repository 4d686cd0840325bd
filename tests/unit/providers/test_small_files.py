"""Small objects where their layout matters: files in a folder, keys in a bucket, commits in a branch; damaged and hostile ones."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.bucket import objects as bucket_objects
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.directory.files import FolderObjectStore
from ipfsmem_providers.packs.hidden import hidden_name
from ipfsmem_providers.packs.object_store import Head
from ipfsmem_providers.packs.small_files import SmallFiles

from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Pin, lister
from ipfsmem.provider.small_objects import SMALL_MAX, small_box, small_name
from tests.unit.provider.make_small_vectors import DATA, OUT, build, text
from tests.unit.provider.test_contract import block
from tests.unit.providers.bucket_lab import bucket
from tests.unit.providers.git_lab import Repository
from tests.unit.providers.sick_lab import Bench, bench
from tests.unit.providers.test_contract_of_all import area_of
from tests.unit.providers.test_git import published

BOX = small_box(b"a" * 32)
NAME = small_name(BOX, "a", b"one")
FILE = NAME.replace("/", ".", 1)


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(body)


def test_small_objects_have_the_names_and_places_of_the_vectors(tmp_path: Path) -> None:
    vectors = json.loads(OUT.read_text("utf-8"))
    assert text(build()) == OUT.read_text("utf-8")
    assert {bool(row["parts"]) for row in vectors["names"]} == {True, False}
    places = vectors["files"]

    async def body() -> None:
        await DirectoryProvider(tmp_path).put_small(places["name"], DATA)
        with bucket() as at:
            await at.open().put_small(places["name"], DATA)
            assert f"{at.prefix}/{places['bucket']}" in at.server.objects

    run(body())
    assert (tmp_path / places["folder"]).read_bytes() == DATA


def test_foreign_entries_in_a_folder_are_skipped(tmp_path: Path) -> None:
    async def body() -> None:
        provider = DirectoryProvider(tmp_path)
        await provider.put_small(NAME, b"one")
        folder = tmp_path / "small"
        names = [small_name(BOX, label, b"x") for label in ("damaged", "folder", "large", "link", "pipe")]
        damaged, inside, large, link, pipe = (folder / name.replace("/", ".", 1) for name in names)
        damaged.write_bytes(b"y")
        inside.mkdir()
        large.write_bytes(bytes(SMALL_MAX + 1))
        link.symlink_to(folder / FILE)
        os.mkfifo(pipe)
        (folder / "notes.txt").write_text("of somebody else")
        assert await provider.list_small([BOX]) == {NAME: 3, names[0]: 1}
        assert await provider.get_small([NAME, *names]) == {NAME: b"one"}
        await provider.put_small(names[0], b"x")
        await provider.put_small(names[1], b"x")
        assert await provider.get_small(names[:2]) == dict.fromkeys(names[:2], b"x")
        assert (folder / "notes.txt").exists()

    run(body())


def test_hidden_small_object_is_restored_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    async def body() -> None:
        provider = DirectoryProvider(tmp_path)
        await provider.put_small(NAME, b"one")
        folder, old = tmp_path / "small", time.time() - 3 * 86_400
        other = small_name(BOX, "b", b"two")
        (folder / FILE).rename(folder / hidden_name(FILE))
        (folder / hidden_name(other.replace("/", ".", 1))).write_bytes(b"not two")
        for file in folder.iterdir():
            os.utime(file, (old, old))
        assert await provider.list_small([BOX]) == {}
        await provider.collect()
        assert await provider.get_small([NAME, other]) == {NAME: b"one"}

    run(body())


class Refusing(FolderObjectStore):
    """A folder in which some files are not readable."""

    refused: frozenset[str] = frozenset()
    error: Exception = ProviderRefused("403")

    def heads(self, names: Sequence[str], length: int) -> dict[str, Head]:
        if self.refused & set(names):
            raise self.error
        return super().heads(names, length)


def test_refused_small_object_does_not_hide_the_others(tmp_path: Path) -> None:
    store = Refusing(tmp_path, "small")
    small = SmallFiles(store)
    other = small_name(BOX, "b", b"two")
    small.put(NAME, b"one")
    small.put(other, b"two")
    for error in (ProviderRefused("403"), PermissionError("13")):
        store.refused, store.error = frozenset([FILE]), error
        assert small.read([NAME, other]) == {other: b"two"}
        with pytest.raises(type(error)):
            small.read([NAME])
        store.refused = frozenset([FILE, other.replace("/", ".", 1)])
        with pytest.raises(type(error)):
            small.read([NAME, other])
    store.error = ProviderUnavailable("503")  # whether it exists is unknown
    with pytest.raises(ProviderUnavailable):
        small.read([NAME, other])


def test_bucket_lists_many_boxes_with_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        with bucket() as at:
            boxes = [small_box(b"%032d" % n) for n in range(20)]
            writer, reader = at.open(), at.open()
            for box in boxes:
                await writer.put_small(small_name(box, "a", b"one"), b"one")
            assert dict(writer.objects.requests) == {"PUT": 20}
            found = await reader.list_small(boxes)
            assert dict(reader.objects.requests) == {"LIST": 1} and len(found) == 20
            assert len(await reader.get_small([*found])) == 20
            await reader.remove_small([*found][1:])
            left = dict.fromkeys(sorted(found)[:1], 3)
            assert await reader.list_small(boxes) == left
            # Foreign objects that fill a list cost requests, but change no answer.
            flood = small_box(b"flood")
            for n in range(8):
                await writer.put_small(small_name(flood, str(n), b"x"), b"x")
            monkeypatch.setattr(bucket_objects, "_LIST_MAX", 7)
            assert await reader.list_small(boxes) == left

    run(body())


def test_list_of_small_objects_is_answered_from_a_snapshot(tmp_path: Path) -> None:
    async def body() -> None:
        with bucket() as at:
            await at.open().put_small(NAME, b"one")
            reader = at.open()
            reader.begin_snapshot(b"")
            assert await reader.pins("n") == [] and await reader.list_small([BOX]) == {NAME: 3}
            assert await reader.get_small([NAME]) == {NAME: b"one"}
            assert dict(reader.objects.requests) == {"LIST": 1, "GET": 1}
            await reader.remove_small([NAME])
            assert await reader.list_small([BOX]) == {}

    run(body())


def test_small_objects_of_a_group_are_one_commit_and_outlive_squashes(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        one = at.open({"git_squash": 3})
        other = small_name(BOX, "b", b"two")
        one.begin_group()
        await one.put_small(NAME, b"one")
        await one.put_small(other, b"two")
        assert await one.get_small([NAME]) == {NAME: b"one"}
        assert await at.open().list_small([BOX]) == {}
        await one.commit_group()
        assert at.commits() == 1
        one.begin_group()
        await one.remove_small([other])
        one.discard_group()
        for turn in range(5):
            await published(one, str(turn))
        assert one.repository.squashes >= 1
        fresh = at.open()
        assert await fresh.get_small([*await fresh.list_small([BOX])]) == {NAME: b"one", other: b"two"}

    run(body())


@pytest.mark.parametrize("kind", ["pinata-car", "filebase-s3"])
def test_foreign_pins_in_a_box_are_skipped_at_a_service(kind: str, tmp_path: Path) -> None:
    async def body(at: Bench) -> None:
        provider = at.open()
        await area_of(provider).put_small(NAME, b"one")
        rest = FILE.partition(".")[2]
        for files in (
            {"notes.txt": b"of somebody else"},
            {f"3.{FILE}": b"two"},  # not the content of its name
            {f"3.{small_box(b'b')}.{rest}": b"one"},  # of another box
            {f"3.{FILE}": b"one", "more": b"more"},
            {f"x.{FILE}": b"one"},
            {f"{SMALL_MAX + 1}.{FILE}": b"one"},
            {f"3.{BOX}.large.{'0' * 64}": bytes(3 * SMALL_MAX)},
        ):
            tree = build_tree(files)
            await provider.put_car(tree.cid, tree.blocks, name=f"ipfsmem-small-{BOX}")
        fresh = area_of(at.open())
        large = f"{BOX}/large.{'0' * 64}"
        assert await fresh.list_small([BOX]) == {NAME: 3, large: 3}
        assert await fresh.get_small([NAME, large]) == {NAME: b"one"}
        await fresh.remove_small([NAME])
        assert await area_of(at.open()).get_small([NAME]) == {}

    with bench(kind, tmp_path) as at:
        run(body(at))


def test_small_objects_do_not_change_the_listing_of_a_service(tmp_path: Path) -> None:
    """Otherwise a removed small object would look like a lost part of a version."""

    async def body(at: Bench) -> None:
        provider = at.open()
        tree = build_tree({"a": b"tree"})
        await provider.put_car(tree.cid, tree.blocks, name="n")
        lists = lister(provider)
        assert lists is not None
        before = await lists.listing()
        await area_of(provider).put_small(NAME, b"one")
        assert await lists.listing() == before != {}

    for kind in ("filebase-s3", "directory", "bucket", "git"):
        with bench(kind, tmp_path / kind) as at:
            run(body(at))


def test_foreign_pins_in_a_box_are_skipped_at_a_node(tmp_path: Path) -> None:
    async def body(at: Bench) -> None:
        provider = at.open()
        await area_of(provider).put_small(NAME, b"one")
        cid, data = block("one")
        for name in (f"{BOX}/{SMALL_MAX + 1}.a", f"{BOX}/x.a", f"{BOX}/a", f"{BOX}/0.a", "noise"):
            await provider.pin(cid, f"ipfsmem-small-{name}")
            fresh = area_of(at.open())
            assert await fresh.list_small([BOX]) == {NAME: 3}
            assert await fresh.get_small([NAME]) == {NAME: data}
            await provider.unpin(Pin(cid, f"ipfsmem-small-{name}", "", 0))
        await area_of(provider).remove_small([NAME])
        assert await area_of(at.open()).list_small([BOX]) == {}

    with bench("kubo", tmp_path) as at:
        run(body(at))


def test_small_object_that_cannot_be_removed_blocks_no_other(tmp_path: Path) -> None:
    class Stuck(FolderObjectStore):
        error: Exception = PermissionError("13")
        tried = 0

        def unlink(self, name: str) -> None:
            self.tried += 1
            if name == FILE:
                raise self.error
            super().unlink(name)

    store = Stuck(tmp_path, "small")
    small = SmallFiles(store)
    names = [NAME, *(small_name(BOX, label, b"x") for label in "bc")]
    for error in (PermissionError("13"), ProviderRefused("403")):
        small.put(names[1], b"x")
        store.error = error
        with pytest.raises(type(error)):
            small.remove(names)
        assert small.read(names[1:]) == {}
    store.error, store.tried = ProviderUnavailable("503"), 0  # a server that is down is not called for each
    with pytest.raises(ProviderUnavailable):
        small.remove(names)
    assert store.tried == 1


def test_folder_with_the_name_of_a_small_object_is_not_removed(tmp_path: Path) -> None:
    async def body() -> None:
        provider = DirectoryProvider(tmp_path)
        other = small_name(BOX, "b", b"two")
        await provider.put_small(other, b"two")
        (tmp_path / "small" / FILE / "notes").mkdir(parents=True)
        await provider.remove_small([NAME, other])
        assert (tmp_path / "small" / FILE / "notes").is_dir()
        assert await provider.list_small([BOX]) == {}

    run(body())
