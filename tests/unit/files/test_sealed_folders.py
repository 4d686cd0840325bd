"""Linked folders of an encrypted vault: plain text is in the folder only, not elsewhere on the disk or at the provider."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.device.collection import collect
from ipfsmem.device.tables.sealed_tracked_files import SealedTrackedFiles
from ipfsmem.errors import IpfsmemError, StorageError
from ipfsmem.memory import Memory
from ipfsmem.mode import ModeName
from tests.support.device_lab import ROOT
from tests.support.device_lab import Lab as SimLab
from tests.support.files_lab import Lab
from tests.support.folder_lab import FolderLab

MODE: ModeName = "encrypted-ipfs"


class _WithFolders(SimLab):
    """Devices of one sealed vault, each with a linked folder."""

    def memory_dir(self, name: str) -> Path | None:
        place = self.folder / f"files-{name}"
        place.mkdir(exist_ok=True)
        return place


class SimDevices(_WithFolders):
    """Devices on a simulated provider."""


class Devices(_WithFolders, FolderLab):
    """Devices on one folder as provider."""

    def files(self, name: str) -> dict[str, bytes]:
        place = self.folder / f"files-{name}"
        return {path.name: path.read_bytes() for path in place.glob("*.md")}


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[Devices]:
    made = Devices(tmp_path)
    yield made
    made.close()


def stored(*places: Path) -> Iterator[tuple[Path, bytes]]:
    """Return every file below these paths, including its name."""
    for place in places:
        for path in place.rglob("*"):
            if path.is_file():
                yield path, os.fsencode(path.name) + b"\0" + path.read_bytes()


def assert_nowhere(words: Iterable[bytes], *places: Path) -> None:
    """Check that no word occurs, nor its SHA-256 as bytes or digits, nor that of its file's name."""
    secrets = [
        word for text in words for word in (text, sha256(text).digest(), sha256(text).hexdigest().encode())
    ]
    seen = 0
    for path, data in stored(*places):
        seen += 1
        assert not [secret for secret in secrets if secret in data], path
    assert seen


def words_of(place: Path) -> set[bytes]:
    """Return the texts of a folder, their names and their lines."""
    found: set[bytes] = set()
    for path in place.rglob("*"):
        if path.is_file() and path.name not in (".gitignore", "marker"):
            data = path.read_bytes()
            found |= {data, os.fsencode(path.name), *(line for line in data.split(b"\n") if len(line) > 7)}
    return {word for word in found if b"canary" in word.lower()}


def test_plain_text_of_sealed_vault_exists_only_in_linked_folder(devices: Devices) -> None:
    """After each step, neither the vault folder nor the provider has a text, a name or its hash, also while the
    database is open."""
    folder = devices.folder / "files-a"
    folder.mkdir()
    (folder / "Canary Foreign.md").write_bytes(
        b"---\nname: Canary name\ndescription: canary-description\n---\ncanary-text\n"
    )
    (folder / "MEMORY.md").write_bytes(b"# Mine\n\ncanary-line-of-the-index\n")
    a = devices.create("a")
    seen: set[bytes] = set()

    def check() -> None:
        nonlocal seen
        seen |= words_of(devices.folder)
        assert_nowhere(seen, devices.home("a"), devices.shared)

    check()
    assert len(seen) >= 6
    a.write(
        "canary-key",
        "canary-body\n\nlast",
        name="Canary-name",
        description="canary-about",
        tags=["canary-tag"],
    )
    a.note("canary-event", text="canary-said")
    scope = devices.folder / "canary-place"
    a.folders.attach(scope, scope="canary-scope", timeline=True)
    a.scope("canary-scope").write("canary-other", "canary-in-the-scope")
    check()
    path = folder / "canary-key.md"
    before = path.read_bytes()
    path.write_bytes(before + b"canary-edit\n")
    a.folders.scan()
    check()
    # Replaced texts are set aside; a late change is merged with a text that the state no longer has.
    late = path.open("ab", buffering=0)
    a.write("canary-key", "canary-new\n\nlast", seen=a.read("canary-key"))
    late.write(b"canary-late\n")
    late.close()
    a.folders.scan()
    a.folders.render()
    check()
    (folder / "canary-key.conflict-00000000.md").write_bytes(b"canary-copy\n")
    (folder / "MEMORY.md").write_bytes((folder / "MEMORY.md").read_bytes() + b"canary-added-to-the-index\n")
    path.write_bytes(before)  # the text returns
    a.folders.scan()
    check()
    devices.sync(a)
    check()
    a.forget("canary-key")
    (folder / "Canary Foreign.md").unlink()
    a.folders.scan()
    a.folders.pause(folder)
    check()
    assert len(seen) > 25
    devices.close()
    check()
    again = devices.open("a")
    again.folders.resume(folder, keep="folder")
    again.folders.detach(scope)
    again.folders.detach(folder)
    again.close()
    check()


