"""Temporarily unlocked keys: where they are cached, when they expire, and refused forgeries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from ipfsmem.device import kernel_keyring, since_boot, unlocked
from ipfsmem.device.identity import KEY_FILE, load_device, open_row, save_device, seal_row
from ipfsmem.device.lock import file_lock
from ipfsmem.device.replica import Environment
from ipfsmem.device.tables import meta
from ipfsmem.errors import IncompleteError, NotFoundError, OpenError, PassphraseError, UsageError
from ipfsmem.files import working_copy
from ipfsmem.memory import Memory
from ipfsmem.vault.home import Home
from ipfsmem.vault.unlocking import (
    lock_device,
    lock_lost_devices,
    needs_passphrase,
    unlock_device,
    unlocked_until,
)
from tests.support.extras import need_extra
from tests.support.hints import Refused, hinted
from tests.support.unlock_lab import PASSPHRASE, held_keys, name_of, needs_kernel_keyring, runtime_files

pytestmark = needs_kernel_keyring


@pytest.fixture
def folder(tmp_path: Path, runtime: Path) -> Iterator[Path]:
    """An encrypted vault under a passphrase, with one text."""
    with Memory.create("default", "encrypted-ipfs", passphrase=PASSPHRASE, home=tmp_path / "home") as made:
        made.write("tone", "Short answers.")
    folder = tmp_path / "home" / "default"
    name_of(folder)
    yield folder
    if folder.exists():
        lock_device(folder)
    assert held_keys(folder) == []


def opened(folder: Path) -> Memory:
    return Memory.load("default", home=folder.parent)


def test_cached_keys_open_no_root(folder: Path) -> None:
    """A vault without a wallet has its root on this device, under a key that is never cached."""
    unlock_device(folder, PASSPHRASE, 600)
    with opened(folder) as memory:
        device, kept = memory.replica.device, memory.replica.db.get_meta(meta.KEPT_ROOT)
        assert kept is not None and device.root_key == b""
        for key in (device.sign_seed, device.box_secret, device.row_key):
            with pytest.raises(OpenError):
                open_row(key, kept)
        with Refused(
            "Give the passphrase itself: at the prompt, in IPFSMEM_PASSPHRASE or with --passphrase-fd (in Python: load(passphrase=))."
        ):
            memory.unlock()
        assert not memory.unlocked
    with Memory.load("default", home=folder.parent, passphrase=PASSPHRASE) as memory:
        memory.unlock()
        assert memory.unlocked


def test_root_of_an_older_key_file_opens(tmp_path: Path) -> None:
    with Memory.create("default", "encrypted-ipfs", passphrase=False, home=tmp_path) as memory:
        memory.unlock()
        replica, root = memory.replica, memory._syncing.root
        kept = replica.db.get_meta(meta.KEPT_ROOT)
        assert kept is not None
        older = seal_row(replica.device.row_key, open_row(replica.device.root_key, kept), bytes(24))
        with replica.transaction():
            replica.db.set_meta(meta.KEPT_ROOT, older)
        device = msgspec.structs.replace(replica.device, root_key=b"")
    save_device(tmp_path / "default", device, None, os.urandom)
    with Memory.load("default", home=tmp_path) as memory:
        memory.unlock()
        assert memory._syncing.root == root


def test_unlocked_vault_needs_no_passphrase_until_locked(folder: Path) -> None:
    with pytest.raises(PassphraseError):
        opened(folder)
    assert unlocked_until(folder) is None and needs_passphrase(folder)
    until = unlock_device(folder, PASSPHRASE, 600)
    assert unlocked_until(folder) == until and not needs_passphrase(folder)
    with opened(folder) as memory:
        assert memory.status().unlocked_until == until
        memory.write("music", "Bach.")
    with pytest.raises(PassphraseError):  # unlocked keys do not make a wrong passphrase valid
        Memory.load("default", home=folder.parent, passphrase="wrong")
    assert lock_device(folder)
    assert runtime_files() == [] and held_keys(folder) == []
    assert not lock_device(folder)
    with pytest.raises(PassphraseError):
        opened(folder)


def test_cache_holds_neither_passphrase_nor_plain_key(folder: Path) -> None:
    """Neither half has any of the three keys; the key of the kernel has no byte of the file."""
    unlock_device(folder, PASSPHRASE, 600)
    (file,) = runtime_files()
    wrapped = file.read_bytes()
    key = kernel_keyring.read(f"ipfsmem:{file.name}")
    assert key is not None and len(key) == 32
    device = load_device(folder, PASSPHRASE)
    for secret in (device.sign_seed, device.box_secret, device.row_key, PASSPHRASE.encode()):
        for part in (secret, secret.hex().encode()):
            assert part not in wrapped and part not in key
    assert key not in wrapped
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700


def test_unlock_with_invalid_arguments_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PassphraseError):
        unlock_device(folder, "wrong", 600)
    with pytest.raises(PassphraseError):
        unlock_device(folder, None, 600)
    for seconds in (0, -1, 10**9):
        with pytest.raises(UsageError):
            unlock_device(folder, PASSPHRASE, seconds)
    with pytest.raises(NotFoundError):
        unlock_device(tmp_path / "none", PASSPHRASE, 600)
    with pytest.raises(NotFoundError):
        lock_device(tmp_path / "none")
    with Memory.create("open", "encrypted-ipfs", passphrase=False, home=tmp_path / "home"):
        pass
    other = tmp_path / "home" / "open"
    with Refused("Set one: ipfsmem key passphrase."):
        unlock_device(other, PASSPHRASE, 600)
    with Memory.load("open", home=tmp_path / "home") as memory:
        memory.maintenance.change_passphrase(PASSPHRASE)
    unlock_device(other, PASSPHRASE, 600)
    lock_device(other)
    assert runtime_files() == [] and held_keys(folder) == []


class _Clocks:
    """Both clocks, set by a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.up, self.boot = 1_800_000_000_000, 5_000_000, "this start"
        monkeypatch.setattr(since_boot, "_milliseconds_up", lambda: self.up)
        monkeypatch.setattr(since_boot, "boot_id", lambda: self.boot)
        self.environment = Environment(lambda: self.wall)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> _Clocks:
    return _Clocks(monkeypatch)


