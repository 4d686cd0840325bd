"""Running processes with unlocked keys drop them after `lock` or a timeout; a kill leaves the vault either locked or unlocked."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from ipfsmem.device.identity import load_device
from ipfsmem.memory import Memory
from ipfsmem.vault.unlocking import lock_device, unlock_device, unlocked_until
from tests.support import effort
from tests.support.cli_lab import Cli, pipe
from tests.support.keeping import Keeping
from tests.support.patience import PATIENCE
from tests.support.unlock_lab import PASSPHRASE, held_keys, needs_kernel_keyring, runtime_files

pytestmark = needs_kernel_keyring


@pytest.fixture
def guarded(bare: Cli, stick: Path, runtime: Path) -> Iterator[Cli]:
    """A device with an encrypted vault under a passphrase, unlocked for ten minutes."""
    bare.ok("init", "--no-wallet", "--passphrase-fd", str(pipe(PASSPHRASE)))
    unlock_device(bare.home / "default", PASSPHRASE, 600)
    yield bare
    lock_device(bare.home / "default")
    assert held_keys(bare.home / "default") == []
    assert runtime_files() == []


def test_running_sync_ends_after_lock(guarded: Cli) -> None:
    keeping = Keeping(guarded, "--every", "1h")
    keeping.line(lambda line: "Up to date" in line or "Published" in line or "Nothing new" in line)
    lock_device(guarded.home / "default")
    assert keeping.process.wait(PATIENCE) == 22
    code, rest = keeping.end()
    assert code == 22 and any("were locked" in line for line in rest), rest
    assert "Unlock them again with: ipfsmem unlock" in rest[-1]


def test_process_with_unlocked_keys_ends_at_the_timeout(guarded: Cli) -> None:
    """A second `unlock` may shorten the time."""
    keeping = Keeping(guarded, "--every", "1h")
    keeping.line(lambda line: "Up to date" in line or "Published" in line or "Nothing new" in line)
    ends = time.monotonic() + 2
    unlock_device(guarded.home / "default", PASSPHRASE, 2)
    assert keeping.process.wait(PATIENCE) == 22
    assert ends - 0.5 < time.monotonic()
    assert "is over" in "".join(keeping.end()[1])


def test_process_with_its_own_passphrase_continues_after_lock(
    guarded: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", PASSPHRASE)
    keeping = Keeping(guarded, "--every", "1h")
    keeping.line(lambda line: "Up to date" in line or "Published" in line or "Nothing new" in line)
    lock_device(guarded.home / "default")
    with pytest.raises(subprocess.TimeoutExpired):
        keeping.process.wait(1.0)
    assert keeping.end()[0] == 0


#: A server that keeps the vault open until it is locked. Before and after, it prints how many of the given keys
#: are in an object of the process.
_SERVER = """
import asyncio, gc, hashlib, sys
from pathlib import Path
from ipfsmem.errors import PassphraseError
from ipfsmem.memory import Memory

home, hashes = Path(sys.argv[1]), set(sys.argv[2:])

def held():
    found, seen, todo = set(), set(), list(gc.get_objects())
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, bytes | bytearray) and len(one) in (32, 64, 96, 128):
            found |= {hashlib.sha256(one[at : at + 32]).hexdigest() for at in range(0, len(one), 32)} & hashes
        todo += gc.get_referents(one)
    return len(found)

async def main():
    memory = Memory.load("default", home=home)
    memory.write("tone", "Short.")
    async with memory.lock_watch() as locked:
        print("open", held(), flush=True)
        await locked.wait()
        gc.collect()
        print("locked", held(), flush=True)
        try:
            memory.read("tone")
        except PassphraseError as error:
            print(error, flush=True)
    memory.close()

asyncio.run(main())
"""


def test_running_server_drops_its_keys_after_lock(guarded: Cli) -> None:
    """No object of the process has the signing seed, the box secret, the row key or the epoch key."""
    folder = guarded.home / "default"
    device = load_device(folder, PASSPHRASE)
    with Memory.load("default", home=guarded.home) as memory:
        assert memory.replica.ring is not None
        secrets = [
            device.sign_seed,
            device.box_secret,
            device.row_key,
            *(key.key for key in memory.replica.ring.keys),
        ]
    assert len(secrets) == 4
    hashes = [sha256(secret).hexdigest() for secret in secrets]
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(guarded.home), *hashes], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "open 4\n"
        lock_device(folder)
        assert server.stdout.readline() == "locked 0\n"
        assert "locked again" in server.stdout.readline()
        assert server.wait(PATIENCE) == 0


def test_killed_unlock_or_lock_leaves_the_vault_locked_or_unlocked(guarded: Cli) -> None:
    folder = guarded.home / "default"
    drawn = random.Random(7)
    code = (
        "import sys; from pathlib import Path; from ipfsmem.device import unlocked; from ipfsmem.device.replica import Environment; "
        "from ipfsmem.device.identity import load_device; folder = Path(sys.argv[1]); device = load_device(folder, sys.argv[2]); "
        "print('ready', flush=True)\n"
        "while True:\n"
        "    unlocked.hold(folder, device, 600, now=Environment().now, random=Environment().random)\n"
        "    unlocked.drop(folder)\n"
    )
    for _ in range(effort.cases(6, 400)):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(folder), PASSPHRASE], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(drawn.random() * 0.02)
            process.send_signal(signal.SIGKILL)
        if unlocked_until(folder) is None:
            with pytest.raises(Exception, match="passphrase"):
                Memory.load("default", home=guarded.home)
        else:
            Memory.load("default", home=guarded.home).close()
        lock_device(folder)
        assert held_keys(folder) == []
        assert [path.name for path in runtime_files() if not path.name.startswith(".")] == []
        unlock_device(folder, PASSPHRASE, 600)
        assert unlocked_until(folder) is not None


def test_concurrent_unlock_and_lock_end_without_an_error(guarded: Cli) -> None:
    """Two processes unlock and lock as fast as they can: each ends without an error, and a final `lock`
    locks."""
    folder = guarded.home / "default"
    code = (
        "import sys; from pathlib import Path; from ipfsmem.device import unlocked; from ipfsmem.device.replica import Environment; "
        "from ipfsmem.errors import StorageError; from ipfsmem.device.identity import load_device; folder = Path(sys.argv[1]); device = load_device(folder, sys.argv[2]); world = Environment()\n"
        "for n in range(60):\n"
        "    try:\n"
        "        unlocked.hold(folder, device, 600, now=world.now, random=world.random)\n"
        "    except StorageError as error:\n"
        "        assert 'locked again during the unlock' in str(error), error  # by the other one\n"
        "    found = unlocked.held(folder, world.now)\n"
        "    assert isinstance(found, unlocked.NotHeld) or found.device.row_key == device.row_key and found.device.id == device.id\n"
        "    unlocked.drop(folder)\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), PASSPHRASE], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in both:
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said.decode()
    lock_device(folder)
    assert held_keys(folder) == [] and runtime_files() == []
    assert unlocked_until(folder) is None
    os.sync()
