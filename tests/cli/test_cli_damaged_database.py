"""Damaged bytes of `state.db`: salvage returns what can still be read and names the rest."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.causal.value import encode_entry
from ipfsmem.device.connection import DatabaseDamagedError
from ipfsmem.device.tables import held_texts, journal, meta, schema
from ipfsmem.errors import StorageError
from ipfsmem.files import folder, scan
from ipfsmem.memories.importing import read_path
from ipfsmem.memory import Memory
from tests.support.cli_lab import KEY, Cli
from tests.support.damage_lab import change_rows, flip, flip_value
from tests.support.patience import PATIENT_HOOKS
from tests.support.schema_fixture import unpack

TEXTS = {f"note-{n:02}": f"Text {n}." for n in range(12)}
LATER = {"note-03": "Text 3, once more.", "later": "Written after the last sync.", "last": "The last one."}


@pytest.fixture(params=["local", "sealed"])
def device(request: pytest.FixtureRequest, bare: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A vault whose tree holds some texts, and whose journal changes one of them and adds more. All plain
    files are treated as recently changed: otherwise opening the vault would record them in the database."""
    for module in (folder, scan):
        monkeypatch.setattr(module, "RACY", 2**62)
    if request.param == "local":
        bare.ok("init", "--mode", "local")
    else:
        bare.ok("init", "--unprotected-keys", key=KEY)
    with Memory.load(home=bare.home) as memory:
        for key, text in TEXTS.items():
            memory.write(key, text)
        memory.note("remark", text="in the tree")
        with memory.replica.transaction():
            memory.replica.store.checkpoint(folders=False)
        for key, text in LATER.items():
            memory.write(key, text)
        memory.note("remark", text="in the journal")
    return bare


def hashes(home: Path) -> dict[str, str]:
    return {
        path.name: sha256(path.read_bytes()).hexdigest()
        for path in home.iterdir()
        if path.name.startswith("state.db") and not path.name.endswith("-shm") and path.stat().st_size
    }


def export_damaged(device: Cli, into: Path, *, noted: bool = False) -> tuple[dict[str, str], list[str], str]:
    """Return what `export` writes of a damaged vault: texts by key, remarks, and its messages. The
    database must not change, except (`noted`) for the note that its tree is damaged."""
    home = device.home / "default"
    before = hashes(home)
    said = device("export", "--dir", str(into))
    assert said.code == 7 and "Traceback" not in said.err, said
    after = hashes(home)
    assert noted or after == before
    Memory.load_damaged(home=device.home).close()
    assert hashes(home) == after
    part = read_path(into)[""].blob
    texts = {key: data.decode().rpartition("---\n")[2].strip() for key, data in part.files.items()}
    remarks = [str(event["text"]) for event in part.events if event["type"] == "remark"]
    return texts, sorted(remarks), said.err


def check_commands_suggest_export(device: Cli) -> None:
    for call in (["list"], ["read", "last"], ["write", "more", "--body", "x"], ["status"]):
        said = device(*call)
        assert said.code == 30 and "ipfsmem export --dir DIR" in said.err, said


@pytest.mark.parametrize("name", [meta.STATE, meta.JOURNAL_CHAIN])
def test_damaged_state_or_chain_row_loses_no_text(device: Cli, tmp_path: Path, name: str) -> None:
    """Tree rows have hashes and journal rows have checksums."""
    flip_value(device.home / "default", name)
    check_commands_suggest_export(device)
    texts, remarks, said = export_damaged(device, tmp_path / "out")
    assert texts == TEXTS | LATER and remarks == ["in the journal", "in the tree"]
    assert repr(name) in said
    assert "import DIR --from-backup" in said


def test_one_damaged_copy_of_two_stops_no_command(device: Cli) -> None:
    home = device.home / "default"
    sealed = device.ok("status", "--json").json["mode"] != "local"
    for name in (meta.STATE, *((meta.RING,) if sealed else ())):
        flip(home, "value FROM meta WHERE name=?", name)
    assert "The last one." in device.ok("read", "last").out
    device.ok("write", "more", "--body", "x")
    assert "x" in device.ok("read", "more").out


