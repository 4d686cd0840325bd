"""The server over stdio: the first requests are answered before the tools are imported, calls of tools without the SDK, and all
others by the SDK.

Memory is bounded: a client that sends long or many lines, or does not read, costs no more than a few messages. Standard output
carries only the protocol: its descriptor is replaced, and all other output goes to stderr.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from ipfsmem.canonical import read_json, write_json
from ipfsmem.mcp.greetings import Greetings, prepared
from ipfsmem.mcp.lines import Read, lines

if TYPE_CHECKING:
    import asyncio

    from ipfsmem.mcp.server import Conversation, MemoryServer

Write = Callable[[Any], int]

#: Requests answered concurrently; further ones wait in the pipe.
MAX_IN_FLIGHT: Final = 32
#: Checks, 5 ms apart, after which the SDK has no open request.
_IDLE: Final = 4
#: The id of our own request to the client.
_ROOTS: Final = "ipfsmem-roots"
#: Time limit in seconds for a client to list its roots, before its first call is answered without them.
_ANSWERS_ROOTS: Final = 2.0


class Message(msgspec.Struct):
    """A line of the client, and its value if it is one JSON object."""

    line: str
    value: dict[str, Any]

    @property
    def method(self) -> str:
        """Return the method of a request or notification; "" for any other message."""
        method = self.value.get("method")
        return method if isinstance(method, str) else ""

    @property
    def id(self) -> str | int | None:
        """Return the id of a request, None for any other message."""
        number = self.value.get("id")
        return (
            number if isinstance(number, str | int) and not isinstance(number, bool) and self.method else None
        )


class Pipe:
    """Both ends of stdio. A thread reads from the start, answers what needs no tools, and queues the rest for `Conversing`."""

    def __init__(self, read: Read, write: Write, greetings: Greetings | None) -> None:
        """`greetings`: None if all answers need the tools."""
        self._read = read
        self._write = write
        self._writes = threading.Lock()
        self._greetings = greetings
        self._waiting: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(MAX_IN_FLIGHT)
        #: Set once the client has listed the tools, asks for more, or is gone: the tools are imported then.
        self.greeted = threading.Event()
        #: The handshake, if it was answered here; and whether the client no longer reads.
        self.handshake: Message | None = None
        self.is_gone = False
        #: The unanswered calls of tools, and whether the client cancelled each.
        self._calls: dict[str | int, bool] = {}

    def start(self) -> None:
        """Start the reading thread."""
        threading.Thread(target=self._run, name="mcp reads", daemon=True).start()

    def _run(self) -> None:
        try:
            for line in lines(self._read):
                message = Message(line, _object(line))
                answer = self.answer(message)
                if answer is not None:
                    self.send({"jsonrpc": "2.0", "id": message.id, "result": answer})
                    if message.method == "tools/list":
                        self.greeted.set()
                    continue
                self._note(message)
                if line.strip():
                    self._room.acquire()
                    self._waiting.put(message)
                    if message.method != "notifications/initialized":
                        self.greeted.set()
                if self.is_gone:
                    break
        except OSError:
            pass
        finally:
            self._waiting.put(None)
            self.greeted.set()

    def _note(self, message: Message) -> None:
        """Record a call, or its cancellation, as soon as it is read: a waiting call is then never begun."""
        if message.method == "tools/call" and message.id is not None:
            self._calls[message.id] = False
        elif message.method == "notifications/cancelled":
            params = message.value.get("params")
            number = params.get("requestId") if isinstance(params, dict) else None
            if isinstance(number, str | int) and number in self._calls:
                self._calls[number] = True

    def is_cancelled(self, call: str | int | None) -> bool:
        """Tell whether the client cancelled a call."""
        return call is not None and self._calls.get(call, False)

    def forget_call(self, call: str | int | None) -> None:
        """Forget an ended call; its id may be used again."""
        if call is not None:
            self._calls.pop(call, None)

    def answer(self, message: Message) -> dict[str, Any] | None:
        """Return an answer that needs no tools, for a client that began with the handshake; None for any other message."""
        if self._greetings is None or message.id is None:
            return None
        params = message.value.get("params")
        if self.handshake is not None:
            return self._greetings.answer(message.method, params)
        if message.method != "initialize":
            return None
        greeting = self._greetings.initialize(params)
        if greeting is not None:
            self.handshake = message
        return greeting

    def greet_with(self, make: Callable[[], Greetings]) -> None:
        """Answer from now on all requests that need only the tools' definitions, even if these were unknown before."""
        if self._greetings is None:
            self._greetings = make()

    def next(self) -> Message | None:
        """Wait for the next message that `answer` did not handle; None at the end of input."""
        return self._waiting.get()

    def done(self) -> None:
        """Free the slot of an answered message."""
        self._room.release()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        self.write(write_json(message).decode() + "\n")

    def write(self, text: str) -> None:
        """Write one line."""
        with self._writes:
            try:
                view = memoryview(text.encode("utf-8", "replace"))
                while view and not self.is_gone:
                    view = view[self._write(view) :]
            except OSError:
                self.is_gone = True


