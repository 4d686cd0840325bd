"""The HTTP API as an application: authentication, the call of a route for a request, and its answer.

It decides nothing that `Memory` decides. Work on a vault is done in a thread, one call at a time, so the event loop never waits
for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from io import BytesIO
from typing import Any, Final

import msgspec
from aiohttp import web

from ipfsmem import __version__
from ipfsmem.api import (
    compat_serving,
    derived,
    metrics,
    page,
    problems,
)
from ipfsmem.api.calls import (
    NO_PRECONDITION,
    OUTDATED,
    Call,
    Caller,
    Download,
    Refused,
    Reply,
    Served,
    Vaults,
    precondition,
    read_query,
)
from ipfsmem.api.changes import as_event, for_caller
from ipfsmem.api.document import document
from ipfsmem.api.problems import Problem
from ipfsmem.api.routes import Route
from ipfsmem.api.served import ServedMemory, until
from ipfsmem.api.turns import MOST, TooManyCalls, Turns
from ipfsmem.api.who import AccessControl, CodeBody, KnownCaller, SessionToken
from ipfsmem.bundle.keys import check_key
from ipfsmem.canonical import read_json, write_json
from ipfsmem.compat.http import HttpRoute
from ipfsmem.device.lock import one_wait
from ipfsmem.errors import NotFoundError, PassphraseError, UsageError
from ipfsmem.http.connection_limits import TRUSTED
from ipfsmem.memory import Memory
from ipfsmem.open_vault.audit import acting_as, collecting, collecting_doubts
from ipfsmem.open_vault.handle import reading_only
from ipfsmem.operations.sync import synced

#: Maximum seconds for the body of a request, and between two keep-alive comments in a stream of changes.
BODY_TIME: Final = 30.0
#: Maximum bytes of a body that is read before the right of its token is checked.
_SMALL_BODY: Final = 64 * 1024
#: Maximum characters of the header `Ipfsmem-Outdated`; clients refuse lines of 8 KiB.
_MOST_IN_A_HEADER: Final = 4_000
ALIVE_EVERY: Final = 15.0
#: Seconds between two checks whether the token of a stream of changes was revoked.
LOOK_EVERY: Final = 0.5
#: Maximum number of change streams of one server, and of one stored token.
MAX_LISTENERS: Final = 64
MAX_OF_A_TOKEN: Final = 8
ROUTES: Final = derived.routes()
#: Maximum bytes of a request body in another program's API.
_MOST_OF_A_PROGRAM: Final = 4 * 1024 * 1024
#: The kind of a refusal by status; only HTTP has these, no command ends with them.
_REFUSALS: Final = {401: "TokenError", 403: "OriginError", 421: "HostError"}
_KNOWN: Final = web.RequestKey("known", KnownCaller)
_EVENTS: Final = "text/event-stream"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """Vaults served over HTTP."""

    def __init__(
        self,
        served: Sequence[ServedMemory],
        doors: AccessControl,
        *,
        read_only: bool = False,
        files: page.PageFiles | None = None,
        hint_for: Callable[[str, str, str], str] = lambda hint, _vault_name, _scope: hint,
        sync: bool = False,
        program: str = "",
        workspace: str = "",
    ) -> None:
        """Without a named vault, the first of `served` is used. `read_only`: refuse all writes. `files`: the page. `hint_for`:
        adapts a hint to the vault and scope of a request, so that a command in it reaches these. `sync`: keep the vaults
        in sync. `program`: another program whose routes are served too; `workspace`: its default scope."""
        self._served = {one.vault_name: one for one in served}
        self._doors = doors
        self._read_only = read_only
        self._files = files
        self._hint_for = hint_for
        self._sync = sync and not read_only
        self._program = program
        self._workspace = workspace
        self._metrics = metrics.Metrics()
        #: Number of open streams, by the hash of a stored token.
        self._streams = Counter[str]()
        #: The turns of large bodies, by the hash of a stored token, so that each token has one in memory.
        self._bodies = defaultdict[str, Turns](Turns)

    def app(self) -> web.Application:
        """Return the application. It drops the keys of a vault soon after a user locks it."""
        app = web.Application(middlewares=[self._guard], client_max_size=max(one.most for one in ROUTES))
        app[TRUSTED] = lambda request: (
            self._doors.caller_of(request.headers.getall("Authorization", [])) is not None
        )
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/metrics", self._numbers),
                web.get("/v1/openapi.json", self._document),
                web.get("/v1/vaults", self._vaults),
                web.get("/v1/changes", self._changes, allow_head=False),
                *(
                    web.route(route.method.upper(), route.path, functools.partial(self._call, route))
                    for route in ROUTES
                ),
            ]
        )
        if self._program:
            if health := compat_serving.PROGRAMS[self._program].health:
                app.add_routes([web.get(health, self._program_health)])
            app.add_routes(
                web.route(route.method, route.path, functools.partial(self._of_program, route))
                for route in compat_serving.PROGRAMS[self._program].routes
            )
        if self._files is not None:
            app.add_routes([web.post("/v1/session", self._session), web.get("/{file:.*}", self._page)])
        app.cleanup_ctx.append(self._looking)
        return app

    # -- before and after every handler ------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        began = time.monotonic()
        answer = await self._answered(request, handler)
        if not isinstance(answer, web.Response):
            return answer  # a stream
        answer.headers.update(page.SAFE_HEADERS)
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else "none"
        self._metrics.add(route, answer.status, time.monotonic() - began)
        return answer

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = request.headers
        wrong = self._doors.check_host_and_origin(headers.getall("Host", []), headers.getall("Origin", []))
        if wrong is not None:
            return _refusal(*wrong)
        if not self._is_open(request):
            identity = self._doors.caller_of(headers.getall("Authorization", []))
            if identity is None:
                return _refusal(401, "token wrong or missing")
            request[_KNOWN] = identity
        try:
            return await handler(request)
        except TooManyCalls:
            words = f"this token has {MOST} concurrent calls, which is the maximum"
            return _problem(problems.said(429, "LimitError", words, exit_code=5), {"Retry-After": "1"})
        except Refused as stopped:
            return _problem(self._hinted(request, stopped.problem))
        except web.HTTPException as answer:
            allowed = {name: answer.headers[name] for name in ("Allow",) if name in answer.headers}
            kind = "NotFoundError" if answer.status == 404 else "UsageError"
            code = 4 if answer.status == 404 else 2
            return _problem(problems.said(answer.status, kind, answer.reason, exit_code=code), allowed)
        except Exception as error:
            return _problem(self._hinted(request, problems.of_error(error)))

    def _hinted(self, request: web.Request, problem: Problem) -> Problem:
        """Return the problem with its hint adapted to the vault and scope of the request."""
        if not problem.hint:
            return problem
        identity = request.get(_KNOWN)
        vault = request.query.get("vault", "") or (identity.vault_name if identity is not None else None)
        vault_name = vault if vault in self._served else next(iter(self._served))
        hint = self._hint_for(problem.hint, vault_name, request.query.get("scope", ""))
        return msgspec.structs.replace(problem, hint=hint)

    async def _looking(self, _: web.Application) -> AsyncIterator[None]:
        looks = [asyncio.create_task(one.look_out()) for one in self._served.values()]
        if self._sync:
            looks += [asyncio.create_task(one.keep_in_sync()) for one in self._served.values()]
        yield
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    # -- calls -----------------------------------------------------------------------------------------------

    def _memory(self, request: web.Request, vault: str | None) -> ServedMemory:
        """Return the vault of a request. Raises NotFoundError for one that its token does not open."""
        identity = request[_KNOWN]
        name = vault or identity.vault_name or next(iter(self._served))
        if name not in self._served or identity.vault_name not in (None, name):
            raise NotFoundError(f"this server has no vault {name[:64]!a} for this token")
        return self._served[name]

    def _caller(self, identity: KnownCaller, served: ServedMemory, whole: Memory) -> Caller:
        """Return the rights of a request's token, checked while the vault is open. Raises Refused for a token that opens
        nothing."""
        if identity.caller is not None:
            return identity.caller
        token = served.tokens.meant(identity.digest, whole.replica)
        if token is None:
            raise Refused(problems.said(401, "TokenError", "token wrong or missing", exit_code=26))
        return Caller(token.right, None if token.scopes is None else frozenset(token.scopes))

    async def _call(self, route: Route, request: web.Request) -> web.StreamResponse:
        identity = request[_KNOWN]
        query = read_query(list(request.query.items()), route.parameters, route.needs, route.known)
        served = self._memory(request, query.pop("vault", None))
        if self._read_only and route.right != "read":
            raise Refused(problems.said(403, "ReadOnlyError", "this server is read-only"))
        if identity.caller is not None:
            identity.caller.require(route.right)
        scope_name, stack = query.pop("scope", None), tuple(query.pop("stack", ()))
        scope = scope_name or ""
        if scope and stack:
            raise UsageError("pass only one of scope and stack: scope reads one scope, stack several")
        path = dict(request.match_info)
        key = check_key(path.pop("key")) if "key" in path else ""
        seen = None
        if route.seen:
            match, none = request.headers.getall("If-Match", []), request.headers.getall("If-None-Match", [])
            seen = precondition(match, none, new=route.new)
            if seen is None:
                raise Refused(NO_PRECONDITION)

        def admit(whole: Memory) -> None:
            route.admit(self._caller(identity, served, whole), whole, scope_name, stack)

        has_body = route.body is not None
        async with contextlib.AsyncExitStack() as turn:
            await turn.enter_async_context(
                self._turn_of_body(request, identity, served, admit if has_body else None)
            )
            body = None if route.body is None else await _body(request, route)
            if request.content.total_bytes <= _SMALL_BODY:
                await turn.aclose()  # of unknown length before
            values = {**query, **path}

            better: list[str] = []
            doubts: list[str] = []

            def work(whole: Memory) -> Any:
                caller = self._caller(identity, served, whole)
                route.admit(caller, whole, scope_name, stack)
                for one in (scope, *stack):
                    if one and not route.writes:
                        card = whole.scopes.get(one)
                        if card is None or (card.forgotten and bool(stack)):
                            raise NotFoundError(f"there is no scope {one}")
                is_named = scope or (route.about == "part" and scope_name is not None)
                memory = whole.scope(scope) if is_named else whole
                remembered = functools.partial(served.remembered, whole)
                call = Call(memory, whole, caller, scope, stack, key, values, body, seen, remembered)
                with (
                    acting_as("http", identity.by),
                    reading_only(caller.scopes),
                    collecting() as notes,
                    collecting_doubts() as noticed,
                ):
                    try:
                        result = route.work(call)
                        better.extend(notes)
                        doubts.extend(noticed)
                        return result
                    finally:
                        if route.right != "read" and not route.beside:
                            served.may_have_changed()

            if route.name == "sync":
                await served.on(
                    lambda whole: route.admit(self._caller(identity, served, whole), whole, None, ()),
                    identity.digest,
                )
                with acting_as("http", identity.by):
                    return _json(synced(await served.sync()))
            try:
                result = await (served.beside(work) if route.beside else served.on(work, identity.digest))
            finally:
                if route.right != "read":  # a call that failed halfway may have written too
                    served.wrote()
            answer = _answer(result)
            if not isinstance(result, Download):
                return _with_notes(answer, better=better, outdated=doubts)
            # A file is the operation's result, byte for byte, so the note is in a header.
            if doubts:
                answer.headers[OUTDATED] = _in_a_header(doubts)
            return answer

    @contextlib.asynccontextmanager
    async def _turn_of_body(
        self,
        request: web.Request,
        identity: KnownCaller,
        served: ServedMemory,
        admit: Callable[[Memory], None] | None,
    ) -> AsyncIterator[None]:
        """Check the token of a request with a large body before that is read, and wait until the token's other large bodies are
        worked on, which no call of another token waits for. `admit` None: the body is not read. Raises Refused, TooManyCalls."""
        size = request.content_length
        if admit is None or not request.body_exists or (size is not None and size <= _SMALL_BODY):
            yield
            return
        await served.on(admit, identity.digest)
        async with self._bodies[identity.digest].of(identity.digest, most=MOST if identity.digest else None):
            yield

    async def _program_health(self, _: web.Request) -> web.Response:
        return _json({"status": "ok", "version": __version__})

    def _is_open(self, request: web.Request) -> bool:
        """Tell whether a request needs no token: for the page, or the health check of another program's server."""
        health = compat_serving.PROGRAMS[self._program].health if self._program else ""
        if health and (request.method, request.path) == ("GET", health):
            return True
        return self._files is not None and page.is_open(request.method, request.path)

    async def _of_program(self, route: HttpRoute, request: web.Request) -> web.StreamResponse:
        """Answer a call in another program's API."""
        identity, program = request[_KNOWN], compat_serving.PROGRAMS[self._program]
        served = self._memory(request, None)
        if self._read_only and route.right != "read":
            raise Refused(problems.said(403, "ReadOnlyError", "this server is read-only"))
        has_body = request.body_exists and request.method != "GET"

        def admit(whole: Memory) -> None:
            self._caller(identity, served, whole).require(route.right)

        async with self._turn_of_body(request, identity, served, admit if has_body else None):
            try:
                body = compat_serving.body_of(await _bytes(request, _MOST_OF_A_PROGRAM)) if has_body else None
            except UsageError as error:
                return compat_serving.response(program.problem(error))

            def work(whole: Memory) -> Any:
                caller = self._caller(identity, served, whole)
                with acting_as("http", identity.by):
                    try:
                        return compat_serving.worked(
                            program, route, self._workspace, request, body, caller, whole
                        )
                    finally:
                        if route.right != "read":
                            served.may_have_changed()

            try:
                result = await served.on(work, identity.digest)
            finally:
                if route.right != "read":
                    served.wrote()
            return compat_serving.response(result)

    # -- of the server itself --------------------------------------------------------------------------------

    async def _health(self, _: web.Request) -> web.Response:
        return _json({"ok": True})

    async def _document(self, _: web.Request) -> web.Response:
        return _json(document(ROUTES))

    async def _numbers(self, request: web.Request) -> web.Response:
        if request[_KNOWN].caller is None:
            served = self._memory(request, None)
            identity = request[_KNOWN]
            caller = await served.on(lambda whole: self._caller(identity, served, whole), identity.digest)
            caller.require_all_scopes()
        memories = self._served.values()
        text = self._metrics.text(memories=len(memories), locked=sum(one.locked for one in memories))
        return web.Response(text=text, headers={"Content-Type": metrics.CONTENT_TYPE})

    async def _vaults(self, request: web.Request) -> web.Response:
        read_query(list(request.query.items()), ())
        identity = request[_KNOWN]
        caller, vaults = identity.caller, []
        with one_wait():
            for name, served in self._served.items():
                if identity.vault_name not in (None, name):
                    continue
                try:
                    ends = await served.on(until, identity.digest)
                    if caller is None:
                        caller = await served.on(
                            functools.partial(self._caller, identity, served), identity.digest
                        )
                    vaults.append(Served(vault_name=name, locked=False, until=ends))
                except PassphraseError:
                    vaults.append(Served(vault_name=name, locked=True, until=None))
        caller = caller or Caller("read", frozenset())
        right = "read" if self._read_only else caller.right
        scopes = None if caller.scopes is None else sorted(caller.scopes)
        return _json(Vaults(vaults=vaults, right=right, scopes=scopes, version=__version__))

    async def _session(self, request: web.Request) -> web.Response:
        body = await _json_body(request, CodeBody, 4_096)
        token = self._doors.exchange(body.code)
        if token is None:
            words = "this code is wrong, was used, or is older than two minutes"
            hint = (
                "Press Enter in the terminal that serves this page: it prints a new link. Or end it there with Ctrl-C, and run "
                "again: ipfsmem ui"
            )
            raise Refused(problems.said(401, "CodeError", words, hint=hint, exit_code=26))
        return _json(SessionToken(token=token, vault_name=next(iter(self._served))), 201)

    async def _page(self, request: web.Request) -> web.Response:
        assert self._files is not None
        response = self._files.answer(request.match_info["file"])
        if response is None:
            raise web.HTTPNotFound
        return response

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Stream changes as server-sent events; the stream ends when its token is revoked."""
        identity = request[_KNOWN]
        query = read_query(list(request.query.items()), ("vault", "cursor"))
        served = self._memory(request, query.get("vault"))
        cursor = request.headers.get("Last-Event-ID") or query.get("cursor") or ""
        with self._one_more_listens(identity):
            return await self._stream(request, identity, served, cursor)

    @contextlib.contextmanager
    def _one_more_listens(self, identity: KnownCaller) -> Iterator[None]:
        """Count one more stream, before anything is waited for. Raises Refused at a limit: a stored token has a low one, so
        that its program cannot use up the streams of all others."""
        of_token = self._streams[identity.digest] if identity.digest else 0
        if self._metrics.listeners >= MAX_LISTENERS or of_token >= MAX_OF_A_TOKEN:
            raise Refused(problems.said(503, "LimitError", "too many open event streams", exit_code=5))
        self._metrics.listeners += 1
        self._streams[identity.digest] += 1
        try:
            yield
        finally:
            self._metrics.listeners -= 1
            self._streams[identity.digest] -= 1

    async def _stream(
        self, request: web.Request, identity: KnownCaller, served: ServedMemory, cursor: str
    ) -> web.StreamResponse:
        caller = identity.caller
        with contextlib.suppress(PassphraseError, TooManyCalls):
            caller = await served.on(functools.partial(self._caller, identity, served), identity.digest)
        await served.begin_to_compare()
        after = served.feed.behind(cursor) if cursor else served.feed.number
        stream = web.StreamResponse(
            headers={
                **page.SAFE_HEADERS,
                "Content-Type": _EVENTS,
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        try:
            with served.listening() as event:
                await stream.prepare(request)
                first = served.feed.cursor(served.feed.number if after is None else after)
                await stream.write(b"retry: 1000\nid: %b\nevent: ready\ndata: {}\n\n" % first.encode())
                if after is None:
                    reset = b'id: %b\nevent: reset\ndata: {"what":"reset"}\n\n' % first.encode()
                    await stream.write(reset)
                    after = served.feed.number
                alive = time.monotonic()
                while self._doors.is_still_valid(identity):
                    if caller is None and not served.locked:
                        with contextlib.suppress(PassphraseError, TooManyCalls):
                            caller = await served.on(
                                functools.partial(self._caller, identity, served), identity.digest
                            )
                    for one in list(served.feed.since(after)):
                        after = served.feed.behind(one.cursor) or after
                        if for_caller(one.change, frozenset() if caller is None else caller.scopes):
                            await stream.write(as_event(one))
                            alive = time.monotonic()
                    if time.monotonic() - alive >= ALIVE_EVERY:
                        await stream.write(b": alive\n\n")
                        alive = time.monotonic()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_EVERY):
                            await event.wait()
                    event.clear()
        except ConnectionError:
            pass  # the client disconnected
        return stream


async def _body(request: web.Request, route: Route) -> Any:
    assert route.body is not None
    if route.body is bytes:
        return await _bytes(request, route.most)
    return await _json_body(request, route.body, route.most)


async def _bytes(request: web.Request, most: int) -> bytes:
    if request.content_type != "application/json":
        raise Refused(problems.said(415, "UsageError", "the body must be application/json"))
    if (request.content_length or 0) > most:
        raise web.HTTPRequestEntityTooLarge(max_size=most, actual_size=request.content_length or 0)
    received = BytesIO()  # whose value is its buffer: joined parts would be in memory twice
    try:
        async with asyncio.timeout(BODY_TIME):
            async for part in request.content.iter_any():
                received.write(part)
                if received.tell() > most:
                    raise web.HTTPRequestEntityTooLarge(max_size=most, actual_size=received.tell())
    except TimeoutError:
        raise Refused(problems.said(408, "UsageError", "timeout while reading the body")) from None
    return received.getvalue()


async def _json_body(request: web.Request, form: Any, most: int) -> Any:
    """Return the parsed body of a request. Raises UsageError, Refused."""
    data = await _bytes(request, most)
    try:
        return read_json(data, form)
    except msgspec.MsgspecError as error:
        half = _with_half_a_character(data)
        why = f"{half} contains half a character (a lone surrogate)" if half else str(error)
        raise UsageError(f"invalid request body: {why}") from None
    except UnicodeDecodeError:
        raise UsageError("the body is not UTF-8") from None


def _with_half_a_character(data: bytes) -> str:
    """Return the first field of a JSON object that contains a lone surrogate, which the decoder reports as truncated data; "" for none."""
    try:
        body = json.loads(data)
        fields = body.items() if isinstance(body, dict) else [("a text in it", body)]
        for name, value in fields:
            try:
                json.dumps({name: value}, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                return ascii(name)[1:-1][:40]
    except (ValueError, RecursionError):
        pass
    return ""


def _with_notes(answer: web.Response, **notes: list[str]) -> web.Response:
    """Add the non-empty lists to an answer that is a JSON object: `better`, advice on the written text, and `outdated`, why the
    answer may be out of date."""
    filled = {name: texts for name, texts in notes.items() if texts}
    if filled and answer.content_type == "application/json" and isinstance(answer.body, bytes):
        try:
            value = read_json(answer.body)
        except (msgspec.DecodeError, RecursionError):
            return answer  # nested too deep to be parsed again: answer without notes
        if isinstance(value, dict):
            answer.body = msgspec.json.encode({**value, **filled})
    return answer


def _in_a_header(texts: Sequence[str]) -> str:
    """Return texts as a JSON list in ASCII, without the last ones if it were too long for a header."""
    shortened = list(texts)
    while len(header := json.dumps(shortened)) > _MOST_IN_A_HEADER and len(shortened) > 1:
        shortened.pop()
    return header if len(header) <= _MOST_IN_A_HEADER else json.dumps([shortened[0][:300]])


def _answer(result: Any) -> web.Response:
    if isinstance(result, Download):
        return web.Response(
            body=result.data,
            content_type=result.content_type,
            headers={
                "Cache-Control": "no-store",
                "Content-Disposition": f'attachment; filename="{result.name}"',
            },
        )
    if isinstance(result, Reply):
        return _json(result.value, result.status, {"ETag": f'"{result.seen}"'} if result.seen else None)
    return _json(result)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status,
        body=write_json(value),
        content_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def _refusal(status: int, words: str) -> web.Response:
    return _problem(problems.said(status, _REFUSALS[status], words, exit_code=26))


def _problem(problem: Problem, headers: dict[str, str] | None = None) -> web.Response:
    answer = _json(problem, problem.status, headers)
    answer.content_type = problems.CONTENT_TYPE
    if problem.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
