"""Unfinished vaults are recognised and created again, and finished ones never are."""

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
    """The folder of a closed vault with a text, whose configuration is lost."""
    with Memory.create(mode="local", home=tmp_path) as memory:
        memory.write("tone", "direct")
    folder = tmp_path / "default"
    (folder / CONFIG_FILE).unlink()
    return folder


def test_claim_of_a_folder_with_a_locked_database_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    with pytest.raises(ConfigError, match="has the state of a vault"), creation.folder_claimed(folder):
        pass


def test_vault_with_interrupted_creation_is_finished_when_opened(tmp_path: Path) -> None:
    with Memory.create(mode="local", home=tmp_path) as memory:
        memory.write("tone", "direct")
        with memory.replica.transaction():
            meta.forget(memory.replica.db.connection, [meta.FINISHED])
    with Memory.load(home=tmp_path) as memory:
        assert memory.read("tone") is not None
    folder = tmp_path / "default"
    (folder / CONFIG_FILE).unlink()
    with pytest.raises(ConfigError, match="has the state of a vault"), creation.folder_claimed(folder):
        pass


def test_vault_whose_creation_fails_late_is_kept_with_its_phrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails right after the configuration was written."""

    def full(_: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(creation, "note_finished_in_database", full)
        made = Memory.create(mode="encrypted-ipfs", passphrase=False, home=tmp_path)
    with made as memory:
        assert memory.recovery_words is not None
        memory.write("tone", "direct")
    with Memory.load(home=tmp_path) as memory:
        assert memory.read("tone") is not None


def test_unflushed_configuration_leaves_no_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = creation.write_config

    def unflushed(*given: Any) -> None:
        write(*given)
        raise StorageError("the disk reported an error")

    with monkeypatch.context() as patch:
        patch.setattr(creation, "write_config", unflushed)
        with pytest.raises(StorageError):
            Memory.create(mode="encrypted-ipfs", passphrase=False, home=tmp_path)
    assert not (tmp_path / "default" / CONFIG_FILE).exists()
    with Memory.create(mode="encrypted-ipfs", passphrase=False, home=tmp_path) as memory:
        assert memory.recovery_words is not None
