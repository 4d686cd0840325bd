"""`rclone rcd` of this process: its remote control on a port of this machine, behind a password of its own.

It ends with this process, however that ends: a small program between the two ends it when its standard input closes, or when
it is ended itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Final

from ipfsmem.errors import ConfigError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.rclone.errors import INSTALL_HINT, explain, last_line

USER: Final = "ipfsmem"
#: The oldest version that was tested.
OLDEST: Final = (1, 60)
_KEEPER: Final = """\
import ctypes, os, signal, subprocess, sys, threading
def dies_with_parent():
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (AttributeError, OSError):
        pass
before = dies_with_parent if sys.platform == "linux" else None
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, preexec_fn=before)
def end():
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
def closed():
    while os.read(0, 4096):
        pass
    end()
def start(work):
    threading.Thread(target=work, daemon=True).start()
for name in ("SIGTERM", "SIGHUP", "SIGINT"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), lambda *_: start(end))
start(closed)
os._exit(child.wait() & 255)
"""
#: Port 0: the system chooses one that nobody else has, and rclone names it.
_OPTIONS: Final = (
    "rcd", "--rc-serve", "--rc-addr=127.0.0.1:0", "--rc-server-read-timeout=1h", "--use-server-modtime", "--ask-password=false",
    "--low-level-retries=3", "--retries=1", "--log-level=NOTICE", "--stats=0",
)  # fmt: skip
_URL: Final = re.compile(rb"http://127\.0\.0\.1:\d{1,5}/")
_TOO_OLD: Final = re.compile(r"unknown (command|flag|shorthand)")
#: Variables that would change what calls do, or where rclone listens and writes messages.
_CHANGES: Final = tuple(
    f"RCLONE_{name}"
    for name in (
        "RC", "LOG", "SYSLOG", "STATS", "EXCLUDE", "INCLUDE", "FILTER", "FILES_FROM", "MAX_", "MIN_", "IGNORE_", "BACKUP_DIR",
        "SUFFIX", "COPY_LINKS", "LOCAL_COPY_LINKS", "LOCAL_SKIP_LINKS", "SKIP_LINKS", "DRY_RUN", "INTERACTIVE", "IMMUTABLE", "QUIET", "VERBOSE", "USE_JSON_LOG",
    )
)  # fmt: skip
#: Seconds until it must listen, and to end.
_STARTS: Final = 60.0
_ENDS: Final = 10.0
#: Seconds in which a program whose connection broke may end.
_LAST: Final = 0.5
#: Bytes of messages that are kept.
_KEPT: Final = 16 * 1024


def find_rclone() -> str:
    """Return the path of the program. One in the working directory is somebody else's. Raises ConfigError without it."""
    path = shutil.which("rclone")
    if path is None or not Path(path).is_absolute():
        raise ConfigError("the rclone program is not installed", hint=INSTALL_HINT)
    return path


class RcloneServer:
    """The program, started when it is needed. Methods block."""

    def __init__(self, where: str, program: str) -> None:
        """`where`: the provider's name."""
        self._where, self._program = where, program
        self.password = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: _Messages | None = None

    def url(self) -> str:
        """Start the program unless it runs; return its URL. Raises ProviderRefused, ProviderUnavailable."""
        with self._lock:
            if self._process is None or self._messages is None or self._process.poll() is not None:
                self._end()
                self._messages = self._start()
            return self._messages.url

    def _start(self) -> _Messages:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_CHANGES)}
        # A link is listed as what cannot be read, and not left out.
        environment |= {"RCLONE_RC_USER": USER, "RCLONE_RC_PASS": self.password, "RCLONE_LOCAL_LINKS": "true"}
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _KEEPER, self._program, *_OPTIONS],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=os.path.sep,
                start_new_session=True,  # Ctrl-C ends this process first, which may still finish a request
            )
        except OSError as error:
            raise ProviderUnavailable(
                f"{self._where}: the rclone program cannot be started: {error.strerror or error}"
            ) from None
        self._process = process
        messages = _Messages(process.stderr)
        messages.known.wait(_STARTS)
        if messages.url:
            return messages
        self._end()
        stderr = messages.text()
        if _TOO_OLD.search(stderr):
            raise ProviderRefused(f"the rclone program is too old ({last_line(stderr)})", hint=INSTALL_HINT)
        raise explain(self._where, stderr)

    def last_words(self) -> str:
        """Return what the program wrote if it has ended or ends at once; else ""."""
        process, messages = self._process, self._messages
        if process is None or messages is None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LAST)
            return messages.text() or "it ended"
        return ""

    def close(self) -> None:
        """End the program."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process, self._messages = self._process, None, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(_ENDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class _Messages:
    """What the program writes to standard error. It is always read: a full pipe would stop the program."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self.url = ""
        #: Set when the URL is known, or never will be.
        self.known = threading.Event()
        self._kept = bytearray()
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def text(self) -> str:
        return self._kept.decode(errors="replace")

    def _read(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), pipe:
            while piece := os.read(pipe.fileno(), 1 << 14):
                self._kept += piece
                if not self.url and (match := _URL.search(self._kept)):
                    self.url = match[0].decode()
                    self.known.set()
                del self._kept[:-_KEPT]
        self.known.set()
