"""`ipfsmem unlock` and `ipfsmem lock`: other processes need no passphrase in between."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.vault.unlocking import lock_device
from tests.support.cli_lab import KEY, Cli, pipe, program
from tests.support.hints import hinted
from tests.support.unlock_lab import PASSPHRASE, held_keys, needs_kernel_keyring, runtime_files

pytestmark = needs_kernel_keyring


@pytest.fixture
def guarded(bare: Cli, stick: Path, runtime: Path) -> Iterator[Cli]:
    """A device with an encrypted vault under a passphrase."""
    bare.ok("init", "--no-wallet", "--passphrase-fd", str(pipe(PASSPHRASE)))
    yield bare
    lock_device(bare.home / "default")


def unlock(cli: Cli, *more: str) -> None:
    cli.ok("unlock", "--passphrase-fd", str(pipe(PASSPHRASE)), *more)


def run(cli: Cli, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run in a separate process without a passphrase or terminal."""
    return program(*arguments, env={**os.environ, "IPFSMEM_HOME": str(cli.home)}, stdin=subprocess.DEVNULL)


def test_owner_command_requires_the_passphrase_while_unlocked(guarded: Cli) -> None:
    unlock(guarded)
    done = run(guarded, "member", "rotate")
    assert done.returncode == 22 and b"passphrase" in done.stderr
    guarded.ok("member", "rotate", "--passphrase-fd", str(pipe(PASSPHRASE)))
    assert run(guarded, "list").returncode == 0


def test_processes_need_no_passphrase_between_unlock_and_lock(guarded: Cli) -> None:
    assert run(guarded, "write", "tone", "--body", "Short.").returncode == 22
    unlock(guarded, "--for", "5m")
    assert run(guarded, "write", "tone", "--body", "Short.").returncode == 0
    assert b"Short." in run(guarded, "read", "tone").stdout
    assert "unlocked   until" in guarded.ok("status").out
    assert isinstance(guarded.ok("status", "--json").json["unlocked_until"], int)
    assert guarded.ok("lock", "--json").json == {"was_unlocked": True, "lost": []}
    assert run(guarded, "read", "tone").returncode == 22
    assert guarded.ok("lock").out == "Already locked.\n"
    assert runtime_files() == [] and held_keys(guarded.home / "default") == []


def test_process_with_a_private_session_keyring_reads_the_key(guarded: Cli) -> None:
    """systemd starts services with KeyringMode=private, which the user's keyring is not linked to."""
    unlock(guarded)
    code = (
        "import ctypes, sys; from ipfsmem.device import kernel_keyring as k; k._keyctl(1, None); "
        "from ipfsmem.cli import main; sys.exit(main(['list', '--json']))"
    )
    import sys

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "IPFSMEM_HOME": str(guarded.home)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert done.returncode == 0 and json.loads(done.stdout)["memories"] == [], done


def test_wrong_passphrase_is_refused_while_unlocked(guarded: Cli) -> None:
    unlock(guarded)
    guarded.ok("list", "--passphrase-fd", str(pipe(PASSPHRASE)))
    guarded.fails(22, "list", "--passphrase-fd", str(pipe("another")))
    guarded.fails(22, "unlock")  # no terminal, although unlocked


