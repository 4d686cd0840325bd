"""The stored index of recall: restored unchanged, sealed where texts are sealed, and discarded if it does
not fit."""

from __future__ import annotations

import contextlib
import os
from datetime import date
from pathlib import Path

import msgspec
import pytest

from ipfsmem.device import derived_file, recall_image
from ipfsmem.device.recall_image import RecallImage, image_notice, image_path, images, load_image, save_image
from ipfsmem.device.replica import Replica
from ipfsmem.errors import StorageError
from ipfsmem.memory import Memory
from ipfsmem.recall.ranking import Document, Index, rank
from tests.unit.device.replica_lab import make, reopen, world

WORDS = ("quokka", "narwhal", "axolotl", "kakapo", "zebrakey")
TODAY = date(2026, 11, 23)


def kept(state: bytes = b"state 1") -> RecallImage:
    documents = [
        Document(f"zebrakey {n}", "quokka narwhal " * n, header="kakapo", group="axolotl")
        for n in range(1, 300)
    ]
    return RecallImage(state, b"what zebrakey is", Index(documents).image())


def image_of(replica: Replica) -> Path:
    path = image_path(replica)
    assert path is not None
    return path


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_index_image_is_loaded_in_another_process(tmp_path: Path, mode: str) -> None:
    replica = make(tmp_path / "m", mode)
    assert load_image(replica) is None and image_notice(replica) == ""
    assert save_image(replica, kept()) and save_image(replica, kept(b"state 2"))
    again = reopen(replica, world("another"))
    found = load_image(again)
    assert found == kept(b"state 2") and image_notice(again) == ""
    assert [hit.id for hit in rank(Index.from_image(found.index), "quokka", today=TODAY, limit=1)]
    assert os.name == "nt" or image_of(again).stat().st_mode & 0o777 == 0o600
    assert not [path for path in image_of(again).parent.iterdir() if path.suffix == ".tmp"]
    again.close()


def test_sealed_recall_image_and_folder_contain_no_word_in_clear(tmp_path: Path) -> None:
    plain, sealed = make(tmp_path / "p" / "m"), make(tmp_path / "s" / "m", "encrypted-ipfs")
    image = kept()
    assert all(word.encode() in msgspec.msgpack.encode(image) for word in WORDS)
    assert save_image(plain, image) and save_image(sealed, image)
    assert image_of(plain).stat().st_size < image_of(sealed).stat().st_size
    for path in (tmp_path / "s").rglob("*"):
        assert not path.is_file() or not any(word.encode() in path.read_bytes() for word in WORDS)
    assert sealed.device.row_key not in image_of(sealed).read_bytes()
    first = image_of(sealed).read_bytes()
    save_image(sealed, image)
    assert first != image_of(sealed).read_bytes()  # another nonce each time
    plain.close()
    sealed.close()


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
def test_unusable_index_image_is_reported_and_discarded(tmp_path: Path, mode: str) -> None:
    replica = make(tmp_path / "m", mode)
    save_image(replica, kept())
    path = image_of(replica)
    whole = path.read_bytes()
    middle = len(whole) // 2
    torn = [whole[:cut] for cut in (0, 1, 20, 40, 62, middle, len(whole) - 1)]
    torn += [whole + b"x", whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]]
    torn += [whole.replace(b"image 2", b"image 3"), b"x" * 99]
    for data in torn:
        path.write_bytes(data)
        assert str(path) in image_notice(replica)
        assert load_image(replica) is None and not path.exists()
    assert save_image(replica, kept()) and load_image(replica) == kept()
    replica.close()


