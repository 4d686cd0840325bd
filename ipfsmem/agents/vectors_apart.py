"""Compute missing embeddings in a separate process, so that a query does not wait for them.

One process at a time for each vault, with a time limit and a low priority. `ipfsmem status` and `index rebuild`
report errors.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ipfsmem.device.lock import file_lock, is_held
from ipfsmem.errors import IpfsmemError, PassphraseError
from ipfsmem.locations import VECTORS_LOCK, vault_folder

#: Time limit of the process, and the pause after it, in seconds.
_END, _REST = 1_800.0, 10.0
#: Seconds between checks that the keys are unlocked.
_LOOK = 0.25


def start(vault_name: str, home: Path, kinds: Iterable[str], passphrase: str | None) -> None:
    """Start the process and return at once, unless one runs or ran within the pause. `kinds`: kinds to embed in addition to
    memories. Raises nothing: until then recall searches by words."""
    path = vault_folder(home, vault_name) / VECTORS_LOCK
    with contextlib.suppress(OSError, IpfsmemError):
        if is_held(path) or (path.exists() and 0 <= time.time() - path.stat().st_mtime < _REST):
            return
        path.touch(0o600)
        from ipfsmem.agents.background_start import start_apart

        start_apart("vectors", vault_name, home, kinds=" ".join(kinds), passphrase=passphrase or "").release()


def run(vault_name: str, home: Path, given: bytes) -> None:
    """Compute all missing embeddings. Raises nothing."""
    place = vault_folder(home, vault_name)
    if not place.is_dir():
        return
    with ending_after(_END):
        _make(vault_name, home, place, given)


def _make(vault_name: str, home: Path, place: Path, given: bytes) -> None:
    from ipfsmem.agents.background_start import process_input
    from ipfsmem.memory import Memory

    passphrase, kinds = (
        process_input(given, "passphrase") or None,
        frozenset(process_input(given, "kinds").split()),
    )
    path = place / VECTORS_LOCK
    if passphrase is not None and not path.exists():
        return  # locked since it was started
    with contextlib.suppress(IpfsmemError, OSError), file_lock(path, wait=0):
        mine, done = path.stat().st_ino, threading.Event()
        try:
            with Memory.load(vault_name, home=home, passphrase=passphrase) as memory:
                opened = memory._view().opened

                def still_unlocked() -> bool:
                    return opened.still_unlocked() and is_at(path, mine)

                watching = (still_unlocked, lambda: os._exit(PassphraseError.exit_code), done)
                threading.Thread(target=end_when_locked, args=watching, daemon=True).start()
                opened.meaning().complete(lambda *_: None, kinds, again=False)
        finally:
            done.set()
            os.utime(path)


@contextlib.contextmanager
def ending_after(seconds: float) -> Iterator[None]:
    """End this process if the block takes longer."""
    end = threading.Timer(seconds, os._exit, (1,))
    end.daemon = True
    end.start()
    try:
        yield
    finally:
        end.cancel()


def is_at(path: Path, inode: int) -> bool:
    """Tell whether the lock file is unchanged: `lock` deletes it, the only signal for keys opened by a passphrase."""
    try:
        return path.stat().st_ino == inode
    except OSError:
        return False


def end_when_locked(
    still_unlocked: Callable[[], bool], end: Callable[[], object], done: threading.Event
) -> None:
    """Call `end` as soon as the keys are locked, even during work that holds them for seconds. Not after `done`."""
    while still_unlocked():
        if done.wait(_LOOK):
            return
    if not done.is_set():
        end()
