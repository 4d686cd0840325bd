"""A hidden file gets its name back unless the name is taken; only regular files are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipfsmem.device.shared_folder import SharedFolder


def test_hidden_file_gets_its_name_back_unless_it_is_taken(tmp_path: Path) -> None:
    folder = SharedFolder(tmp_path, "packs")
    folder.path.mkdir()
    (folder.path / "hidden").write_text("first")
    folder.restore("hidden", "name")
    assert (folder.path / "name").read_text() == "first" and not (folder.path / "hidden").exists()
    (folder.path / "hidden").write_text("second")
    with pytest.raises(FileExistsError):
        folder.restore("hidden", "name")
    assert (folder.path / "name").read_text() == "first" and (folder.path / "hidden").read_text() == "second"


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_not_a_regular_file_is_a_missing_file(tmp_path: Path, kind: str) -> None:
    folder = SharedFolder(tmp_path, "packs")
    folder.path.mkdir()
    if kind == "folder":
        (folder.path / "name").mkdir()
    else:
        (tmp_path / "elsewhere").write_text("text")
        (folder.path / "name").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        folder.open_file("name")
