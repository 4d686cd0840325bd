"""The routes of the HTTP API, and who is answered: only programs that ask this machine by its own name and send the token.

A handler translates, and decides nothing that `Memory` decides. Work on the memory is done in a thread, one call at a time, so the
event loop never waits for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from ipfsmem.api import problems
from ipfsmem.api.bodies import MAX_PAGE, PAGE, ContextBody, MemoryPage, Problem, RecallBody, WriteBody
from ipfsmem.api.document import ROUTES, document
from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.canonical import read_json
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.holding import Holder
from ipfsmem.in_thread import in_thread
from ipfsmem.loopback import refusal
from ipfsmem.memories.readings import SEEN_DIGITS, Reading
from ipfsmem.memories.writers import Writers
from ipfsmem.memory import Memory
from ipfsmem.results import ContextText, Forgotten, MemoryLine, MemoryText, Recalled

MAX_BODY: Final = 4 * 1024 * 1024
#: Seconds between two looks whether the memory was locked, and that one request may take to send its body.
LOOK_EVERY: Final = 0.5
BODY_TIME: Final = 30.0
_ETAG: Final = re.compile(rf'"([0-9a-f]{{{SEEN_DIGITS}}})"')
#: Why somebody is not answered, by status: these three are of this face, no command ends with them.
_REFUSALS: Final = {401: "TokenError", 403: "OriginError", 421: "HostError"}

T = TypeVar("T")
B = TypeVar("B")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Refused(Exception):
    """A request that is answered with this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class Api:
    """One memory behind HTTP."""

    def __init__(self, holder: Holder, token: str, *, read_only: bool = False) -> None:
        """`token` is what every request sends; `read_only`: none changes anything."""
        self._holder = holder
        self._token = token
        self._read_only = read_only
        self._turn = asyncio.Lock()

    def app(self) -> web.Application:
        """The application. It drops the keys soon after somebody locked the memory."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY)
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/v1/openapi.json", self._document),
                *(
                    getattr(web, route.method)(route.path, getattr(self, f"_{route.name}"))
                    for route in ROUTES
                ),
            ]
        )
        app.cleanup_ctx.append(self._watching)
        return app

    # -- before and around every handler ---------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = request.headers
        refused = refusal(
            headers.getall("Host", []),
            headers.getall("Origin", []),
            headers.getall("Authorization", []),
            self._token,
            same_origin=True,
        )
        if refused is not None:
            return _problem(problems.said(refused[0], _REFUSALS[refused[0]], refused[1], exit_code=26))
        try:
            return await handler(request)
        except Refused as stopped:
            return _problem(stopped.problem)
        except web.HTTPException as answer:
            kept = {name: answer.headers[name] for name in ("Allow",) if name in answer.headers}
            kind = "NotFoundError" if answer.status == 404 else "UsageError"
            code = 4 if answer.status == 404 else 2
            return _problem(problems.said(answer.status, kind, answer.reason, exit_code=code), kept)
        except Exception as error:
            return _problem(problems.of_error(error))

    async def _watching(self, _: web.Application) -> Any:
        async def look() -> None:
            while True:
                await asyncio.sleep(LOOK_EVERY)
                async with self._turn:
                    await in_thread(self._holder.let_go_when_locked)

        looking = asyncio.create_task(look())
        yield
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    async def _on(self, request: web.Request, work: Callable[[Memory], T], *, writes: bool = False) -> T:
        """What `work` makes of the memory in the scope that the request names."""
        if writes and self._read_only:
            raise Refused(problems.said(403, "ReadOnlyError", "this server was started to change nothing"))
        scope = request.query.get("scope", "")
        if scope:
            check_scope(scope)

        def done() -> T:
            memory = self._holder.memory()
            if scope and not writes and memory.scopes.get(scope) is None:
                raise NotFoundError(f"there is no scope {scope}")
            return work(memory.scope(scope) if scope else memory)

        async with self._turn:
            return await in_thread(done)

    # -- handlers --------------------------------------------------------------------------------------------

    async def _health(self, _: web.Request) -> web.Response:
        return _json({"ok": True})

    async def _document(self, _: web.Request) -> web.Response:
        return _json(document())

    async def _list(self, request: web.Request) -> web.Response:
        after, limit = _cursor(request), _limit(request)
        kind, tag = request.query.get("type"), request.query.get("tag")

        def page(memory: Memory) -> MemoryPage:
            found = [
                one
                for one in memory.list()
                if one.key > after
                and (kind is None or one.file.type == kind)
                and (tag is None or tag in one.file.tags)
            ]
            shown = found[:limit]
            more = shown[-1].key if len(found) > limit else None
            return MemoryPage(memories=[MemoryLine.of(one) for one in shown], next=more)

        return _json(await self._on(request, page))

    async def _read(self, request: web.Request) -> web.Response:
        key = check_key(request.match_info["key"])
        return _text(_there(key, await self._on(request, lambda memory: memory.read(key))))

    async def _write(self, request: web.Request) -> web.Response:
        key = check_key(request.match_info["key"])
        seen = _precondition(request)
        given = await _body(request, WriteBody)

        def write(memory: Memory) -> Reading:
            return memory.write(
                key,
                given.body,
                name=given.name,
                description=given.description,
                type=given.type,
                tags=given.tags,
                seen=_still_shown(memory, key, seen) if seen else None,
                if_match=None if seen else "",
            )

        return _text(await self._on(request, write, writes=True), status=200 if seen else 201)

    async def _forget(self, request: web.Request) -> web.Response:
        key = check_key(request.match_info["key"])
        seen, reason = _precondition(request), request.query.get("reason", "")
        if not seen:
            raise UsageError("what is to be forgotten is named by If-Match")

        def forget(memory: Memory) -> Forgotten:
            if not memory.forget(key, reason=reason, seen=_still_shown(memory, key, seen)):
                raise NotFoundError(f"there is no memory {key}")
            return Forgotten(key=key)

        return _json(await self._on(request, forget, writes=True))

    async def _recall(self, request: web.Request) -> web.Response:
        asked = await _body(request, RecallBody)

        def recall(memory: Memory) -> Recalled:
            found = memory.recall(
                asked.query,
                kind=asked.kind,
                limit=asked.limit,
                type=asked.type,
                tag=asked.tag,
                since=asked.since,
                why=asked.why,
            )
            return Recalled.of(found, Writers(memory.replica), why=asked.why)

        return _json(await self._on(request, recall))

    async def _context(self, request: web.Request) -> web.Response:
        asked = await _body(request, ContextBody)
        return _json(
            await self._on(
                request,
                lambda memory: ContextText.of(
                    memory.context(asked.query, max_tokens=asked.max_tokens, layout=asked.layout)
                ),
            )
        )


def _still_shown(memory: Memory, key: str, seen: str) -> Reading:
    """What is shown, which must be what the caller was shown. Raises NotFoundError, ChangedError."""
    reading = _there(key, memory.read(key))
    if reading.seen != seen:
        raise ChangedError(f"{key} is not what was read")
    return reading


def _there(key: str, reading: Reading | None) -> Reading:
    if reading is None:
        raise NotFoundError(f"there is no memory {key}")
    return reading


def _precondition(request: web.Request) -> str:
    """The `seen` of If-Match, or "" with `If-None-Match: *`. Raises Refused without either, UsageError for others."""
    match, none = request.headers.getall("If-Match", []), request.headers.getall("If-None-Match", [])
    if not match and not none:
        words = "a write says what it replaces: If-Match with the ETag of a read, or If-None-Match: * for a new memory"
        raise Refused(problems.said(428, "UsageError", words))
    if none == ["*"] and not match:
        return ""
    tag = _ETAG.fullmatch(match[0].strip()) if len(match) == 1 and not none else None
    if tag is None:
        raise UsageError("give one ETag of a read in If-Match, or If-None-Match: * for a new memory")
    return tag[1]


def _cursor(request: web.Request) -> str:
    cursor = request.query.get("cursor", "")
    return check_key(cursor) if cursor else ""


def _limit(request: web.Request) -> int:
    given = request.query.get("limit", str(PAGE))
    if not given.isascii() or not given.isdecimal() or len(given) > 4 or not 1 <= int(given) <= MAX_PAGE:
        raise UsageError(f"limit is a number from 1 to {MAX_PAGE}")
    return int(given)


async def _body(request: web.Request, form: type[B]) -> B:
    """The body of a request. Raises UsageError, Refused."""
    if request.content_type != "application/json":
        raise Refused(problems.said(415, "UsageError", "a body is application/json"))
    try:
        data = await asyncio.wait_for(request.read(), BODY_TIME)
        return read_json(data, form)
    except TimeoutError:
        raise Refused(problems.said(408, "UsageError", "the body did not come in time")) from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"the body is not what this route takes: {error}") from None
    except UnicodeDecodeError:
        raise UsageError("the body is not UTF-8") from None


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status,
        body=msgspec.json.encode(value),
        content_type="application/json",
        headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})},
    )


def _text(reading: Reading, status: int = 200) -> web.Response:
    return _json(MemoryText.of(reading), status, {"ETag": f'"{reading.seen}"'})


def _problem(problem: Problem, headers: dict[str, str] | None = None) -> web.Response:
    answer = _json(problem, problem.status, headers)
    answer.content_type = problems.CONTENT_TYPE
    if problem.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