def test_damaged_journal_row_loses_only_its_own_change(device: Cli, tmp_path: Path) -> None:
    rng = random.Random(5)
    home, kept = device.home / "default", tmp_path / "kept"
    with Memory.load(home=device.home) as memory:
        numbers = [seq for seq, _ in journal.rows(memory.replica.db.connection)]
    assert len(numbers) == 4
    shutil.copytree(home, kept)
    costs = [*({key} for key in LATER), {"in the journal"}]
    for at, (number, cost) in enumerate(zip(numbers, costs, strict=True)):
        flip(home, "row FROM journal WHERE seq=?", number, at=rng.random())
        check_commands_suggest_export(device)
        texts, remarks, said = export_damaged(device, tmp_path / f"out-{at}")
        wanted = TEXTS | {key: text for key, text in LATER.items() if key not in cost}
        assert texts == wanted and ("in the journal" in remarks) == ("in the journal" not in cost)
        assert f"the change {number}:" in said
        shutil.rmtree(home)
        shutil.copytree(kept, home)
    assert device("export", "--dir", str(tmp_path / "whole")).code == 0


def test_encrypted_vault_without_its_key_ring_names_every_text(
    bare: Cli, stick: Path, tmp_path: Path
) -> None:
    """No remaining key opens the texts, but their names can be read, and all are named."""
    bare.ok("init", "--unprotected-keys", key=KEY)
    bare.ok("write", "tone", "--body", "Short.")
    flip_value(bare.home / "default", meta.RING)
    check_commands_suggest_export(bare)
    texts, _, said = export_damaged(bare, tmp_path / "out")
    assert texts == {} and "encryption keys" in said and "tone" in said


def test_damaged_tree_block_loses_only_its_own_texts(device: Cli, tmp_path: Path) -> None:
    """The export meets the damage, not the opening of the vault."""
    home = device.home / "default"
    flip(home, "data FROM blocks WHERE digest=(SELECT file FROM nodes WHERE prefix=?)", "", at=0.4)
    said = device("export", "--dir", str(tmp_path / "out"))
    assert said.code == 7 and "a part of the memory (top)" in said.err, said
    assert set(read_path(tmp_path / "out")[""].blob.files) == set(LATER)


def test_every_export_format_returns_the_salvaged_texts(device: Cli, tmp_path: Path) -> None:
    flip_value(device.home / "default", meta.STATE)
    for option in ("--zip", "--plain-car", "--out"):
        assert device("export", option, str(tmp_path / option[2:])).code == 7
        found = read_path(tmp_path / option[2:])[""].blob
        assert set(found.files) == {*TEXTS, *LATER}
    printed = device("export")
    assert printed.code == 7 and '"The last one.' not in printed.err and "The last one." in printed.out
    assert device("export", "--zip", str(tmp_path / "agreed"), "--partial").code == 0
    assert device("export", "--zip", str(tmp_path / "json"), "--json").code == 7
    inside = device.home / "default" / "out"
    assert device("export", "--dir", str(inside)).code == 2 and not inside.exists()


def test_salvaged_texts_are_imported_into_a_new_vault(device: Cli, tmp_path: Path) -> None:
    """Follow the hint to its end."""
    flip_value(device.home / "default", meta.STATE)
    export_damaged(device, tmp_path / "out")
    device.home.rename(tmp_path / "moved away")
    device.ok("init", "--mode", "local")
    device.ok("import", str(tmp_path / "out"), "--from-backup")
    assert "The last one." in device.ok("read", "last").out


def test_salvage_after_random_bit_flips_returns_only_written_texts(device: Cli, tmp_path: Path) -> None:
    """Fixed seed; missing texts are reported."""
    home, kept = device.home / "default", tmp_path / "kept"
    with Memory.load(home=device.home) as memory:
        memory.replica.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(home, kept)
    data = (home / "state.db").read_bytes()
    rng = random.Random(7)
    written = {key: {text} for key, text in (TEXTS | LATER).items()}
    written["note-03"].add(TEXTS["note-03"])
    whole = 0
    for _ in range(60):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (home / "state.db").write_bytes(changed)
        for tail in ("-wal", "-shm"):
            (home / f"state.db{tail}").unlink(missing_ok=True)
        try:
            memory = Memory.load_damaged(home=device.home)
        except StorageError:
            continue  # nothing can be read, as reported
        with memory:
            left = memory.bundles.left_out()
            texts = {
                key: text.decode().rpartition("---\n")[2].strip() for key, text in memory.files().items()
            }
        assert all(text in written[key] for key, text in texts.items())
        assert left or texts == TEXTS | LATER
        whole += texts == TEXTS | LATER
    assert whole > 40