def test_passphrase_change_requires_the_old_one_and_locks(
    guarded: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unlocked keys do not permit the change."""
    unlock(guarded)
    monkeypatch.setenv("IPFSMEM_NEW_PASSPHRASE", "quite another one")
    guarded.fails(22, "key", "passphrase")
    assert runtime_files() != []
    guarded.ok("key", "passphrase", "--passphrase-fd", str(pipe(PASSPHRASE)))
    assert runtime_files() == []
    guarded.fails(22, "list")


@pytest.mark.parametrize("time", ["", "0", "soon", "-1h", "8 h", "1w", "9999999999s", "999999d"])
def test_invalid_unlock_durations_are_refused(guarded: Cli, time: str) -> None:
    guarded.fails(2, "unlock", "--for", time, "--passphrase-fd", str(pipe(PASSPHRASE)))
    assert runtime_files() == []


def test_lock_imports_pending_file_edits_first(bare: Cli, stick: Path, runtime: Path, tmp_path: Path) -> None:
    """If the import fails, `lock` drops the keys all the same and reports the failure."""
    bare.ok("init", "--mode", "ipfs", "--passphrase-fd", str(pipe(PASSPHRASE)), key=KEY)
    folder = tmp_path / "plain"
    folder.mkdir()
    unlock(bare)
    bare.ok("folder", "attach", str(folder))
    (folder / "tone.md").write_text("Edited by hand.\n")
    bare.ok("lock")
    assert "Edited by hand." in bare.ok("read", "tone", "--passphrase-fd", str(pipe(PASSPHRASE))).out
    unlock(bare)
    folder.rename(tmp_path / "elsewhere")
    result = bare("lock")
    assert result.code == 30 and result.err.startswith("Locked, without reading the linked folders:\n")
    assert runtime_files() == [] and held_keys(bare.home / "default") == []
    hinted(
        "They are read when the folder exists again and the vault is opened. If it is gone permanently: ipfsmem folder detach DIR --gone.",
        result.err,
    )
    unlock(bare)
    bare.ok("folder", "detach", str(folder), "--gone")
    bare.ok("lock")


def test_lock_drops_the_keys_of_a_damaged_vault(guarded: Cli) -> None:
    unlock(guarded)
    database = guarded.home / "default" / "state.db"
    database.write_bytes(b"no database " * 4000)
    for tail in ("-wal", "-shm"):
        database.with_name(f"state.db{tail}").unlink(missing_ok=True)
    assert guarded("lock").code == 30
    assert runtime_files() == [] and held_keys(guarded.home / "default") == []


def test_lock_drops_keys_cached_before_the_vault_was_moved(guarded: Cli) -> None:
    """Also with the new path as `--home`, in an empty home, and with a damaged configuration."""
    old = guarded.home / "default"
    held_keys(old)
    new = guarded.home.with_name("new home")
    said = f"Locked: the cached keys of a vault that is no longer in {old}.\n"
    unlock(guarded)
    guarded.home.rename(new)
    assert guarded.ok("lock", "--home", str(new)).out == said
    assert runtime_files() == [] and held_keys(old) == []
    guarded.fails(4, "lock")
    new.rename(guarded.home)
    unlock(guarded)
    old.rename(new)
    assert guarded.ok("lock", "--json").json == {"was_unlocked": False, "lost": [str(old)]}
    assert runtime_files() == [] and held_keys(old) == []
    new.rename(old)
    unlock(guarded)
    config = (old / "ipfsmem.json").read_bytes()
    (old / "ipfsmem.json").write_text("{")
    failed = guarded("lock")
    assert failed.code == 3 and "Locked, without reading the linked folders" in failed.err
    assert runtime_files() == [] and held_keys(old) == []
    (old / "ipfsmem.json").write_bytes(config)


def test_lock_of_unprotected_keys_fails_but_drops_keys_of_lost_vaults(guarded: Cli) -> None:
    old, home = guarded.home / "default", str(guarded.home.with_name("another"))
    unlock(guarded)
    guarded.ok("init", "--home", home, "--mode", "local")
    old.rename(old.with_name("moved"))
    failed = guarded("lock", "--home", home)
    assert failed.code == 2 and "have no passphrase" in failed.err
    assert f"Locked: the cached keys of a vault that is no longer in {old}" in failed.err
    assert runtime_files() == [] and held_keys(old) == []
    guarded.fails(4, "lock")
    old.with_name("moved").rename(old)


def test_lock_in_an_empty_home_names_the_keys_it_dropped_elsewhere(guarded: Cli) -> None:
    old, empty = guarded.home / "default", str(guarded.home.with_name("empty"))
    unlock(guarded)
    old.rename(old.with_name("moved"))
    failed = guarded("lock", "--home", empty)
    assert failed.code == 4
    assert f"Locked: the cached keys of a vault that is no longer in {old}." in failed.err
    assert runtime_files() == [] and held_keys(old) == []
    old.with_name("moved").rename(old)


def test_default_unlock_duration_is_a_setting(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "ipfsmem.vault.unlocking.unlock_device",
        lambda folder, passphrase, seconds: asked.append(seconds) or 0,
    )
    (tmp_path / "settings.toml").touch()
    monkeypatch.setenv("IPFSMEM_CONFIG", str(tmp_path / "settings.toml"))
    sealed.ok("unlock")
    sealed.ok("config", "set", "unlock.hours", "0.5")
    sealed.ok("unlock")
    sealed.ok("unlock", "--for", "2m")
    assert asked == [8 * 3_600, 1_800, 120]