def test_sealed_vault_without_a_folder_writes_no_plain_file(tmp_path: Path) -> None:
    with Memory.create("x", MODE, home=tmp_path / "home", passphrase=False) as memory:
        memory.write("tone", "direct")
        assert [*memory.folders.list()] == []
        memory.folders.scan()
        memory.folders.render()
    with Memory.load("x", home=tmp_path / "home") as memory:
        assert [*memory.folders.list()] == []
    assert not [
        path for path in tmp_path.rglob("*") if path.suffix in (".md", ".jsonl") or path.name == "memory"
    ]


def test_folders_of_two_devices_converge(devices: Devices) -> None:
    for name, other in (("a", b"common\n\nas a has it\n"), ("b", b"common\n\nas b has it\n")):
        place = devices.memory_dir(name)
        assert place is not None
        (place / f"only_{name}.md").write_bytes(b"of %s\n" % name.encode())
        (place / "same.md").write_bytes(b"the same\n")
        (place / "differs.md").write_bytes(other)
        (place / "MEMORY.md").write_bytes(
            b"# Memory\n\n- [only](only_%s.md) %s\n" % (name.encode(), name.encode())
        )
    stood = {name: devices.files(name) for name in "ab"}
    a = devices.create("a")
    assert devices.files("a") == stood["a"] | {"MEMORY.md": devices.files("a")["MEMORY.md"]}
    devices.sync(a)
    b = devices.restore("b")
    for _ in range(2):
        devices.sync(b)
        devices.sync(a)
    assert devices.files("a").keys() == devices.files("b").keys()
    shown = devices.files("a")
    assert shown == devices.files("b")
    assert {"only_a.md", "only_b.md", "same.md", "differs.md"} < shown.keys()
    for name in "ab":
        for file, data in stood[name].items():
            lines = {line for text in shown.values() for line in text.split(b"\n")}
            assert set(data.split(b"\n")) <= lines, (name, file)
    # Concurrent edits of two lines of one memory.
    same = a.read("only_a")
    assert same is not None
    for name, old, new in (("a", b"of a", b"of a, edited"), ("b", b"of b", b"of b, edited")):
        path = devices.folder / f"files-{name}" / f"only_{name}.md"
        path.write_bytes(path.read_bytes().replace(old, new))
    devices.settle(a, b)
    assert devices.files("a") == devices.files("b")
    assert devices.files("a")["only_a.md"] == b"of a, edited\n"
    assert devices.files("b")["only_b.md"] == b"of b, edited\n"


def test_merge_bases_of_a_file_are_deleted_with_its_memory(tmp_path: Path) -> None:
    """They are stored sealed next to the state."""
    lab = Lab(tmp_path, mode=MODE)
    lab.start()
    renders = lab.copy._tracked_files
    assert isinstance(renders, SealedTrackedFiles)

    def kept() -> int:
        return int(renders._db.execute("SELECT count(*) FROM file_texts").fetchone()[0])

    for n in range(30):
        lab.memory.write_text("log", b"%d\n" % n)
        lab.clock.advance(300)
        lab.look()
    lab.memory.write_text("log", b"last\n")
    lab.clock.advance(300)
    lab.look()
    lab.memory.write_text("log", b"very last\n")
    assert kept() <= 3
    lab.memory.forget("log")
    assert kept() == 0
    lab.memory.close()


