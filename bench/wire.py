"""Counts this process's HTTP traffic: requests, and every byte both ways, headers included; and packets of
SFTP.

It hooks into aiohttp's connections and into the packets for `ssh`. Other traffic uses a relay
(`Wire.relay`), which forwards every byte unchanged. It measures no time."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

_REQUEST = re.compile(
    rb"^(?:GET|HEAD|PUT|POST|DELETE|PROPFIND|PROPPATCH|MKCOL|MOVE) \S+ HTTP/1\.1\r$", re.MULTILINE
)


class Wire:
    """The counters; `watch` starts them for the whole process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start from zero."""
        self.requests = 0
        self.sent = 0
        self.received = 0

    def numbers(self) -> dict[str, int]:
        """Return the counts."""
        return {"requests": self.requests, "sent": self.sent, "received": self.received}

    def relay(self, url: str) -> str:
        """Return a URL that leads to the server at `url` for the lifetime of this process, and count its
        traffic."""
        to = urlsplit(url)
        server = socket.create_server(("127.0.0.1", 0))

        def accept() -> None:
            while True:
                here, _ = server.accept()
                there = socket.create_connection((to.hostname or "", to.port or 80))
                for one in (here, there):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, sink, ours in ((here, there, True), (there, here, False)):
                    threading.Thread(target=self._pass_on, args=(source, sink, ours), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    def _pass_on(self, source: socket.socket, sink: socket.socket, ours: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                if ours:
                    self.sent += len(data)
                    self.requests += len(_REQUEST.findall(data[:4096]))
                else:
                    self.received += len(data)
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def watch(self) -> None:
        """From now on, count all of aiohttp's connections, and sessions of SFTP."""
        self._watch_sftp()
        from aiohttp.client_proto import ResponseHandler
        from aiohttp.client_reqrep import ClientRequest

        wire, made, got, send = (
            self,
            ResponseHandler.connection_made,
            ResponseHandler.data_received,
            ClientRequest.send,
        )

        def connection_made(handler: Any, transport: asyncio.BaseTransport) -> None:
            made(handler, transport)
            handler.transport = _Counted(transport, wire)

        def data_received(handler: Any, data: bytes) -> None:
            wire.received += len(data)
            got(handler, data)

        async def counted(request: Any, *args: Any, **options: Any) -> Any:
            wire.requests += 1
            return await send(request, *args, **options)

        patched: Any = ResponseHandler
        patched.connection_made, patched.data_received = connection_made, data_received
        asked: Any = ClientRequest
        asked.send = counted

    def _watch_sftp(self) -> None:
        from ipfsmem_providers.sftp.channel import Channel

        wire, request, packet = self, Channel.request, Channel._packet

        def counted(channel: Channel, kind: int, body: bytes) -> Any:
            wire.requests += 1
            wire.sent += 9 + len(body)
            return request(channel, kind, body)

        def received(channel: Channel, stdout: Any) -> bytes | None:
            found = packet(channel, stdout)
            wire.received += 4 + len(found or b"")
            return found

        patched: Any = Channel
        patched.request, patched._packet = counted, received


class _Counted:
    """A transport that counts written bytes."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    def write(self, data: bytes) -> None:
        self._wire.sent += len(data)
        self._inner.write(data)

    def writelines(self, parts: list[bytes]) -> None:
        self._wire.sent += sum(map(len, parts))
        self._inner.writelines(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