def _object(line: str) -> dict[str, Any]:
    try:
        value = read_json(line)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


class Conversing:
    """Answers the messages that `Pipe` queues: calls of tools directly, all others through the SDK, imported on demand."""

    def __init__(self, pipe: Pipe, served: MemoryServer) -> None:
        import asyncio

        self._pipe = pipe
        self._served = served
        self._there: Conversation = served.conversation_of()
        self._calls: set[asyncio.Task[None]] = set()
        #: Lines, and whether each holds a slot of the pipe.
        self._for_sdk: asyncio.Queue[tuple[str, bool] | None] = asyncio.Queue()
        self._sdk: asyncio.Task[None] | None = None
        self._told_ready: Message | None = None
        #: Cleared while the client has not answered which roots it has.
        self._roots_known = asyncio.Event()
        self._roots_known.set()
        self._reader, self._writer = _Helper("waits"), _Helper("writes")

    async def run(self) -> None:
        """Answer until the client closes its end, then answer the pending requests."""
        import asyncio

        try:
            while (message := await self._reader.do(self._pipe.next)) is not None and not self._pipe.is_gone:
                self._take(message)
            if self._calls:
                await asyncio.wait(set(self._calls))
            if self._sdk is not None:
                self._for_sdk.put_nowait(None)
                await self._sdk
        finally:
            tasks = [*self._calls, *([self._sdk] if self._sdk is not None else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, message: Message) -> None:
        method, value = message.method, message.value
        answer = self._pipe.answer(message)
        if answer is not None:
            self._begin(self._answered(message, answer))
        elif self._pipe.handshake is None:
            self._hand_on(message)
        elif method == "tools/call" and (call := _call_of(message)) is not None:
            self._begin(self._call(message, *call))
        elif not method and value.get("id") == _ROOTS:
            self._roots_told(value)
            self._pipe.done()
        elif (method and "id" not in value) or (not method and ("result" in value or "error" in value)):
            # Notifications, and answers to requests of the SDK.
            if method == "notifications/initialized":
                self._told_ready = message
            if method in ("notifications/initialized", "notifications/roots/list_changed"):
                self._ask_roots()
            self._hand_on(message) if self._sdk is not None else self._pipe.done()
        else:
            self._hand_on(message)

    def _begin(self, work: Any) -> None:
        import asyncio

        task = asyncio.ensure_future(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _answered(self, message: Message, answer: dict[str, Any]) -> None:
        try:
            await self._send({"jsonrpc": "2.0", "id": message.id, "result": answer})
        finally:
            self._pipe.done()

    async def _call(self, message: Message, name: str, arguments: dict[str, Any]) -> None:
        import asyncio

        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._roots_known.wait(), _ANSWERS_ROOTS)
            self._roots_known.set()
            handshake = self._pipe.handshake
            assert handshake is not None
            by = handshake.value["params"]["clientInfo"]["name"]
            answer = await self._served.call_tool(
                self._there, name, arguments, by, lambda: self._pipe.is_cancelled(message.id)
            )
            # A call that was begun is completed; a cancelled call has no answer either way.
            if answer is not None and not self._pipe.is_cancelled(message.id):
                await self._send({"jsonrpc": "2.0", "id": message.id, "result": answer})
        finally:
            self._pipe.forget_call(message.id)
            self._pipe.done()

    async def _send(self, message: dict[str, Any]) -> None:
        await self._writer.do(lambda: self._pipe.send(message))

    # -- roots of the client ---------------------------------------------------------------------------------

    def _ask_roots(self) -> None:
        handshake = self._pipe.handshake
        if handshake is None or handshake.value["params"]["capabilities"].get("roots") is None:
            return
        self._roots_known.clear()
        self._begin(self._send({"jsonrpc": "2.0", "id": _ROOTS, "method": "roots/list"}))

    def _roots_told(self, answer: dict[str, Any]) -> None:
        from ipfsmem.mcp.roots import folders_of

        result = answer.get("result")
        roots = result.get("roots") if isinstance(result, dict) else None
        uris = (
            [one.get("uri") if isinstance(one, dict) else None for one in roots]
            if isinstance(roots, list)
            else []
        )
        self._there.roots = folders_of(uri if isinstance(uri, str) else "" for uri in uris)
        self._roots_known.set()

    # -- answers of the SDK ----------------------------------------------------------------------------------

    def _hand_on(self, message: Message) -> None:
        import asyncio

        self._pipe.forget_call(message.id)  # the SDK tracks its own calls
        if self._sdk is None:
            self._sdk = asyncio.ensure_future(self._run_sdk())
            handshake = self._pipe.handshake
            if handshake is not None:
                self._for_sdk.put_nowait((handshake.line, False))
                if self._told_ready is not None:
                    self._for_sdk.put_nowait((self._told_ready.line, False))
        self._for_sdk.put_nowait((message.line, True))

    async def _run_sdk(self) -> None:
        await self._writer.do(_import_sdk)
        from mcp.server.lowlevel.server import NotificationOptions
        from mcp.server.stdio import stdio_server

        handshake = self._pipe.handshake
        wire = _SdkWire(
            self._for_sdk, self._pipe, self._writer, self._served, None if handshake is None else handshake.id
        )
        server = self._served.server
        options = server.create_initialization_options(NotificationOptions(resources_changed=True))
        async with stdio_server(wire, wire) as (reads, writes):  # type: ignore[arg-type]
            await server.run(reads, writes, options)


def _call_of(message: Message) -> tuple[str, dict[str, Any]] | None:
    """Return name and arguments of a call; None for a call that the SDK must check."""
    params = message.value.get("params")
    if (
        message.id is None
        or not isinstance(params, dict)
        or not params.keys() <= {"name", "arguments", "_meta"}
    ):
        return None
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict | None):
        return None
    return name, arguments or {}


