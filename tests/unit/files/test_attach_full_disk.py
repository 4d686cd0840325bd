"""Linking a folder while the disk is full."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ipfsmem.errors import StorageError
from ipfsmem.files import folder as folders
from ipfsmem.files.folder import PlainFolder


@pytest.mark.parametrize("after", [0, 1])
def test_full_disk_leaves_no_partial_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    left = [after]

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folders, "flush_to_disk", full)
    folder = PlainFolder(tmp_path)
    with pytest.raises(StorageError, match="full"):
        folder.put_marker("ab" * 16)
    names = {path.name for path in (tmp_path / ".ipfsmem").iterdir() if path.is_file()}
    assert names <= {".gitignore"} and folder.marker() is None
    monkeypatch.undo()
    folder.put_marker("ab" * 16)
    assert folder.marker() == "ab" * 16
    folder.close()
