"""One SFTP session in an `ssh` program: packets to its standard input, replies from its standard output.

Three threads serve the pipes, so that a session outlives an event loop and no pipe stalls the program. The session ends with
this process: the program then reads the end of its input.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from typing import IO, Final

from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.sftp import packets
from ipfsmem_providers.sftp.errors import SHELL_HINT, explain
from ipfsmem_providers.sftp.packets import BadPacket, Reply

#: Bytes that are kept of what the program says.
_ERR_KEPT: Final = 16 * 1024
#: Seconds for the program to end after its output ended, and for the rest of its messages.
_ENDING: Final = 2.0
#: Variables that are not for the program: it would ask a person, or see our settings.
_PRIVATE: Final = (
    "IPFSMEM_", "SSH_ASKPASS", "GIT_TOKEN", "PEER_TOKEN", "WEBDAV_PASSWORD", "PINATA_", "PINNING_SERVICE_TOKEN", "FILEBASE_",
    "KUBO_RPC_AUTH", "W3UP_", "WEB3_STORAGE_TOKEN", "AZURE_STORAGE_",
)  # fmt: skip


class ConnectionLost(ProviderUnavailable):
    """The session ended with requests under way."""


class Channel:
    """One session. `request` may be called from any thread."""

    def __init__(self, command: Sequence[str], where: str) -> None:
        """Start the program. `where`: the spec, for errors. Raises ProviderUnavailable when it cannot be started."""
        self._where = where
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=os.path.sep,
                env=_environment(),
                start_new_session=True,  # no terminal that could be asked
            )
        except OSError as error:
            raise ProviderUnavailable(
                f"the ssh program cannot be started: {error.strerror or error}"
            ) from None
        self._lock = threading.RLock()  # a finalizer may kill in the middle of anything
        self._waiting: dict[int, Future[Reply]] = {}
        self._last_id = 0
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._said = bytearray()
        #: Why no request is answered any more.
        self.lost: ProviderError | None = None
        #: The extensions that the server offers, once the session has begun.
        self.begun: Future[frozenset[bytes]] = Future()
        self.ended: Future[None] = Future()
        self.requests = self.sent = self.received = 0
        #: Bytes of requests that are answered: what was sent may still be in the program.
        self._answered = 0
        #: Bytes of requests that are not answered yet.
        self.under_way = 0
        self._sizes: dict[int, int] = {}
        self._stderr_reader = threading.Thread(target=self._keep_messages, name="ipfsmem-ssh", daemon=True)
        for thread in (
            self._stderr_reader,
            threading.Thread(target=self._write, name="ipfsmem-ssh", daemon=True),
            threading.Thread(target=self._read, name="ipfsmem-ssh", daemon=True),
        ):
            thread.start()
        self._send(bytes([packets.INIT]) + (3).to_bytes(4, "big"))

    def request(self, kind: int, body: bytes) -> Future[Reply]:
        """Send a request; return its reply when that comes. Raises what `lost` says."""
        future: Future[Reply] = Future()
        with self._lock:
            if self.lost is not None:
                raise self.lost
            self._last_id = (self._last_id + 1) & 0xFFFFFFFF
            self._waiting[self._last_id] = future
            self._sizes[self._last_id] = len(body)
            self.under_way += len(body)
            self.requests += 1
            self._send(bytes([kind]) + self._last_id.to_bytes(4, "big") + body)
        return future

    @property
    def moved(self) -> int:
        """Bytes that moved so far, in both directions."""
        return self.sent + self.received + self._answered

    def close(self) -> None:
        """End the input of the program after what was sent, so that it ends."""
        self._outgoing.put(None)

    def kill(self, error: ProviderError | None = None) -> None:
        """End the program at once, with all that it started. Requests under way fail with `error`."""
        self._lose(error or ConnectionLost(f"{self._where}: the connection was closed"))
        if self._process.poll() is not None:
            return
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def _send(self, packet: bytes) -> None:
        self._outgoing.put(packets.text(packet))

    def _lose(self, error: ProviderError) -> None:
        with self._lock:
            self.lost = self.lost or error
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(self.lost)
        if not self.begun.done():
            with contextlib.suppress(InvalidStateError):  # nobody waits any more
                self.begun.set_exception(self.lost)

    # -- threads -------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        stdin = _pipe(self._process.stdin)
        with contextlib.suppress(OSError, ValueError), stdin:
            while (packet := self._outgoing.get()) is not None:
                stdin.write(packet)
                if self._outgoing.empty():
                    stdin.flush()
                self.sent += len(packet)

    def _keep_messages(self) -> None:
        with contextlib.suppress(OSError, ValueError), _pipe(self._process.stderr) as stderr:
            while piece := os.read(stderr.fileno(), 4096):
                self._said += piece
                del self._said[:-_ERR_KEPT]

    def _read(self) -> None:
        error: ProviderError | None = None
        with _pipe(self._process.stdout) as stdout:
            try:
                while (packet := self._packet(stdout)) is not None:
                    self._deliver(packet)
            except BadPacket as bad:
                error = self._bad(bad)
            except OSError:
                pass
            self._finish(error)

    def _packet(self, stdout: IO[bytes]) -> bytes | None:
        """Return the next packet; None at the end."""
        head = stdout.read(4)
        if len(head) < 4:
            if head and not self.begun.done():
                raise BadPacket("text")
            return None
        size = int.from_bytes(head, "big")
        if not 1 <= size <= packets.PACKET_MAX:
            raise BadPacket(f"a packet of {size:,} bytes")
        packet = stdout.read(size)
        self.received += 4 + len(packet)
        return packet if len(packet) == size else None

    def _deliver(self, packet: bytes) -> None:
        kind, cursor = packet[0], packets.Cursor(packet[1:])
        if not self.begun.done():
            if kind != packets.VERSION:
                raise BadPacket(f"a packet of type {kind} at the beginning")
            offered = packets.extensions(packet[1:])
            with contextlib.suppress(InvalidStateError):  # nobody waits any more
                self.begun.set_result(offered)
            return
        number = cursor.number()
        with self._lock:
            future = self._waiting.pop(number, None)
            size = self._sizes.pop(number, 0)
            self.under_way -= size
            self._answered += size
            is_lost = self.lost is not None
        if future is None:
            if is_lost:
                return
            raise BadPacket("a reply to no request")
        reply = Reply(kind, packet[5:])
        if future.set_running_or_notify_cancel():
            future.set_result(reply)
        elif kind == packets.HANDLE:  # nobody closes what a cancelled call opened
            with contextlib.suppress(BadPacket, ProviderError):
                self.request(packets.CLOSE, packets.text(packets.only_text(reply, packets.HANDLE)))

    def _bad(self, bad: BadPacket) -> ProviderError:
        if self.begun.done():
            return ProviderUnavailable(f"{self._where} does not follow the SFTP protocol: {bad}")
        return ProviderRefused(
            f"{self._where} answered with something else than SFTP: {bad}", hint=SHELL_HINT
        )

    def _finish(self, error: ProviderError | None) -> None:
        """Collect the program, and tell those who wait why."""
        if error is not None:
            self.kill(error)
        self.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._stderr_reader.join(_ENDING)  # another program that the configuration starts may hold the pipe
        if error is None:
            stderr = bytes(self._said).decode(errors="replace")
            error = explain(self._where, stderr)
            if self.begun.done():
                error = ConnectionLost(f"{self._where}: the connection ended", hint="Sync again.")
        self._lose(error)
        if self.ended.set_running_or_notify_cancel():
            self.ended.set_result(None)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _environment() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE)}
    return {**variables, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