STATE_GONE = "DELETE FROM meta WHERE name IN ('state', 'copy of state')"
LAST_CHANGE_GONE = "DELETE FROM journal WHERE seq=(SELECT max(seq) FROM journal)"
CHAIN_GONE = "DELETE FROM meta WHERE name='journal'"
TREE_GONE = "DELETE FROM nodes"


@pytest.mark.parametrize(
    "gone", [[STATE_GONE], [LAST_CHANGE_GONE], [CHAIN_GONE], [TREE_GONE], [STATE_GONE, TREE_GONE]], ids=str
)
def test_deleted_rows_are_reported_as_missing(device: Cli, tmp_path: Path, gone: list[str]) -> None:
    change_rows(device.home / "default", *gone)
    texts, _, said = export_damaged(device, tmp_path / "out", noted=True)
    assert texts.items() <= (TEXTS | LATER).items() and texts
    assert "may be missing" in said or "a part of the memory (top)" in said


@pytest.mark.parametrize("gone", [LAST_CHANGE_GONE, CHAIN_GONE])
def test_deleted_rows_of_a_vault_without_a_tree_are_reported(bare: Cli, tmp_path: Path, gone: str) -> None:
    bare.ok("init", "--mode", "local")
    for key in ("first", "second"):
        bare.ok("write", key, "--body", "x")
    change_rows(bare.home / "default", gone)
    texts, _, said = export_damaged(bare, tmp_path / "out")
    assert "first" in texts and "may be missing" in said


def test_salvage_of_outdated_tree_row_does_not_pass_for_the_newest(device: Cli, tmp_path: Path) -> None:
    """The row has a valid hash, of a text forgotten since."""
    home = device.home / "default"
    with Memory.load(home=device.home) as memory:
        replica = memory.replica
        (old,) = replica.db.connection.execute("SELECT hash, file, size FROM nodes").fetchall()
        block = replica.db.block(old[1])
        memory.forget("note-05")
        with replica.transaction():
            replica.store.checkpoint(folders=False)
            assert block is not None
            replica.db.add_blocks([(old[1], block)])
    change_rows(home, f"UPDATE nodes SET hash=x'{old[0].hex()}', file=x'{old[1].hex()}', size={old[2]}")
    texts, _, said = export_damaged(device, tmp_path / "out", noted=True)
    assert texts["note-03"] == TEXTS["note-03"] and "may be older" in said


def test_deleted_tree_branch_is_reported_as_missing(bare: Cli, tmp_path: Path) -> None:
    """Only the parent row shows that a branch is missing."""
    bare.ok("init", "--mode", "local")
    (tmp_path / "notes").mkdir()
    for n in range(80):
        (tmp_path / "notes" / f"note-{n}.md").write_text(f"Text {n}.")
    bare.ok("import", str(tmp_path / "notes"))
    with Memory.load(home=bare.home) as memory, memory.replica.transaction():
        memory.replica.store.checkpoint(folders=False)
    change_rows(bare.home / "default", "DELETE FROM nodes WHERE prefix='a'")
    texts, _, said = export_damaged(bare, tmp_path / "out", noted=True)
    assert 60 < len(texts) < 80 and "a part of the memory (a)" in said


def test_second_copy_of_a_row_replaces_the_first_and_is_deleted_with_it(device: Cli) -> None:
    home = device.home / "default"
    change_rows(home, "DELETE FROM meta WHERE name IN ('state', 'ring')")
    assert "The last one." in device.ok("read", "last").out
    with Memory.load(home=device.home) as memory, memory.replica.transaction():
        db = memory.replica.db.connection
        meta.put(db, meta.RING, b"x")
        meta.forget(db, [meta.RING])
        assert meta.get(db, meta.RING) is None


def test_public_vault_without_its_key_ring_trusts_only_this_device(
    bare: Cli, stick: Path, tmp_path: Path
) -> None:
    """The key ring maps devices to owners."""
    bare.ok("init", "--mode", "ipfs", key=KEY)
    bare.ok("write", "tone", "--body", "Short.")
    flip_value(bare.home / "default", meta.RING)
    with Memory.load_damaged(home=bare.home) as memory:
        assert memory.replica.is_mine(memory.replica.device.id) and not memory.replica.is_mine("0" * 16)
    texts, _, said = export_damaged(bare, tmp_path / "out")
    assert texts == {"tone": "Short."} and "the authors are unknown" in said