@pytest.mark.parametrize(
    ("wall", "up", "boot", "open_"),
    [
        (599_000, 599_000, "this start", True),
        (
            600_000,
            599_000,
            "this start",
            False,
        ),  # the clock was set forward: it ends too soon, never too late
        (0, 600_000, "this start", False),  # the clock was set back
        (-(10**9), 599_000, "this start", True),  # set back, but within the requested time
        (1_000, 1_000, "another start", False),
        (
            1_000,
            -5_000_000 + 1,
            "this start",
            False,
        ),  # a machine without a boot id: its clock restarted
    ],
)
def test_unlocked_keys_expire_by_time_and_restart(
    folder: Path, clocks: _Clocks, wall: int, up: int, boot: str, open_: bool
) -> None:
    world = clocks.environment
    unlock_device(folder, PASSPHRASE, 600, environment=world)
    clocks.wall, clocks.up, clocks.boot = clocks.wall + wall, clocks.up + up, boot
    assert (unlocked_until(folder, world) is not None) == open_
    if not open_:
        assert runtime_files() == [] and held_keys(folder) == [], "what has ended goes by itself"
        clocks.wall, clocks.up, clocks.boot = 1_800_000_000_000, 5_000_000, "this start"
        assert unlocked_until(folder, world) is None, "and does not come back with the clock"


def test_clock_set_back_expires_keys_without_a_boot_id(folder: Path, clocks: _Clocks) -> None:
    """By more than a minute."""
    clocks.boot = ""
    unlock_device(folder, PASSPHRASE, 600, environment=clocks.environment)
    clocks.wall -= 59_000
    assert unlocked_until(folder, clocks.environment) is not None
    clocks.wall -= 2_000
    assert unlocked_until(folder, clocks.environment) is None


