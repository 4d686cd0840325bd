"""What is taken for an unfinished memory and made anew, and what never is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ipfsmem import Memory
from ipfsmem.config import CONFIG_FILE
from ipfsmem.device import creation
from ipfsmem.device.tables import meta
from ipfsmem.errors import ConfigError, StorageError


def made(tmp_path: Path) -> Path:
    """The folder of a memory with a text, closed; its configuration is lost."""
    with Memory.create(mode="local", home=tmp_path) as memory:
        memory.write("tone", "direct")
    folder = tmp_path / "default"
    (folder / CONFIG_FILE).unlink()
    return folder


def test_a_database_that_cannot_be_read_now_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program that held it made it look like a half-made memory, which the next try removed."""
    folder = made(tmp_path)
    connect = sqlite3.connect
    with closing(connect(folder / "state.db", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN EXCLUSIVE")

        def at_once(path: Path, **_: Any) -> sqlite3.Connection:
            return connect(path, timeout=0.05)

        monkeypatch.setattr(sqlite3, "connect", at_once)
        with pytest.raises(StorageError, match="locked"), creation.folder_claimed(folder):
            pass
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="holds the state of a memory"), creation.folder_claimed(folder):
        pass


def test_a_memory_whose_maker_ended_too_early_says_so_by_itself_once_it_is_opened(tmp_path: Path) -> None:
    """A crash right after the configuration was written left a database that did not, and with the file lost it was made anew."""
    with Memory.create(mode="local", home=tmp_path) as memory:
        memory.write("tone", "direct")
        with memory.replica.transaction():
            meta.forget(memory.replica.db.connection, [meta.FINISHED])
    with Memory.load(home=tmp_path) as memory:
        assert memory.read("tone") is not None
    folder = tmp_path / "default"
    (folder / CONFIG_FILE).unlink()
    with pytest.raises(ConfigError, match="holds the state of a memory"), creation.folder_claimed(folder):
        pass
