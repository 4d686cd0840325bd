"""A running plugin: its process, the one thread that talks to it, and its time limits.

Calls wait in a queue and have a time limit, at which the process is ended; the next call starts another one. Nothing here raises
into the caller: a failure is the result of a call.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ipfsmem.canonical import read_json

_CHILD: Final = Path(__file__).with_name("child.py")
#: Maximum seconds to load a plugin; calls before that have the usual time limit.
START: Final = 30.0
#: Maximum waiting calls; more are refused.
_QUEUE: Final = 64
#: Maximum bytes of a line in addition to the text: an error, and the JSON around it.
_FRAME: Final = 4_096


class PluginFailure(Exception):
    """Why a plugin returned nothing."""


class Given(NamedTuple):
    """The result of a call, and whether it was cut."""

    text: str
    cut: bool


class _Answer(msgspec.Struct):
    text: str = ""
    cut: bool = False
    failed: str = ""


class _Call(NamedTuple):
    method: str
    arguments: tuple[str, ...]
    result: Future[Given]


class PluginProcess:
    """One plugin. `seconds`: time limit of a call; `characters`: maximum of a returned text."""

    def __init__(self, point: EntryPoint, seconds: float, characters: int) -> None:
        self._point = point
        self._seconds = seconds
        self._characters = characters
        self._calls: queue.Queue[_Call | None] = queue.Queue(_QUEUE)
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"plugin {point.name}", daemon=True)
        self._thread.start()

    def call(self, method: str, *arguments: str) -> Future[Given]:
        """Queue a call; returns a future of its result or a PluginFailure."""
        result: Future[Given] = Future()
        if self._ended.is_set():
            result.set_exception(PluginFailure("the memory is closed"))
            return result
        try:
            self._calls.put_nowait(_Call(method, arguments, result))
        except queue.Full:
            result.set_exception(PluginFailure("too many calls wait for it"))
        return result

    def close(self, wait: float) -> None:
        """End the process after the queued calls, within `wait` seconds."""
        with contextlib.suppress(queue.Full):
            self._calls.put_nowait(None)
            self._thread.join(wait)
        self._ended.set()
        process = self._process
        if process is not None:
            _end(process)  # its thread, which may still be reading, closes the pipes

    # -- in the thread -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if not call.result.set_running_or_notify_cancel():
                continue
            try:
                self._started()
                wish = {"method": call.method, "arguments": call.arguments}
                answer = self._asked(wish, self._seconds)
            except PluginFailure as error:
                call.result.set_exception(error)
            else:
                call.result.set_result(Given(answer.text, answer.cut))
            if self._ended.is_set() and self._calls.empty():
                break  # the queue has no room for the end marker
        self._kill()

    def _started(self) -> None:
        """Start the process, if it is not running."""
        if self._process is not None and self._process.poll() is None:
            return
        self._kill()
        if self._ended.is_set():
            raise PluginFailure("the memory is closed")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                # Our environment may hold passphrases; a plugin has settings of its own.
                env={name: value for name, value in os.environ.items() if not name.startswith("IPFSMEM_")},
            )
        except OSError as error:
            raise PluginFailure(f"no process can be started for it: {error}") from None
        if self._ended.is_set():
            self._kill()
            raise PluginFailure("the memory is closed")
        point = self._point
        first = {"path": [one for one in sys.path if isinstance(one, str)], "characters": self._characters}
        try:
            self._asked({**first, "name": point.name, "value": point.value, "group": point.group}, START)
        except PluginFailure:
            self._kill()
            raise

    def _asked(self, wish: Mapping[str, object], seconds: float) -> _Answer:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            _end(process)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        line = b""
        with contextlib.suppress(OSError):
            process.stdin.write(msgspec.json.encode(wish) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline(12 * self._characters + _FRAME)
        timer.cancel()
        try:
            if not line.endswith(b"\n"):
                raise PluginFailure(
                    f"it took longer than {seconds:g} seconds" if late.is_set() else "its process ended"
                )
            answer = read_json(line, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._kill()
            raise PluginFailure("it returned an invalid answer") from None
        except PluginFailure:
            self._kill()
            raise
        if answer.failed:
            raise PluginFailure(answer.failed)
        return answer

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _end(process)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children that are still attached: they would keep the pipes open."""
    if sys.platform != "win32" and process.returncode is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