@pytest.mark.parametrize(("away", "open_"), [(0, True), (59_000, True), (61_000, False), (3_600_000, False)])
def test_restart_expires_keys_without_a_boot_id(
    folder: Path, clocks: _Clocks, away: int, open_: bool
) -> None:
    """As on Windows, whose clocks show when the machine was started."""
    clocks.boot = ""
    unlock_device(folder, PASSPHRASE, 36_000, environment=clocks.environment)
    clocks.wall, clocks.up = clocks.wall + away + 2_000_000, clocks.up + 2_000_000
    assert (unlocked_until(folder, clocks.environment) is not None) == open_


def test_kernel_key_expires_automatically(folder: Path) -> None:
    unlock_device(folder, PASSPHRASE, 600)
    (line,) = held_keys(folder)
    assert " 9m " in line or " 10m " in line


def test_loss_of_either_half_locks(folder: Path) -> None:
    unlock_device(folder, PASSPHRASE, 600)
    (file,) = runtime_files()
    kernel_keyring.remove(f"ipfsmem:{file.name}")
    assert unlocked_until(folder) is None
    lock_device(folder)
    assert runtime_files() == []
    unlock_device(folder, PASSPHRASE, 600)
    shutil.rmtree(runtime_files()[0].parent)  # the user logged out
    assert unlocked_until(folder) is None
    lock_device(folder)
    assert held_keys(folder) == []


def test_read_from_a_container_locks_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its user namespace has another keyring."""
    unlock_device(folder, PASSPHRASE, 600)
    with monkeypatch.context() as container:
        container.setattr(kernel_keyring, "read", lambda name: None)
        assert unlocked_until(folder) is None
        with pytest.raises(PassphraseError):
            opened(folder)
    assert unlocked_until(folder) is not None
    opened(folder).close()


@pytest.mark.parametrize("how", ["moved", "removed", "another"])
def test_cached_keys_are_dropped_once_the_vault_is_gone(folder: Path, tmp_path: Path, how: str) -> None:
    """Found by its former path, and by the half in the runtime directory."""
    new = tmp_path / "new" / "default"
    for by_name in (True, False):
        unlock_device(folder, PASSPHRASE, 600)
        assert lock_lost_devices() == [] and unlocked_until(folder) is not None, "it is there"
        new.parent.mkdir(exist_ok=True)
        folder.rename(new)
        if how == "another":
            shutil.copytree(new, folder)
        elif how == "removed":
            shutil.rmtree(folder.parent)
        assert lock_device(folder) if by_name else lock_lost_devices() == [folder]
        assert runtime_files() == [] and held_keys(folder) == []
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        new.rename(folder)
        assert unlocked_until(folder) is None


def test_copied_vault_does_not_open_with_cached_keys(folder: Path, tmp_path: Path) -> None:
    unlock_device(folder, PASSPHRASE, 600)
    copy = tmp_path / "copy" / "default"
    shutil.copytree(folder, copy)
    assert unlocked_until(copy) is None
    (file,) = runtime_files()
    other = unlocked._name(copy)
    shutil.copy(file, file.with_name(other))
    key = kernel_keyring.read(f"ipfsmem:{file.name}")
    assert key is not None
    kernel_keyring.put(f"ipfsmem:{other}", key, 600)
    with pytest.raises(PassphraseError, match="made for something else"):
        opened(copy)
    lock_device(copy)
    moved = tmp_path / "home" / "aside"
    folder.rename(moved)
    shutil.copytree(copy, folder)
    assert unlocked_until(folder) is None
    shutil.rmtree(folder)
    moved.rename(folder)
    assert unlocked_until(folder) is not None, "the original is where it was"


def test_forged_cache_file_is_refused(folder: Path, tmp_path: Path) -> None:
    unlock_device(folder, PASSPHRASE, 600)
    (file,) = runtime_files()
    good = file.read_bytes()

    def refused(why: str) -> None:
        assert unlocked_until(folder) is None, why
        with pytest.raises(PassphraseError) as told:
            opened(folder)
        assert why in str(told.value), told.value

    aside = tmp_path / "aside"
    aside.write_bytes(good)
    aside.chmod(0o600)
    file.unlink()
    file.symlink_to(aside)
    refused("symbolic link")
    file.unlink()
    os.mkfifo(file, 0o600)
    refused("not a file")
    file.unlink()
    file.write_bytes(good)
    file.chmod(0o640)
    refused("not a file of this user alone")
    file.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(file, 65534, -1)
        refused("not a file of this user alone")
        os.chown(file, 0, -1)
    assert unlocked_until(folder) is not None
    for at in range(len(good)):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert unlocked_until(folder) is None, at
        file.write_bytes(good[:at])
        assert unlocked_until(folder) is None, at
    for data in (b"", b"nonsense", good + b"x", b"\0" * 100_000):
        file.write_bytes(data)
        assert unlocked_until(folder) is None
    file.parent.chmod(0o755)
    file.write_bytes(good)
    refused("not a folder of this user alone")
    file.parent.chmod(0o700)
    assert unlocked_until(folder) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_unusable_runtime_directory_is_refused(
    folder: Path, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(wrong))
    for make, why in (
        (lambda: None, "does not exist"),
        (lambda: wrong.write_bytes(b""), "is not a directory"),
        (lambda: (wrong.unlink(), wrong.mkdir(), wrong.chmod(0o755)), "may be entered by others"),
        (lambda: (wrong.chmod(0o700), os.chown(wrong, 65534, -1)), "belongs to another user"),
    ):
        if why == "belongs to another user" and os.geteuid() != 0:
            continue
        make()
        with pytest.raises(UsageError, match=why):
            unlock_device(folder, PASSPHRASE, 600)
        assert unlocked_until(folder) is None and not lock_device(folder)
    assert held_keys(folder) == []
    with Refused(
        "Log in through the system's login, which creates one, or pass the passphrase in IPFSMEM_PASSPHRASE."
    ):
        unlock_device(folder, PASSPHRASE, 600)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    unlock_device(folder, PASSPHRASE, 600)


def test_missing_keyring_is_refused_and_names_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that forbids the calls."""
    monkeypatch.setattr(kernel_keyring, "_NUMBERS", {})
    monkeypatch.setitem(sys.modules, "keyring", None)
    with Refused(
        "Install it with: pip install 'ipfsmem[keyring]'. Or pass the passphrase in IPFSMEM_PASSPHRASE."
    ):
        unlock_device(folder, PASSPHRASE, 600)
    assert runtime_files() == [] and unlocked_until(folder) is None
    Memory.load("default", home=folder.parent, passphrase=PASSPHRASE).close()


