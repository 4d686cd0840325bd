"""Vault files that are restored from a backup, moved or deleted while a process has them open."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ipfsmem.errors import StorageError
from ipfsmem.holding import Holder
from ipfsmem.memory import Memory
from tests.support.hints import hinted


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a vault that contains "old", and a backup of it."""
    (tmp_path / "stick").mkdir()
    home = tmp_path / "home"
    with Memory.create(
        "default", "encrypted-ipfs", provider=str(tmp_path / "stick"), passphrase=False, home=home
    ) as memory:
        memory.write("old", "x")
    shutil.copytree(home / "default", tmp_path / "backup")
    return home


def put_back(home: Path) -> None:
    (home / "default").rename(home.parent / "before")
    shutil.copytree(home.parent / "backup", home / "default")


def test_write_after_database_was_restored_from_backup_is_refused(home: Path) -> None:
    with Memory.load("default", home=home) as memory:
        memory.write("new", "x")
        put_back(home)
        with pytest.raises(StorageError, match=r"state\.db is not the file that is open here") as refused:
            memory.write("newer", "x")
        hinted(
            "Open the vault again (in Python: Memory.load), or restart this program.",
            str(refused.value.hint),
        )
        with pytest.raises(StorageError, match=r"state\.db is not the file that is open here"):
            memory.list()
    with Memory.load("default", home=home) as memory:
        assert [item.key for item in memory.list()] == ["old"]
        memory.write("newer", "x")


def test_database_replaced_while_open_refuses_writes(home: Path) -> None:
    with Memory.load("default", home=home) as memory:
        shutil.copy(home.parent / "backup" / "state.db", home / "state.db")
        (home / "state.db").replace(home / "default" / "state.db")
        with pytest.raises(StorageError, match="is not the file that is open here"):
            memory.write("newer", "x")


def test_moved_vault_is_not_read_at_its_former_path(home: Path) -> None:
    with Memory.load("default", home=home) as memory:
        home.rename(home.parent / "elsewhere")
        with pytest.raises(StorageError, match=r"state\.db is gone"):
            memory.read("old")
        with pytest.raises(StorageError, match=r"state\.db is gone|cannot lock"):
            memory.write("newer", "x")
    assert not home.exists()
    with Memory.load("default", home=home.parent / "elsewhere") as memory:
        assert memory.read("old") is not None


def test_holder_reopens_a_vault_restored_from_backup(home: Path) -> None:
    holder = Holder(lambda: Memory.load("default", home=home))
    holder.memory().write("new", "x")
    before = holder.mark()
    put_back(home)
    assert holder.mark() != before
    assert [item.key for item in holder.memory().list()] == ["old"]
    holder.memory().write("newer", "x")
    holder.close()
    with Memory.load("default", home=home) as memory:
        assert sorted(item.key for item in memory.list()) == ["newer", "old"]
