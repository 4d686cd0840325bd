"""`ipfsmem lock` ends a background sync that got its passphrase from IPFSMEM_PASSPHRASE, without an
unlock."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

from ipfsmem.agents import background_start, background_sync
from ipfsmem.errors import PassphraseError
from ipfsmem.memory import Memory
from ipfsmem.vault.unlocking import lock_device
from tests.support.patience import PATIENCE
from tests.support.unlock_lab import PASSPHRASE


def test_lock_ends_background_sync_that_has_a_passphrase(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        with Memory.create("m", "encrypted-ipfs", home=home, passphrase=PASSPHRASE) as memory:
            memory.providers.add(f"kubo:http://127.0.0.1:{silent.getsockname()[1]}")
            memory.write("tone", "x")
        given = json.dumps({"passphrase": PASSPHRASE}).encode()
        (home / "m" / "background.lock").touch()
        call = [sys.executable, "-m", "ipfsmem", "hook", "background", "--vault", "m", "--home", str(home)]
        syncing = subprocess.Popen(call, stdin=subprocess.PIPE)
        try:
            assert syncing.stdin is not None
            syncing.stdin.write(given)
            syncing.stdin.close()
            connection, _ = silent.accept()
            with connection:
                assert not lock_device(home / "m")
                assert syncing.wait(PATIENCE) == PassphraseError.exit_code
        finally:
            syncing.kill()
            syncing.wait()
        silent.settimeout(0)
        while True:  # other connections of that sync
            try:
                silent.accept()[0].close()
            except BlockingIOError:
                break
        background_sync.run("m", home, given)  # a process that started late
        try:
            silent.accept()[0].close()
        except BlockingIOError:
            pass
        else:
            raise AssertionError("it asked the provider")
        limits = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
        assert all(one.finished.is_set() for one in limits)


def test_background_sync_that_is_started_with_a_passphrase_can_be_locked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Memory.create("m", "encrypted-ipfs", home=home, passphrase=PASSPHRASE):
        pass
    waiting = background_start.stand_by("m", home, "", PASSPHRASE)
    try:
        assert (home / "m" / "background.lock").exists()
    finally:
        waiting.dismiss()