class _Store:
    """A replacement for the system's store: keeps texts, and refuses while locked."""

    kept: ClassVar[dict[str, str]] = {}
    locked = False

    def set_password(self, service: str, name: str, text: str) -> None:
        self._ask()
        self.kept[name] = text

    def get_password(self, service: str, name: str) -> str | None:
        self._ask()
        return self.kept.get(name)

    def delete_password(self, service: str, name: str) -> None:
        self._ask()
        del self.kept[name]

    def _ask(self) -> None:
        if _Store.locked:
            raise RuntimeError("the collection is locked")


def test_keys_are_cached_in_the_system_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the package `keyring`; backends that store nothing or fail are refused."""
    keyring = need_extra("keyring", "keyring")
    backend = need_extra("keyring", "keyring.backend")
    monkeypatch.setattr(kernel_keyring, "_NUMBERS", {})
    for name in ("null.Keyring", "fail.Keyring"):
        monkeypatch.setattr(keyring.core, "_keyring_backend", None)
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", f"keyring.backends.{name}")
        with Refused("Pass the passphrase in IPFSMEM_PASSPHRASE, or start the system's secret store."):
            unlock_device(folder, PASSPHRASE, 600)
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.none.Keyring")
    with pytest.raises(UsageError, match="cannot be used"):
        unlock_device(folder, PASSPHRASE, 600)
    assert runtime_files() == []

    store = type(
        "Keyring",
        (_Store, backend.KeyringBackend),
        {"__module__": "keyring.backends.SecretService", "priority": 5},
    )
    monkeypatch.setattr(keyring.core, "_keyring_backend", store())
    unlock_device(folder, PASSPHRASE, 600)
    with opened(folder) as memory:
        assert memory.read("tone") is not None
        assert len(_Store.kept) == 1 and held_keys(folder) == []
        assert all(len(text) == 44 for text in _Store.kept.values()), "a random key"
        monkeypatch.setattr(_Store, "locked", True)
        assert memory.read("tone") is not None, "a process that took the keys does not ask again"
    with pytest.raises(PassphraseError, match="the collection is locked"):
        opened(folder)
    with Refused("Unlock it (usually by logging in), then try again."):
        unlock_device(folder, PASSPHRASE, 600)
    monkeypatch.setattr(_Store, "locked", False)
    unlock_device(folder, PASSPHRASE, 600)
    assert lock_device(folder)
    assert _Store.kept == {} and runtime_files() == []


def test_passphrase_change_locks(folder: Path) -> None:
    unlock_device(folder, PASSPHRASE, 600)
    with opened(folder) as memory:
        memory.maintenance.change_passphrase("another good one", PASSPHRASE)
        assert runtime_files() == [] and held_keys(folder) == []
        with pytest.raises(PassphraseError, match="locked again"):
            memory.read("tone")
    with pytest.raises(PassphraseError):
        opened(folder)
    unlock_device(folder, "another good one", 600)
    opened(folder).close()


def test_passphrase_change_reports_a_failed_lock(folder: Path) -> None:
    unlock_device(folder, PASSPHRASE, 600)
    (file,) = runtime_files()
    file.unlink()
    file.mkdir()
    with Memory.load("default", home=folder.parent, passphrase=PASSPHRASE) as memory:
        with pytest.raises(
            IncompleteError, match="the passphrase was changed, but some cached keys could not be removed"
        ) as told:
            memory.maintenance.change_passphrase("another good one", PASSPHRASE)
        hinted("Remove them by hand, or restart the machine.", told.value.hint)
    file.rmdir()
    Memory.load("default", home=folder.parent, passphrase="another good one").close()


def test_restored_key_file_does_not_open_with_cached_keys(folder: Path) -> None:
    before = (folder / KEY_FILE).read_bytes()
    with Memory.load("default", home=folder.parent, passphrase=PASSPHRASE) as memory:
        memory.maintenance.change_passphrase("another good one", PASSPHRASE)
    unlock_device(folder, "another good one", 600)
    (folder / KEY_FILE).write_bytes(before)
    with pytest.raises(PassphraseError):
        opened(folder)


def test_device_with_a_new_id_stays_unlocked(folder: Path) -> None:
    """Its new keys are stored under the row key."""
    unlock_device(folder, PASSPHRASE, 600)
    with opened(folder) as memory:
        replica = memory.replica
        with replica.transaction():
            replica.set_device(replica.device.successor(replica.environment.random))
        new = memory.device
    with opened(folder) as memory:
        assert memory.device == new
        memory.write("tone", "Shorter.")


def test_open_vault_drops_its_keys_after_a_lock(folder: Path) -> None:
    unlock_device(folder, PASSPHRASE, 600)
    memory = opened(folder)
    scoped = memory.scope("work")
    replica, codec = memory.replica, memory.replica.codec
    assert memory.read("tone") is not None
    lock_device(folder)
    for call in (memory.list, memory.status, lambda: memory.write("tone", "x"), scoped.list):
        with pytest.raises(PassphraseError, match="locked again") as told:
            call()
        hinted(
            "Unlock them again with: ipfsmem unlock. Or enter the passphrase at the prompt, or pass it in IPFSMEM_PASSPHRASE or with --passphrase-fd.",
            told.value.hint,
        )
    assert replica.device.sign_seed == replica.device.row_key == replica.device.box_secret == b""
    assert replica.ring is None and vars(codec)["_row_key"] == b"" and vars(codec)["_by_id"] == {}
    memory.close()
    unlock_device(folder, PASSPHRASE, 600)
    opened(folder).close()


def test_keys_are_dropped_while_another_process_has_the_database_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_copy, "INDEX_AT_ONCE", 0)
    unlock_device(folder, PASSPHRASE, 600)
    plain = folder.parent.parent / "plain"
    memory = opened(folder)
    memory.folders.attach(plain)
    memory.write("music", "Bach.")
    assert "music" not in (plain / "MEMORY.md").read_text()
    memory.replica.db._wait = 0.2
    hold = "import sys; from pathlib import Path; from ipfsmem.device.lock import file_lock\n"
    hold += "with file_lock(Path(sys.argv[1]), wait=1): print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(folder / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        holder.stdout.readline()
        lock_device(folder)
        with pytest.raises(PassphraseError, match="locked again"):
            memory.list()
        holder.stdin.close()
    device = memory.replica.device
    assert device.sign_seed == device.row_key == device.box_secret == b"" and memory.replica.ring is None
    unlock_device(folder, PASSPHRASE, 600)
    with opened(folder):
        assert "music" in (plain / "MEMORY.md").read_text()


def test_second_unlock_extends_the_time_of_running_processes(folder: Path, clocks: _Clocks) -> None:
    world = clocks.environment
    unlock_device(folder, PASSPHRASE, 600, environment=world)
    with Memory.load("default", home=Home(folder=folder.parent, environment=world)) as memory:
        clocks.wall, clocks.up = clocks.wall + 500_000, clocks.up + 500_000
        unlock_device(folder, PASSPHRASE, 600, environment=world)
        clocks.wall, clocks.up = clocks.wall + 500_000, clocks.up + 500_000
        assert memory.read("tone") is not None
        clocks.wall, clocks.up = clocks.wall + 100_000, clocks.up + 100_000
        with pytest.raises(PassphraseError, match="is over"):
            memory.read("tone")


def test_file_missing_before_keys_expired_needs_two_scans_after_unlock(
    folder: Path, clocks: _Clocks, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    home = Home(folder=folder.parent, environment=clocks.environment)
    unlock_device(folder, PASSPHRASE, 600, environment=clocks.environment)
    with Memory.load("default", home=home) as memory:
        memory.folders.attach(plain)
        (plain / "tone.md").unlink()
        memory.folders.scan()
    clocks.wall, clocks.up = clocks.wall + 14 * 86_400_000, clocks.up + 14 * 86_400_000
    unlock_device(folder, PASSPHRASE, 600, environment=clocks.environment)
    with Memory.load("default", home=home) as memory:
        memory.folders.scan()
        assert [one.key for one in memory.list()] == ["tone"]
        clocks.wall, clocks.up = clocks.wall + 61_000, clocks.up + 61_000
        memory.folders.scan()
        assert memory.read("tone") is None


def test_fifty_unlocks_leave_no_files_or_keys(folder: Path) -> None:
    device = load_device(folder, PASSPHRASE)
    world = Environment()
    for _ in range(50):
        unlocked.hold(folder, device, 600, now=world.now, random=world.random)
        assert lock_device(folder)
    assert runtime_files() == [] and held_keys(folder) == []


def test_cache_file_that_cannot_be_removed_is_reported(folder: Path) -> None:
    """The key is dropped nevertheless."""
    unlock_device(folder, PASSPHRASE, 600)
    (file,) = runtime_files()
    file.unlink()
    file.mkdir()
    with Refused("Remove them by hand, or restart the machine."):
        lock_device(folder)
    assert held_keys(folder) == []
    file.rmdir()
    assert not lock_device(folder)


def test_stored_clock_reading_of_an_earlier_version_is_read() -> None:
    kept = b'[1795600000000,5000,"which start"]'
    assert msgspec.json.decode(kept, type=since_boot.ClockReading) == since_boot.ClockReading(
        1795600000000, 5000, "which start"
    )
    assert msgspec.json.encode(since_boot.ClockReading(1795600000000, 5000, "which start")) == kept


def test_expired_keys_are_not_removed_while_another_unlock_runs(folder: Path, clocks: _Clocks) -> None:
    unlock_device(folder, PASSPHRASE, 600, environment=clocks.environment)
    clocks.wall, clocks.up = clocks.wall + 600_000, clocks.up + 600_000
    with file_lock(folder / "lock"):
        assert unlocked_until(folder, clocks.environment) is None
        assert len(runtime_files()) == 1
    assert unlocked_until(folder, clocks.environment) is None and not runtime_files()
