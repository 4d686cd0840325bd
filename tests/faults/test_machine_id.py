"""Machines without an id (containers): a device keeps its identity across starts, and copies are detected."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import uuid
from pathlib import Path

import pytest

from ipfsmem.device import identity
from ipfsmem.errors import NoVaultError
from ipfsmem.memory import Memory
from ipfsmem.wallet.root_keys import RootKeys

ROOT = RootKeys.from_random(b"\x03" * 64, "default", 1)


@pytest.fixture(autouse=True)
def _container(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine id, and another network address on each read."""
    monkeypatch.setattr(identity, "MACHINE_IDS", ())
    monkeypatch.setattr(uuid, "getnode", lambda: int.from_bytes(os.urandom(6), "big"))


@pytest.fixture
def stick(tmp_path: Path) -> str:
    (tmp_path / "stick").mkdir()
    return str(tmp_path / "stick")


def start(home: Path, stick: str) -> tuple[str, list[str]]:
    """Return the device's id after a sync, and the ids of all members except the root's, for one start of
    a container."""
    memory = Memory.load(
        "m", "encrypted-ipfs", provider=stick, unlock=ROOT, passphrase=False, home=home, create=True
    )
    with memory:
        memory.write("k", uuid.uuid4().hex)
        asyncio.run(memory.sync())
        assert memory.replica.ring is not None
        return memory.device, [person.id for person in memory.members.list() if person.role != "admin"]


def test_container_keeps_its_device_across_starts(tmp_path: Path, stick: str) -> None:
    seen = {start(tmp_path / "home", stick)[0] for _ in range(4)}
    assert len(seen) == 1
    assert start(tmp_path / "home", stick)[1] == [*seen]
    assert len((tmp_path / "home" / ".machine").read_text("ascii").split()) == 2


@pytest.mark.parametrize("what", ["the home", "the memory's folder"])
def test_copied_home_or_vault_gets_another_device_id(tmp_path: Path, stick: str, what: str) -> None:
    first, _ = start(tmp_path / "home", stick)
    if what == "the home":
        shutil.copytree(tmp_path / "home", tmp_path / "copy")
    else:
        (tmp_path / "copy").mkdir()
        start(tmp_path / "copy" / "x", stick)
        shutil.copytree(tmp_path / "home" / "m", tmp_path / "copy" / "m")
    second, _ = start(tmp_path / "copy", stick)
    assert second != first
    assert start(tmp_path / "copy", stick)[0] == second, "and it stays that one"
    assert start(tmp_path / "home", stick)[0] == first


def test_equal_inode_on_another_machine_is_distinguished_by_the_id(tmp_path: Path) -> None:
    """Fresh disks with the same contents have equal inodes."""
    file = tmp_path / "one" / "m" / "state.db"
    file.parent.mkdir(parents=True)
    file.touch()
    before = identity.place(file)
    assert identity.place(file) == before
    (tmp_path / "one" / ".machine").unlink()
    assert identity.place(file) != before
    known = identity.place(file)
    text = (tmp_path / "one" / ".machine").read_text("ascii")
    for wrong in ("", "x", text.split()[0], f"{text.split()[0]} 1", "a b c"):
        (tmp_path / "one" / ".machine").write_text(wrong, "ascii")
        assert identity.place(file) != known
        known = identity.place(file)
        assert identity.place(file) == known


def test_machine_with_an_id_writes_no_file(
    tmp_path: Path, stick: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "machine-id"
    named.write_text("0123456789abcdef\n")
    monkeypatch.setattr(identity, "MACHINE_IDS", (str(tmp_path / "none"), str(named)))
    start(tmp_path / "home", stick)
    assert not (tmp_path / "home" / ".machine").exists()


def test_unwritable_home_falls_back_to_the_inode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m" / "state.db"
    file.parent.mkdir()
    file.touch()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    assert identity.place(file) == identity.place(file)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_failed_restore_leaves_no_home(tmp_path: Path, stick: str) -> None:
    with pytest.raises(NoVaultError):
        asyncio.run(
            Memory.recover("m", provider=stick, unlock=ROOT, passphrase=False, home=tmp_path / "home")
        )
    assert not (tmp_path / "home").exists()