def test_sealed_index_image_opens_only_complete_and_in_order(tmp_path: Path) -> None:
    replica = make(tmp_path / "m", "encrypted-ipfs")
    piece, tag = derived_file._PIECE, derived_file._TAG
    path = image_of(replica)
    for size in (0, piece - 100, 2 * piece, 3 * piece + 5):
        long = RecallImage(b"state", memoryview(bytes(range(256)) * (size // 256)), memoryview(b"index"))
        assert save_image(replica, long) and load_image(replica) == long
    first = path.read_bytes()
    begin = len(first) - len(msgspec.msgpack.encode(long)) - 4 * tag
    boxes = [first[at : at + piece + tag] for at in range(begin, len(first), piece + tag)]
    assert len(boxes) == 4 and save_image(replica, long)
    other = path.read_bytes()
    head, empty = first[:begin], first[: begin - 8] + bytes(8)
    for data in (
        head,
        empty,
        head + b"".join(boxes[:-1]),
        head + b"".join(boxes[:2]),
        head + b"".join((boxes[1], boxes[0], *boxes[2:])),
        head + b"".join((*boxes, boxes[-1])),
        other[: begin + piece + tag] + first[begin + piece + tag :],
        first[:-1] + bytes([first[-1] ^ 1]),
    ):
        path.write_bytes(data)
        assert image_notice(replica) and load_image(replica) is None and not path.exists()
    replica.close()


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
@pytest.mark.parametrize("size", [0, 300, 200_000])
def test_recall_image_first_part_opens_without_the_second(tmp_path: Path, mode: str, size: int) -> None:
    replica = make(tmp_path / "m", mode)
    rest = memoryview(bytes(range(256)) * (size // 256))
    words, moments = memoryview(os.urandom(400_000)), memoryview(b"what was said" * 30_000)
    assert save_image(replica, RecallImage(b"state", rest, words, moments))
    path = image_of(replica)
    assert load_image(replica) == RecallImage(b"state", rest, words, moments)
    assert load_image(replica, first=True) == RecallImage(b"state", rest)
    if mode != "local":  # a plain file is one stream, with one checksum
        path.write_bytes(path.read_bytes()[:-100_000])
        assert load_image(replica, first=True) == RecallImage(b"state", rest)
    path.write_bytes(path.read_bytes()[:200])
    assert load_image(replica, first=True) is None and not path.exists()
    replica.close()


def test_index_image_of_another_device_or_mode_does_not_open(tmp_path: Path) -> None:
    one = make(tmp_path / "1" / "m", "encrypted-ipfs", world("one"))
    other = make(tmp_path / "2" / "m", "encrypted-ipfs", world("other"))
    plain = make(tmp_path / "3" / "m")
    save_image(one, kept())
    save_image(plain, kept())
    for source, target in ((one, other), (plain, other), (one, plain)):
        image_of(target).write_bytes(image_of(source).read_bytes())
        assert image_notice(target)
        assert load_image(target) is None
    for replica in (one, other, plain):
        replica.close()


def test_index_image_without_keys_or_folder_or_read_only_is_not_written(tmp_path: Path) -> None:
    in_process = make(None, "none")
    assert not save_image(in_process, kept()) and load_image(in_process) is None
    locked = make(tmp_path / "l" / "m", "encrypted-ipfs")
    save_image(locked, kept())
    before = image_of(locked).read_bytes()
    locked.forget_keys()
    assert not save_image(locked, kept()) and load_image(locked) is None
    assert image_of(locked).read_bytes() == before and image_notice(locked) == ""
    plain = make(tmp_path / "r" / "m")
    plain.read_only = "this memory"
    assert not save_image(plain, kept()) and not image_of(plain).exists()
    for replica in (in_process, locked, plain):
        replica.close()


def test_folder_in_place_of_the_recall_image_is_reported(tmp_path: Path) -> None:
    replica = make(tmp_path / "m")
    image_of(replica).mkdir()
    assert "not a file" in image_notice(replica)
    assert load_image(replica) is None
    replica.close()


def test_status_reports_useless_index_image_and_forgetting_deletes_it(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.write("zebrakey", "quokka")
        save_image(memory.replica, kept())
        assert not [line for line in memory.status().notices if "saved index" in line]
        memory.forget("zebrakey")
        assert not image_of(memory.replica).exists()
        image_of(memory.replica).write_bytes(b"torn")
        assert [line for line in memory.status().notices if "saved index" in line]
        assert load_image(memory.replica) is None
        assert not [line for line in memory.status().notices if "saved index" in line]


@pytest.mark.parametrize("mode", ["local", "encrypted-ipfs"])
@pytest.mark.parametrize("kind", ["words", "heads", "graph"])
def test_older_and_newer_version_use_separate_index_files(
    tmp_path: Path, mode: str, kind: recall_image.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = make(tmp_path / "m", mode)
    versions = {1: kept(b"of the older"), 13: kept(b"of the newer"), 130: kept(b"of a later one")}
    for number, image in versions.items():
        monkeypatch.setattr(recall_image, "VERSION", number)
        assert load_image(replica, kind=kind) is None
        assert save_image(replica, image, kind=kind) and save_image(replica, image, "work", kind=kind)
    for number, image in versions.items():
        monkeypatch.setattr(recall_image, "VERSION", number)
        assert load_image(replica, kind=kind) == load_image(replica, "work", kind=kind) == image
    assert len(images(replica)) == 6 and image_notice(replica) == ""
    recall_image.remove_images(replica)
    assert images(replica) == []
    replica.close()


def test_newest_index_files_of_other_versions_are_kept_for_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = make(tmp_path / "m")
    now = image_of(replica).parent.stat().st_mtime
    earlier = image_of(replica).with_name("recall.image")
    days = {earlier: 6}
    for number in range(1, 5):
        monkeypatch.setattr(recall_image, "VERSION", number)
        assert save_image(replica, kept(b"%d" % number))
        days[image_of(replica)] = number
    earlier.write_bytes(image_of(replica).read_bytes())
    for path, age in days.items():
        os.utime(path, (now - age * 86_400, now - age * 86_400))
    monkeypatch.setattr(recall_image, "VERSION", 20)
    for stack in ("", "one", "two", "three", "four", "five"):
        assert save_image(replica, kept(), stack)
    names = {path.name for path, _ in images(replica)}
    assert len(names) == 8 and {f"recall-v{number}.image" for number in range(1, 5)} < names
    assert load_image(replica, "five") == kept()
    old = image_of(replica).with_name("recall-v2.image")
    os.utime(old, (now - 8 * 86_400, now - 8 * 86_400))
    assert save_image(replica, kept()) and not old.exists() and len(images(replica)) == 7
    replica.close()


@pytest.mark.parametrize("looked", ["_partial_images", "images"])
def test_recall_image_saved_during_removal_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked: str
) -> None:
    replica = make(tmp_path / "m")
    ready = recall_image._FILES.prepare(replica, image_of(replica), b"quokka")
    assert ready is not None
    look, done = getattr(recall_image, looked), list[str]()

    def put_before_the_look(*given: object) -> object:
        if not done:
            done.append("put")
            with contextlib.suppress(StorageError):
                ready.put()
        return look(*given)

    monkeypatch.setattr(recall_image, looked, put_before_the_look)
    recall_image.remove_images(replica)
    assert done and not [path for path in image_of(replica).parent.iterdir() if "recall" in path.name]
    replica.close()


def test_recall_image_is_not_saved_inside_a_snapshot(tmp_path: Path) -> None:
    replica = make(tmp_path / "m")
    with replica.reading():
        assert not save_image(replica, kept())
    assert images(replica) == [] and save_image(replica, kept())
    replica.close()
