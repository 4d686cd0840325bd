"""The server over standard input and output, bounded: a client that sends long lines or many, or does not read, costs no more
memory than a few messages.

Standard output carries the protocol alone: its descriptor is taken away, and what anything else prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import msgspec
from msgspec import json

from ipfsmem.canonical import read_json
from ipfsmem.mcp.server import HALF_A_CHARACTER, TOO_LONG

if TYPE_CHECKING:
    from ipfsmem.mcp.server import MemoryServer

Read = Callable[[int], bytes]
Write = Callable[[Any], int]

#: Bytes of one message, and of one read.
MAX_LINE: Final = 8 * 1024 * 1024
_AT_ONCE: Final = 64 * 1024
#: Requests that are answered side by side; further ones wait in the pipe.
MAX_IN_FLIGHT: Final = 32
#: Looks, 5 ms apart, after which nothing more is being answered.
_IDLE: Final = 4

#: The number of a request, where clients write it: first, or last.
_NUMBER: Final = rb'"id"\s*:\s*("[^"\\]{0,200}"|-?[0-9]{1,18})'
_first = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _NUMBER)
_last = re.compile(_NUMBER + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_LOOKED_AT: Final = 1024
#: One half of a character outside the first plane, as JSON escapes it.
_half = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


async def serve_stdio(served: MemoryServer) -> None:
    """Serve until the client closes its end."""
    from mcp.server.lowlevel.server import NotificationOptions
    from mcp.server.stdio import stdio_server

    read, write, give_back = _take_streams()
    wire = Wire(read, write, lambda: served.in_flight)
    options = served.server.create_initialization_options(NotificationOptions(resources_changed=True))
    try:
        async with stdio_server(wire, wire) as (reads, writes):  # type: ignore[arg-type]
            await served.server.run(reads, writes, options)
    finally:
        give_back()


def _take_streams() -> tuple[Read, Write, Callable[[], None]]:
    """Both ends of the wire under other descriptors; 0 reads nothing and 1 is stderr until they are given back."""
    if not _is_descriptor(sys.stdin, 0) or not _is_descriptor(sys.stdout, 1):
        source, sink = sys.stdin.buffer, sys.stdout.buffer  # put there by whoever called us
        return source.read, sink.write, sink.flush
    sys.stdout.flush()
    reads, writes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)

    def give_back() -> None:
        os.dup2(reads, 0)
        os.dup2(writes, 1)

    # Never closed: a thread may still wait for one of them.
    return partial(os.read, reads), partial(os.write, writes), give_back


def _is_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (AttributeError, OSError):
        return False


class Wire:
    """Lines in and out, as the SDK wants them."""

    def __init__(self, read: Read, write: Write, in_flight: Callable[[], int]) -> None:
        self._read = read
        self._write = write
        self._in_flight = in_flight
        self._reader, self._writer = _Helper("reads"), _Helper("writes")
        #: What was read beyond the last line.
        self._rest = b""
        self._writing = 0
        #: Whether nobody reads what is written any more.
        self._is_gone = False

    async def __aiter__(self) -> AsyncIterator[str]:
        """The lines that come in; of one that is too long only its number is kept, so that it can be answered."""
        while not self._is_gone and (line := await self._line()):
            yield line
            while self._is_busy(MAX_IN_FLIGHT):
                await asyncio.sleep(0.001)
        idle = 0
        while idle < _IDLE and not self._is_gone:  # what was asked before the end is answered
            idle = 0 if self._is_busy(1) else idle + 1
            await asyncio.sleep(0.005)

    def _is_busy(self, many: int) -> bool:
        return not self._is_gone and (self._writing > 0 or self._in_flight() >= many)

    async def _line(self) -> str:
        """The next line with its end; empty at the end of all."""
        found = self._rest.find(b"\n") + 1
        if not found:
            return _answerable(cast(str, await self._reader.do(self._read_line)))
        line, self._rest = self._rest[:found], self._rest[found:]
        return _answerable(line.decode("utf-8", "replace"))

    def _read_line(self) -> str:
        parts, size, is_long = [self._rest], len(self._rest), False
        while data := self._read(_AT_ONCE):
            line, end, rest = data.partition(b"\n")
            size += len(line)
            is_long = is_long or size > MAX_LINE
            parts.append(line)
            if is_long:  # the beginning and the end are kept
                whole = b"".join(parts)
                parts = [whole[:_LOOKED_AT], whole[_LOOKED_AT:][-_LOOKED_AT:]]
            if end:
                self._rest = rest
                break
        else:
            self._rest = b""
            if not size:
                return ""
        return _too_long(parts) if is_long else b"".join(parts).decode("utf-8", "replace") + "\n"

    async def write(self, text: str) -> None:
        """Write one message."""
        self._writing += 1
        try:
            if not self._is_gone:
                await self._writer.do(lambda: self._write_all(text.encode()))
        except OSError:
            self._is_gone = True
        finally:
            self._writing -= 1

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._write(view) :]

    async def flush(self) -> None:
        """Does nothing: every message is written at once."""


def _too_long(parts: list[bytes]) -> str:
    """A call in place of one that is too long, with its number, if that stands where clients write it."""
    found = _first.match(parts[0]) or _last.search(parts[-1])
    if found is None:
        return "\n"
    return _in_place_of(json.decode(found[1]), TOO_LONG)


class _Numbered(msgspec.Struct):
    id: str | int


def _answerable(line: str) -> str:
    """The line; or a call with its number, in place of one that holds a half of a character without the other."""
    if _half.search(line) is None:
        return line
    try:
        read_json(line)
    except msgspec.DecodeError:
        try:
            number = read_json(_half.sub(r"\\ufffd", line), type=_Numbered).id
        except msgspec.DecodeError:  # something else is wrong with it
            return line
        return _in_place_of(number, HALF_A_CHARACTER) + "\n"
    return line


def _in_place_of(number: str | int, why: str) -> str:
    call = {"name": why, "arguments": {}}
    return json.encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}).decode()


class _Helper:
    """A thread that waits in place of the event loop, and keeps no program from ending."""

    def __init__(self, what: str) -> None:
        self._work: queue.SimpleQueue[
            tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]
        ]
        self._work = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"mcp {what}", daemon=True).start()

    async def do(self, work: Callable[[], Any]) -> Any:
        """Run `work` in the thread; gives what it returns, raises what it raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._work.put((loop, done, work))
        return await done

    def _run(self) -> None:
        while True:
            loop, done, work = self._work.get()
            try:
                result, failure = work(), None
            except Exception as error:
                result, failure = None, error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, done, result, failure)


def _settle(done: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if done.done():
        return
    if failure is not None:
        done.set_exception(failure)
    else:
        done.set_result(result)