def test_salvage_returns_own_replaced_texts_and_names_a_damaged_one(device: Cli) -> None:
    with Memory.load(home=device.home) as memory, memory.replica.transaction():
        replica = memory.replica
        entry = replica.store.entry("m/note-01")
        row = replica.codec.seal_row(encode_entry(entry))
        for mark, kept in ((b"a", row), (b"b", b"{"), (b"c", row[:-1])):
            held_texts.keep(replica.db.connection, mark * 16, kept)
        (loc,) = (value.loc for value in entry.values())
    with Memory.load(home=device.home) as memory:
        memory.write("note-01", "Another text.")
    flip_value(device.home / "default", meta.JOURNAL_CHAIN)
    with Memory.load_damaged(home=device.home) as memory:
        assert held_texts.all_kept(memory.replica.db.connection) == [row]
        assert loc is not None and memory.replica.db.has_block(bytes.fromhex(loc.sha))
        assert any("own text" in lost for lost in memory.replica.lost)


def test_renamed_table_loses_only_its_own_texts(device: Cli, tmp_path: Path) -> None:
    """As after a bit flip in the schema."""
    change_rows(device.home / "default", "ALTER TABLE nodes RENAME TO nodet")
    texts, _, said = export_damaged(device, tmp_path / "out")
    assert texts == LATER and "no such table: nodes" in said


def test_empty_database_file_is_refused_without_suggesting_an_export(bare: Cli, tmp_path: Path) -> None:
    bare.ok("init", "--mode", "local")
    with Memory.load(home=bare.home) as memory:
        memory.replica.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (bare.home / "default" / "state.db").write_bytes(b"")
    for call in (["read", "tone"], ["export", "--dir", str(tmp_path / "out")]):
        said = bare(*call)
        assert said.code == 30 and "ipfsmem export" not in said.err and "Move the folder away" in said.err


def test_database_upgrade_adds_no_checksum_to_damaged_rows(tmp_path: Path) -> None:
    """Rows of version 2 have no checksums; the hash over all rows is verified before the upgrade."""
    home = tmp_path / "default"
    unpack(schema.FIRST, "plain", home)
    flip(home, "row FROM journal WHERE seq=(SELECT min(seq) FROM journal) AND 1=?", 1)
    with pytest.raises(DatabaseDamagedError):
        Memory.load("default", home=tmp_path)
    with Memory.load_damaged("default", home=tmp_path) as memory:
        assert memory.bundles.left_out().lost and memory.files()
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (schema.FIRST,)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_salvage_from_a_full_disk_succeeds(device: Cli) -> None:
    """The database cannot be opened as usual."""
    import resource

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    for name in ("state.db-wal", "state.db-shm"):
        assert not (device.home / "default" / name).exists()
    there = {**os.environ, "IPFSMEM_HOME": str(device.home)}
    words = [sys.executable, "-m", "ipfsmem.cli"]
    read = subprocess.run([*words, "list"], env=there, capture_output=True, preexec_fn=full, timeout=60)
    assert read.returncode == 0 and b": reading the saved state" in read.stderr
    assert {line.split(b"\t")[0].decode() for line in read.stdout.splitlines()} == set(TEXTS | LATER)
    said = json.dumps({"session_id": "s", "prompt": "what is in text 7?"}).encode()
    for event, keys in (("session-start", set(TEXTS | LATER)), ("prompt", {"note-07"})):
        hook = [sys.executable, "-c", PATIENT_HOOKS, "hook", event, "--program", "claude-code"]
        given = subprocess.run(hook, env=there, input=said, capture_output=True, preexec_fn=full, timeout=60)
        context = json.loads(given.stdout)["hookSpecificOutput"]["additionalContext"]
        assert keys <= set(re.findall(r"[a-z]+(?:-\d+)?", context)), given.stderr
    done = subprocess.run([*words, "export"], env=there, capture_output=True, preexec_fn=full, timeout=60)
    assert done.returncode == 0 and b": exporting the imported data so far" in done.stderr
    brought = json.loads(done.stdout)["files"]
    assert brought.keys() == {f"{key}.md" for key in TEXTS | LATER}
    assert all(text in brought[f"{key}.md"] for key, text in (TEXTS | LATER).items())


def test_sessions_stored_only_on_this_device_are_counted_in_the_report(
    device: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[sessions]\nhere_only = true\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    for name in ("one", "two"):
        device.ok("session", "add", name, stdin=b'{"role": "user", "content": "a"}\n{"content": "b"}')
    flip_value(device.home / "default", meta.STATE)
    _, _, said = export_damaged(device, tmp_path / "out")
    assert "2 sessions kept on this device only" in said
