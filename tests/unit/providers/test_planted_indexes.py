"""What somebody put into a shared folder under the name of an index: no wait, no link, no more memory than the pack has."""

from __future__ import annotations

import os
import threading
from hashlib import sha256
from pathlib import Path

import pytest
from ipfsmem_providers.directory_index import encode_index, open_index

GOOD = encode_index([(sha256(b"x").digest(), 40, 10)], 100)


def test_s8_a_pipe_named_like_an_index_is_none(tmp_path: Path) -> None:
    """Finding S8: opening it waited for ever."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pack.idx")
    found: list[object] = []
    thread = threading.Thread(
        target=lambda: found.append(open_index(tmp_path / "pack.idx", 100)), daemon=True
    )
    thread.start()
    thread.join(10)
    assert found == [None]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_s8_a_link_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(GOOD)
    (tmp_path / "pack.idx").symlink_to(tmp_path / "real")
    assert open_index(tmp_path / "real", 100) is not None
    assert open_index(tmp_path / "pack.idx", 100) is None


def test_s8_an_index_that_claims_more_blocks_than_the_pack_has_room_for(tmp_path: Path) -> None:
    """Finding S8: a sparse file that claimed 189 GB took 1.4 GB of memory."""
    places = [(sha256(b"%d" % n).digest(), 40, 10) for n in range(3)]
    for size, opens in ((105, True), (104, False)):
        path = tmp_path / f"{size}.idx"
        path.write_bytes(encode_index(places, size))
        assert (open_index(path, size) is not None) == opens
