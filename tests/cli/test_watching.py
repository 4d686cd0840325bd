"""Linked folders while `sync --every` runs: edits are imported and published at once, and received texts are written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli_lab import KEY, Cli
from tests.support.extras import need_extra
from tests.support.keeping import Keeping
from tests.support.patience import PATIENCE


@pytest.fixture
def two(
    bare: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Cli, Path, Cli, Path]]:
    """Two devices of one wallet, each with a linked folder."""
    other = Cli(tmp_path / "second", monkeypatch)
    folders = tmp_path / "plain a", tmp_path / "plain b"
    for device, folder in zip((bare, other), folders, strict=True):
        folder.mkdir()
        device.ok("init", "--unprotected-keys", "--label", folder.name, key=KEY)
        device.ok("folder", "attach", str(folder))
    yield bare, folders[0], other, folders[1]


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, condition
        time.sleep(0.02)


def is_synced(line: str) -> bool:
    return "Up to date" in line or "Published" in line or "Nothing new" in line


def test_watched_folder_edit_is_published_and_received_text_written(
    two: tuple[Cli, Path, Cli, Path],
) -> None:
    """With the extra `watch`, without waiting for the interval."""
    need_extra("watch", "watchfiles")
    a, plain_a, b, plain_b = two
    keeping = Keeping(a, "--every", "1h")
    try:
        keeping.line(is_synced)
        (plain_a / "tone.md").write_text("Short answers.\n")
        keeping.line(lambda line: "Published" in line)
        assert "Short answers." in a.ok("read", "tone").out
        b.ok("sync")
        assert "Short answers." in (plain_b / "tone.md").read_text()
        (plain_b / "tone.md").write_text("Long answers.\n")
        b.ok("sync")
        (plain_a / "music.md").write_text("Bach.\n")  # publishing also imports the present files
        wait_until(lambda: "Long answers." in (plain_a / "tone.md").read_text())
        a.ok("write", "food", "--body", "Soup.")  # another process writes a file into the linked folder
        keeping.line(lambda line: "Published" in line)
    finally:
        assert keeping.end()[0] == 0
