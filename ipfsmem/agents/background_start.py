"""How the sync beside an agent (`agents/background_sync.py`) is started: apart from it, as a hook has to load what is here."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path


def start(namespace: str, home: Path, folder: str, passphrase: str | None = None) -> None:
    """Start a sync in a process of its own, and return at once.

    `folder`: in which the agent works. Neither it nor the passphrase stands in a command line, which every user of a machine can
    see. Raises OSError.
    """
    stand_by(namespace, home, folder, passphrase).release()


def stand_by(namespace: str, home: Path, folder: str, passphrase: str | None = None) -> Standby:
    """Start a process that syncs when this one releases it or ends in any way. Arguments as for `start`. Raises OSError."""
    words = [
        sys.executable,
        "-P",  # nothing that lies in the folder of the memories takes the place of our modules
        "-m",
        "ipfsmem",
        "hook",
        "background",
        "--namespace",
        namespace,
        "--home",
        str(home),
    ]
    # On Windows: detached, a group of its own, no window, below normal priority.
    flags = 0x00000008 | 0x00000200 | 0x08000000 | 0x00004000 if sys.platform == "win32" else 0
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=home,
        start_new_session=True,
        creationflags=flags,
    )
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, process.pid, 10)
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(_said(folder, passphrase or ""))
        process.stdin.flush()
    return Standby(process)


def _said(folder: str, passphrase: str) -> bytes:
    """What the process is told; bytes that are not Unicode text as escapes, as `canonical.write_json` writes them."""
    told = {"folder": folder, "passphrase": passphrase}
    return json.dumps(
        {name: text.encode("utf-8", "backslashreplace").decode() for name, text in told.items()}
    ).encode()


class Standby:
    """A process that syncs when its pipe closes, which also happens when this process is killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def release(self) -> None:
        """Let it sync now."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.returncode = 0  # it is nobody's to wait for

    def dismiss(self) -> None:
        """End it without a sync."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
