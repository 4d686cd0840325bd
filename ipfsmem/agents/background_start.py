"""Start a separate `ipfsmem` process, such as the background sync (`agents/background_sync.py`). Small, since hooks
load it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ipfsmem.errors import IpfsmemError
from ipfsmem.locations import BACKGROUND_LOCK, expanded, vault_folder


def start(vault_name: str, home: Path, folder: str, passphrase: str | None = None) -> None:
    """Start a sync in a separate process, and return at once.

    `folder`: working folder of the agent. Command lines are readable by every user of a machine, so folder and passphrase are
    passed on standard input. Raises OSError.
    """
    stand_by(vault_name, home, folder, passphrase).release()


def stand_by(vault_name: str, home: Path, folder: str, passphrase: str | None = None) -> Standby:
    """Start a process that syncs when this one releases it or ends. Arguments as for `start`. Raises OSError."""
    if passphrase:  # `lock` deletes it
        with contextlib.suppress(OSError, IpfsmemError):
            (vault_folder(home, vault_name) / BACKGROUND_LOCK).touch(0o600)
    return start_apart("background", vault_name, home, folder=folder, passphrase=passphrase or "")


def start_apart(what: str, vault_name: str, home: Path, **message: str) -> Standby:
    """Start a process that runs `what` once it is released, with `message` on its standard input. Raises OSError."""
    # Absolute, as the process has another working directory.
    place = os.path.abspath(home)  # noqa: PTH100
    settings = os.environ.get("IPFSMEM_CONFIG")
    environment = {"IPFSMEM_CONFIG": os.path.abspath(expanded(settings))} if settings else {}  # noqa: PTH100
    words = [
        sys.executable,
        "-P",  # modules in the home folder do not shadow those of ipfsmem
        "-m",
        "ipfsmem",
        "hook",
        what,
        "--vault",
        vault_name,
        "--home",
        place,
    ]
    # On Windows: detached, a group of its own, no window, below normal priority.
    flags = 0x00000008 | 0x00000200 | 0x08000000 | 0x00004000 if sys.platform == "win32" else 0
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=place,
        env=os.environ | environment,
        start_new_session=True,
        creationflags=flags,
    )
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, process.pid, 10)
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(_encode_message(message))
        process.stdin.flush()
    return Standby(process)


def _encode_message(message: Mapping[str, str]) -> bytes:
    """Encode the input of the process; bytes that are not Unicode text are escaped, as by `canonical.write_json`."""
    text = {name: one.encode("utf-8", "backslashreplace").decode() for name, one in message.items()}
    if "msgspec" in sys.modules:  # a hook that read memories needs Python's own for nothing else
        import msgspec

        return msgspec.json.encode(text)
    import json

    return json.dumps(text).encode()


def process_input(data: bytes, name: str) -> str:
    """Return one input of such a process by name; "" if it is missing."""
    import msgspec

    from ipfsmem.canonical import read_json

    try:
        values = read_json(data)
    except msgspec.DecodeError:
        return ""
    return text if isinstance(values, dict) and isinstance(text := values.get(name), str) else ""


class Standby:
    """A process that begins when its pipe is closed, also because this process is killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def release(self) -> None:
        """Release the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.returncode = 0  # the exit status is not needed

    def dismiss(self) -> None:
        """Kill the process before it begins."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
