"""Fast paths for many rows and signatures, and disabled garbage collection, do not change results."""

from __future__ import annotations

import gc
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.device.bulk import blocks_here, first_failing, no_collection, read_blocks
from ipfsmem.device.database import Database
from ipfsmem.device.root_folders import change_objects, objects_folder


def test_blocks_are_read_in_several_statements(tmp_path: Path) -> None:
    db = Database(tmp_path)
    blocks = {sha256(b"%d" % i).digest(): b"%d" % i for i in range(2_345)}
    with db.transaction():
        db.add_blocks(list(blocks.items())[:2_000])
    here = dict(list(blocks.items())[:2_000])
    assert blocks_here(db, blocks) == here.keys()
    assert read_blocks(db, blocks) == here
    assert read_blocks(db, []) == {} and blocks_here(db, []) == set()


@pytest.mark.parametrize("count", [0, 1, 256, 257, 5_000])
def test_every_item_is_tested_whatever_their_number(count: int) -> None:
    seen: list[int] = []
    lock = threading.Lock()

    def test(item: int) -> bool:
        with lock:
            seen.append(item)
        return True

    assert first_failing(test, range(count)) is None
    assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("wrong", [0, 255, 256, 4_999])
def test_one_failure_among_many_is_found(wrong: int) -> None:
    assert first_failing(lambda item: item != wrong, range(5_000)) == wrong


def test_error_in_a_thread_is_raised_to_the_caller() -> None:
    def test(item: int) -> bool:
        if item == 3_000:
            raise ValueError("broken")
        return True

    with pytest.raises(ValueError, match="broken"):
        first_failing(test, range(5_000))


def test_garbage_collection_is_restored_after_an_error_and_nesting() -> None:
    assert gc.isenabled()
    with pytest.raises(KeyError), no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_objects_counted_in_steps_or_at_once_have_the_same_folder(tmp_path: Path) -> None:
    digests = [sha256(b"%d" % i).digest() for i in range(700)]
    folders = []
    for name, step in (("a", 700), ("b", 37)):
        (tmp_path / name).mkdir()
        db = Database(tmp_path / name)
        with db.transaction():
            db.add_blocks((digest, b"") for digest in digests)
            for start in range(0, 700, step):
                change_objects(db, {d: (900, 1 + i % 2) for i, d in enumerate(digests[start : start + step])})
            # Named twice: one reference less and it remains. Named once: it is removed. Not named: no change.
            change_objects(db, {digests[0]: (900, -1), digests[1]: (900, -1), digests[2]: (900, 0)})
        folders.append(objects_folder(db))
        rows = dict(db.connection.execute("SELECT digest, refs FROM objects"))
        assert digests[0] not in rows
        assert rows[digests[1]] == 1
        assert len(rows) == 699
    # Both count i in their own steps, so only the names must agree, and the folder made of them.
    assert folders[0] == folders[1] is not None