def test_swapped_row_of_a_linked_folder_is_ignored(tmp_path: Path) -> None:
    """Each row is sealed with the name of its file."""
    lab = Lab(tmp_path, mode=MODE)
    lab.start()
    for key in ("one", "two"):
        lab.memory.write_text(key, b"%s\n" % key.encode())
    lab.memory.close()
    lab.reopen()
    db = lab.memory.replica.db.connection
    renders = lab.copy._tracked_files
    assert isinstance(renders, SealedTrackedFiles)
    name = {file: renders._file(file) for file in ("one.md", "two.md")}
    (one,) = db.execute("SELECT text FROM renders WHERE file=?", (name["one.md"],)).fetchone()
    with lab.memory.replica.transaction():
        db.execute("UPDATE renders SET text=? WHERE file=?", (one, name["two.md"]))
    assert renders.get("two.md") is None and renders.get("one.md") is not None
    (lab.dir / "two.md").write_bytes(b"two, edited\n")
    lab.look()
    assert lab.texts() >= {b"one\n", b"two\n", b"two, edited\n"}
    lab.memory.close()


def test_rotated_keys_and_a_copied_home_change_no_file(devices: Devices) -> None:
    """Rows are sealed with the device's own key: a new epoch key or device id makes no edits."""
    a = devices.create("a")
    for n in range(3):
        a.write(f"m{n}", f"text {n}")
    before = devices.files("a")
    devices.sync(a)
    a.unlock(ROOT)
    asyncio.run(a.members.rotate())
    devices.sync(a)
    assert devices.files("a") == before
    devices.close()
    again = devices.open("a")
    (devices.folder / "files-a" / "m0.md").write_bytes(before["m0.md"] + b"more\n")
    again.folders.scan()
    assert not again.conflicts() and again.read("m0").data.endswith(b"more\n")  # type: ignore[union-attr]


def test_home_of_another_vault_opens_no_row(tmp_path: Path) -> None:
    """The rows of two vaults with the same files have nothing in common."""
    rows = []
    for n in range(2):
        lab = Lab(tmp_path / str(n), mode=MODE, seed=n)
        lab.start()
        lab.memory.write_text("tone", b"the same\n")
        found = lab.memory.replica.db.connection.execute(
            "SELECT file, key, body, fold, mark FROM renders"
        ).fetchall()
        rows.append({value for row in found for value in row if value})
        lab.memory.close()
    assert rows[0] and not rows[0] & rows[1]


# -- a folder named at creation ---------------------------------------------------------------------------------------


def test_create_with_unusable_folder_leaves_no_vault_behind(tmp_path: Path) -> None:
    place, victim = tmp_path / "agent", tmp_path / "victim"
    for folder in (place, victim):
        folder.mkdir()
    (place / "role.md").write_bytes(b"firmware\n")
    (place / ".ipfsmem").mkdir()
    (place / ".ipfsmem" / "aside").symlink_to(victim)
    for _ in range(2):
        with pytest.raises(StorageError, match="symbolic link"):
            Memory.create("x", MODE, home=tmp_path / "home", memory_dir=place, passphrase=False)
        assert not (tmp_path / "home" / "x").exists() and not list(victim.iterdir())
    (place / ".ipfsmem" / "aside").unlink()
    with Memory.create("x", MODE, home=tmp_path / "home", memory_dir=place, passphrase=False) as memory:
        assert memory.recovery_words and memory.read("role") is not None


def test_failed_restore_leaves_the_folder_usable_for_the_next_one(tmp_path: Path) -> None:
    lab = SimDevices(tmp_path)
    a = lab.create("a")
    a.write("tone", "direct")
    lab.sync(a)
    place = lab.memory_dir("b")
    assert place is not None
    (place / "mine.md").write_bytes(b"of b\n")
    failed = 0
    while True:
        for number in range(failed + 1, 400):
            lab.provider("b").fail_call(number)
        try:
            b = lab.restore("b")
        except IpfsmemError:
            failed += 1
            lab.provider("b").stop_failing()
            assert {path.name for path in place.iterdir()} >= {"mine.md"} and not (
                place / ".ipfsmem"
            ).exists()
            assert not (lab.home("b") / "alex").exists()
        else:
            break
    assert failed > 3
    lab.provider("b").stop_failing()
    lab.sync(b)
    assert b.files().keys() >= {"tone", "mine"} and (place / "tone.md").exists()
    lab.close()