def _import_sdk() -> None:
    import mcp.server.lowlevel.server
    import mcp.server.stdio  # noqa: F401 - in a thread, as it takes half a second


class _SdkWire:
    """Lines in and out in the form that the SDK expects. Its answer to a handshake that was answered before is dropped."""

    def __init__(
        self,
        waiting: asyncio.Queue[tuple[str, bool] | None],
        pipe: Pipe,
        writer: _Helper,
        served: MemoryServer,
        answered: str | int | None,
    ) -> None:
        self._waiting = waiting
        self._pipe = pipe
        self._writer = writer
        self._served = served
        self._answered = answered
        self._writing = 0

    async def __aiter__(self) -> AsyncIterator[str]:
        import asyncio

        while (entry := await self._waiting.get()) is not None and not self._pipe.is_gone:
            line, takes_room = entry
            yield line
            while self._is_busy(MAX_IN_FLIGHT):
                await asyncio.sleep(0.001)
            if takes_room:
                self._pipe.done()
        idle = 0
        while idle < _IDLE and not self._pipe.is_gone:  # requests before the end are answered
            idle = 0 if self._is_busy(1) else idle + 1
            await asyncio.sleep(0.005)

    def _is_busy(self, many: int) -> bool:
        return not self._pipe.is_gone and (self._writing > 0 or self._served.in_flight >= many)

    async def write(self, text: str) -> None:
        """Write one message."""
        if self._answered is not None:
            value = _object(text)
            if value.get("id") == self._answered and "result" in value:
                self._answered = None
                return
        self._writing += 1
        try:
            await self._writer.do(lambda: self._pipe.write(text))
        finally:
            self._writing -= 1

    async def flush(self) -> None:
        """Do nothing: every message is written at once."""


class _Helper:
    """A daemon thread that blocks in place of the event loop."""

    def __init__(self, what: str) -> None:
        self._work: queue.SimpleQueue[
            tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]
        ]
        self._work = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"mcp {what}", daemon=True).start()

    async def do(self, work: Callable[[], Any]) -> Any:
        """Run `work` in the thread. Return its result, or raise its error."""
        import asyncio

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
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, done, result, failure)


def _settle(done: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if done.done():
        return
    if failure is not None:
        done.set_exception(failure)
    else:
        done.set_result(result)


def take_streams() -> tuple[Read, Write, Callable[[], None]]:
    """Return both ends of stdio under other descriptors, and a function that restores them; until then 0 is empty and 1 is
    stderr."""
    if not _is_descriptor(sys.stdin, 0) or not _is_descriptor(sys.stdout, 1):
        source, sink = sys.stdin.buffer, sys.stdout.buffer  # replaced by our caller
        return getattr(source, "read1", source.read), sink.write, sink.flush
    sys.stdout.flush()
    reads, writes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)

    def give_back() -> None:
        os.dup2(reads, 0)
        os.dup2(writes, 1)

    # Never closed: a thread may still read one of them.
    return partial(os.read, reads), partial(os.write, writes), give_back


def _is_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (AttributeError, OSError):
        return False


async def serve_stdio(served: MemoryServer, pipe: Pipe) -> None:
    """Serve until the client closes its end."""
    pipe.greet_with(
        lambda: Greetings(prepared(), served.listed_tools(served.conversation_of()), served.instructions)
    )
    await Conversing(pipe, served).run()