# -- other operations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["ipfs", MODE])
def test_revoked_device_unlinks_its_folders_and_every_file_remains(tmp_path: Path, mode: ModeName) -> None:
    lab = SimDevices(tmp_path)
    lab.mode = mode
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    b.write("tone", "direct")
    lab.settle(a, b)
    second = tmp_path / "second"
    b.folders.attach(second)
    (second / "late.md").write_bytes(b"never published\n")
    asyncio.run(a.members.revoke(b.device))
    lab.sync(a)
    with contextlib.suppress(IpfsmemError):
        lab.sync(b)
    assert [*b.folders.list()] == []
    for place in (second, tmp_path / "files-b"):
        assert (place / "tone.md").exists() and (place / "late.md").read_bytes() == b"never published\n"
        assert not (place / ".ipfsmem").exists()
    assert b.read("late") is not None
    (second / "late.md").write_bytes(b"edited\n")
    b.folders.scan()
    assert b.read("late").data == b"never published\n"  # type: ignore[union-attr]
    lab.close()


def test_collection_keeps_the_merge_base_of_an_outdated_file(tmp_path: Path) -> None:
    lab = SimDevices(tmp_path)
    a = lab.create("a")
    lines = b"\n".join(b"line %d" % n for n in range(9)) + b"\n"
    a.write_text("log", lines)
    lab.sync(a)
    b = lab.restore("b")
    b.folders.pause(tmp_path / "files-b")
    a.write_text("log", lines.replace(b"line 7", b"edited by a"), seen=a.read("log"))
    lab.sync(a)
    lab.sync(b)
    with b.replica.transaction():
        b.replica.store.checkpoint(folders=True)
        collect(b.replica.store, (), dry_run=False)
    path = tmp_path / "files-b" / "log.md"
    assert path.read_bytes() == lines
    path.write_bytes(lines.replace(b"line 1", b"edited in b"))
    b.folders.resume(tmp_path / "files-b", keep="folder")
    both = lines.replace(b"line 1", b"edited in b").replace(b"line 7", b"edited by a")
    assert b.read("log").data == both == path.read_bytes()  # type: ignore[union-attr]
    assert not b.conflicts()
    lab.close()


def test_forgotten_text_remains_in_no_linked_folder(tmp_path: Path) -> None:
    """Neither as file, conflict copy, file set aside, nor as merge base."""
    lab = Lab(tmp_path, mode=MODE)
    lab.start()
    second = tmp_path / "second"
    lab.memory.folders.attach(second)
    for n in range(3):
        lab.memory.write_text("log", b"canary %d\n" % n)
    lab.sibling("log", b"canary beside\n")
    assert len(list(tmp_path.rglob("*.md"))) > 4
    lab.memory.forget("log")
    for place in (second, lab.dir):
        assert not [path for path in place.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
    db = lab.memory.replica.db.connection
    assert db.execute("SELECT count(*) FROM file_texts").fetchone()[0] == 0
    # `undo` restores it in both.
    lab.memory.undo()
    assert (second / "log.md").read_bytes() == (lab.dir / "log.md").read_bytes() != b""
    lab.memory.close()


def test_detach_refuses_while_file_name_of_replaced_text_is_unknown(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path, mode=MODE)
    memory = lab.start()
    memory.write("tone", "first")
    memory.write("tone", "second")
    (aside,) = [path for path in (lab.dir / ".ipfsmem").rglob("*") if b"first" in read(path)]
    with memory.replica.transaction():
        run = memory.replica.db.connection.execute
        run("DELETE FROM asides")
        run("DELETE FROM earlier")
        run("UPDATE renders SET text=x'00' WHERE key != ''")
        run("UPDATE file_names SET name=x'00'")
    (lab.dir / "tone.md").unlink()  # else the next scan names it again
    with pytest.raises(StorageError, match=r"is kept in .*in which file is not known") as error:
        memory.folders.detach(lab.dir)
    assert str(aside) in str(error.value) and b"first" in read(aside)
    memory.folders.scan()
    assert any(str(aside) in notice for notice in memory.status().notices)
    aside.rename(lab.dir / "found.md")
    memory.folders.detach(lab.dir)
    memory.close()


def read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
