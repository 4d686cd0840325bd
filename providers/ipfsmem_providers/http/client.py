"""The HTTP session of one provider, common to all HTTP providers.

It bounds times and sizes, retries where safe (and hardly while a service is down), limits the rate, keeps tokens out
of logs and errors, and converts every failure to ProviderUnavailable or ProviderRefused. Retries are per request, since
provider methods cannot be repeated: `put_car` reads its blocks once.

    class Example:
        def __init__(self, rest, settings):
            base = settings.get("example_url", "https://api.example.com")
            self._http = Http("example", trusted=[base], settings=settings,
                              auth={"Authorization": f"Bearer {token}"}, per_minute=60)

        async def put_car(self, root, blocks, *, name):
            with await SpooledCar.write(root, blocks) as car:                         # body.py
                form = Multipart().field("name", name).file("file", f"{root}.car", car, car.content_type)
                answer = await self._http.request("POST", f"{base}/upload", body=form, idempotent=True)
            return parse_cid(answer.decode(Uploaded).cid)                             # a msgspec.Struct

        async def unpin(self, pin):
            answer = await self._http.request("DELETE", f"{base}/pins/{pin.handle}", allow={404, 403})
            if answer.status == 403 and answer.reason.code != "NO_SUCH_PIN":
                raise self._http.failure(answer, "unpin")

        async def get_dag(self, root):
            async with self._http.stream("GET", f"{base}/ipfs/{root}?format=car", max_bytes=1 << 29) as answer:
                async for piece in answer:
                    ...

        async def close(self):
            await self._http.close()

`auth` is sent to `trusted` origins only. Any other URL is from outside: it gets no credentials and is reached at public
addresses only (addresses.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypedDict, Unpack
from urllib.parse import urlsplit

import aiohttp
import msgspec
from yarl import URL

from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import shown_spec, told_of_pauses
from ipfsmem_providers.http import addresses
from ipfsmem_providers.http import errors as http_errors
from ipfsmem_providers.http.answer import ANSWER_MAX, ERROR_MAX, Answer, Stream
from ipfsmem_providers.http.body import Body
from ipfsmem_providers.http.bounds import Attempts, Bounds
from ipfsmem_providers.http.errors import Redactor
from ipfsmem_providers.http.policy import Retry, Timing, retry_after
from ipfsmem_providers.http.stall_timeout import CountBytes, RequestBody, StallTimeout

__all__ = [
    "ANSWER_MAX",
    "CONCURRENCY",
    "Answer",
    "CountBytes",
    "CutOff",
    "Http",
    "NotConnected",
    "Origin",
    "RequestOptions",
    "Stream",
    "origin_of",
    "urls_of",
]

#: Connections to one host at once.
CONCURRENCY: Final = 16
_IDEMPOTENT: Final = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS"))
#: Characters of a URL from outside that an error shows.
_SHOWN: Final = 500
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_USER_AGENT: Final = "ipfsmem"
_log = logging.getLogger("ipfsmem.providers")


class NotConnected(ProviderUnavailable):
    """No connection was made, so nothing was done."""


class CutOff(ProviderUnavailable):
    """The connection broke while an answer was received."""


class _ConnectTimedOut(NotConnected):
    """The time to connect ran out, without a refusal."""


class _Stalled(ProviderUnavailable):
    """The service took a request, and then no byte moved until the time-out."""


class RequestOptions(TypedDict, total=False):
    """Options of `Http.request` and `Http.stream` besides method and URL."""

    #: Added to the query of the URL, which must already be encoded.
    params: Mapping[str, str] | None
    headers: Mapping[str, str] | None
    #: A Body (body.py) can be sent again, an iterable only once.
    body: bytes | Body | AsyncIterable[bytes] | None
    json: Any  #: encoded and sent as the body
    allow: Collection[int]  #: statuses besides 2xx that are not failures
    #: Whether it may be repeated; by default GET, HEAD, PUT, DELETE and OPTIONS. After 429, and when no
    #: connection was made, it is always repeated, since nothing was done.
    idempotent: bool | None
    max_bytes: int  #: of the answer; 1 MiB by default
    redirects: int  #: maximum followed, GET and HEAD only, 0 by default; each is checked, and credentials stay behind
    stall: float | None  #: seconds without progress, instead of those in Timeouts
    total: float | None  #: seconds for one attempt, instead of those in Timeouts
    what: str  #: a verb phrase for errors: "upload", "list pins"


class Http:
    """The HTTP requests of one provider. Usable from any event loop, one at a time."""

    def __init__(
        self,
        service: str,
        *,
        trusted: Iterable[str] = (),
        auth: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
        settings: Mapping[str, Any] | None = None,
        per_minute: float | None = None,
        retry: Retry | None = None,
        concurrency: int = CONCURRENCY,
        lookup: addresses.Lookup | None = None,
        auth_setting: str = "",
    ) -> None:
        """service: short name for errors and logs, such as `pinata`. trusted: URLs that the user configured,
        or the provider's own; only their origins get `auth`, and they may be on this machine. ConfigError
        when one is not an http(s) URL. auth: headers with credentials. Their values never appear in logs,
        errors or repr. secrets: more texts that must not appear. settings: common ones by name: `timing`
        (Timing), `retry` (Retry), `timeouts` (Timeouts), `per_minute`, `progress` (called with
        "sent"/"received" and bytes), `company` (whether there are other providers). per_minute: requests per
        minute that the service accepts; a setting overrides it. lookup: name resolution for URLs from
        outside, for tests. auth_setting: the setting that holds the service's token, named when it is refused."""
        settings = settings or {}
        self.service = service
        self._auth_setting = auth_setting
        self._bounds = Bounds(settings, retry=retry, per_minute=per_minute)
        self.timing: Timing = self._bounds.timing
        self._progress: CountBytes | None = settings.get("progress")
        self._auth = dict(auth or {})
        self.redact = Redactor(secrets)
        self.redact.add_headers(self._auth)
        self._origins = {self._configured(url) for url in trusted}
        self._lookup = lookup
        self._concurrency = concurrency
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._open: list[AsyncGenerator[None, None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.requests = 0  #: attempts made, for reports and tests

    def __repr__(self) -> str:
        return f"<Http {self.service} {sorted(host for _, host, _ in self._origins)}>"

    def trust(self, url: str) -> None:
        """Trust one more origin, as with `trusted`."""
        self._origins.add(self._configured(url))

    def is_trusted(self, url: str | URL) -> bool:
        """Return whether a URL has an origin that gets credentials."""
        return origin_of(url) in self._origins

    async def request(self, method: str, url: str | URL, **options: Unpack[RequestOptions]) -> Answer:
        """Send one request and read the whole answer. Success is 2xx, and the statuses in `allow`.

        Raises ProviderUnavailable or ProviderRefused; an exception of the body's own code comes through as it is.
        """
        async with self._exchange(self._request(method, url, options, whole=True)) as answer:
            return Answer(self, answer.status, answer.headers, answer.whole, answer.url)

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, url: str | URL, **options: Unpack[RequestOptions]
    ) -> AsyncIterator[Stream]:
        """Do `request`, but let the caller read the body incrementally; retried only until the body begins."""
        async with self._exchange(self._request(method, url, options, whole=False)) as answer:
            yield answer

    def _request(self, method: str, url: str | URL, options: RequestOptions, *, whole: bool) -> _Request:
        headers, body = dict(options.get("headers") or {}), options.get("body")
        if (json := options.get("json")) is not None:
            body = msgspec.json.encode(json)
            headers.setdefault("Content-Type", "application/json")
        method, idempotent = method.upper(), options.get("idempotent")
        return _Request(
            method,
            self._target(url, options.get("params")),
            headers,
            body,
            whole=whole,
            allow=frozenset(options.get("allow") or ()),
            idempotent=method in _IDEMPOTENT if idempotent is None else idempotent,
            max_bytes=options.get("max_bytes", ANSWER_MAX),
            redirects=options.get("redirects", 0),
            stall=options.get("stall"),
            total=options.get("total"),
            what=options.get("what", ""),
        )

    @contextlib.asynccontextmanager
    async def _exchange(self, request: _Request) -> AsyncIterator[Stream]:
        """Send a request, retrying where safe, until an answer begins."""
        origin = origin_of(request.url)
        if self._bounds.rests(origin):
            raise _ConnectTimedOut(
                self.redact(f"{self.service}: {request.url.host} did not answer a moment ago")
            )
        attempts = self._bounds.attempts(origin)
        while True:
            wait = self._bounds.patience(request.sent) if request.stall is None else request.stall
            timeout = StallTimeout(
                self._bounds.timeouts, wait, request.total, late_is_silence=request.stall is None
            )
            outcome = await self._attempt(request, timeout)
            if isinstance(outcome, Stream) or outcome.error.permanent or outcome.heard:
                attempts.answered()
            if isinstance(outcome, Stream):
                break
            if isinstance(outcome.error, _Stalled):
                attempts.stalled()
                raise outcome.error
            repeatable = request.is_replayable and (request.idempotent or outcome.nothing_done)
            if outcome.error.permanent or not repeatable:
                raise outcome.error
            pause = attempts.failed(after=outcome.after, connecting=outcome.silent, heard=outcome.heard)
            if pause is None:
                raise outcome.error
            _log.info("%s: %s; again in %.1f s", self.service, outcome.error, pause)
            if outcome.after:
                told_of_pauses.get()(f"{outcome.error}: waiting {pause:.0f} s")
            await self.timing.sleep(pause)
        try:
            yield outcome
        finally:
            outcome.response.close()

    @property
    def listing_seconds(self) -> float | None:
        """Return the maximum seconds of a whole listing, even if it progresses; None if nobody else waits for it."""
        return self._bounds.listing

    def failure(self, answer: Answer, what: str = "") -> ProviderError:
        """Return an answer as an error: ProviderUnavailable or ProviderRefused with the service's own reason."""
        after = retry_after(answer.headers.get("Retry-After"), self.timing.wall())
        return http_errors.failure(
            self.service,
            answer.status,
            answer.reason,
            what=what,
            after=after,
            redact=self.redact,
            token=self._auth_setting,
        )

    def attempts_inside(self) -> Attempts:
        """Return the attempts of one request to a service that answers 200 when it fails.

        After all of one request's failed, each later request has one attempt until one works.
        """
        return self._bounds.attempts((self.service, "inside answers"))

    async def may_again(self, attempts: Attempts) -> bool:
        """Wait as after a failure; False when that was the last attempt."""
        pause = attempts.failed()
        if pause is not None:
            await self.timing.sleep(pause)
        return pause is not None

    def unavailable(self, message: str) -> ProviderUnavailable:
        """Return ProviderUnavailable without secrets in its message."""
        return ProviderUnavailable(self.redact(message))

    def count(self, direction: str, size: int) -> None:
        """Report bytes to the `progress` setting."""
        if self._progress is not None:
            self._progress(direction, size)

    def failed(self, error: Exception, url: URL, timeout: StallTimeout | None = None) -> ProviderError:
        """Return an error of aiohttp or the system as ours. `timeout`: that of the attempt. Raise the result
        outside `except`: the original error holds headers."""
        blocked = _blocked(error)
        if blocked is not None:
            return addresses.refused(blocked.host, blocked.address)
        if isinstance(error, aiohttp.InvalidURL):
            return ProviderRefused(self.redact(f"{self.service}: {shown_spec(str(url))} is not a usable URL"))
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return _ConnectTimedOut(self.redact(f"{self.service}: no connection to {url.host} in time"))
        if isinstance(error, TimeoutError):
            text = self.redact(f"{self.service}: {url.host} made no progress in time")
            if timeout is None or not timeout.seconds_lost:
                return ProviderUnavailable(text)
            self._bounds.stalled(origin_of(url), timeout.seconds_lost)
            return _Stalled(text)
        kind: type[ProviderUnavailable] = ProviderUnavailable
        if isinstance(error, aiohttp.ClientConnectorError):
            kind = NotConnected
        elif isinstance(error, aiohttp.ClientPayloadError):
            kind = CutOff
        return kind(self.redact(f"{self.service}: no connection to {url.host}: {_words(error)}"))

    async def close(self) -> None:
        """Close all connections."""
        ending, self._sessions, self._open = self._open, {}, []
        if self._loop is asyncio.get_running_loop():
            for each in ending:
                await each.aclose()

    # -- one attempt ---------------------------------------------------------------------------------------------

    async def _attempt(self, request: _Request, timeout: StallTimeout) -> Stream | _FailedAttempt:
        url, headers, hops = request.url, request.headers, request.redirects
        while True:
            await self._bounds.turn()
            try:
                response = await self._send(request, url, headers, timeout)
            except ProviderError as error:
                return _FailedAttempt(
                    error, None, isinstance(error, NotConnected), silent=isinstance(error, _ConnectTimedOut)
                )
            stream = Stream(self, response, timeout, request.max_bytes)
            try:
                status = response.status
                if status in _REDIRECTS and status not in request.allow:
                    url, headers = self._redirect(request, response, url, headers, hops)
                    hops -= 1
                    response.close()
                    continue
                if not 200 <= status < 300 and status not in request.allow:
                    answer = await stream.start(ERROR_MAX)
                    response.close()
                    after = retry_after(answer.headers.get("Retry-After"), self.timing.wall())
                    answered = status == 429 or after is not None
                    return _FailedAttempt(
                        self.failure(answer, request.what), after, status == 429, heard=answered
                    )
                if request.whole:
                    stream.whole = b"" if request.method == "HEAD" else await stream.read()
            except ProviderError as error:
                response.close()
                return _FailedAttempt(error, None, False)
            except BaseException:
                response.close()
                raise
            return stream

    async def _send(
        self, request: _Request, url: URL, headers: Mapping[str, str], timeout: StallTimeout
    ) -> aiohttp.ClientResponse:
        trusted = self.is_trusted(url)
        if not trusted:
            addresses.check_url(url)
        all_headers = {
            "User-Agent": _USER_AGENT,
            "Accept-Encoding": "identity",
            **(self._auth if trusted else {}),
        }
        all_headers.update(headers)
        body = RequestBody(request.body, all_headers, timeout, self.count)
        self.requests += 1
        began = self.timing.now()
        try:
            async with timeout:
                session = await self._session(trusted)
                response = await session.request(
                    request.method, url, headers=all_headers, data=body.data, allow_redirects=False
                )
            if timeout.late_is_silence:
                self._bounds.answer_came(*timeout.last_wait)
            problem = None
        except (aiohttp.ClientError, OSError) as error:
            problem = self.failed(error, url, timeout)
        except (ValueError, TypeError) as error:
            # A redirect named a URL that cannot be requested.
            shown = f"{self.redact(str(url))[:_SHOWN]}: {self.redact(str(error))[:_SHOWN]}"
            problem = ProviderRefused(f"{self.service}: {shown} cannot be asked")
        if problem is not None:
            if body.error is not None:  # the caller's own code failed, not the network
                raise body.error
            _log.debug("%s %s %s: %s", self.service, request.method, self.redact(str(url)), problem)
            raise problem
        if _log.isEnabledFor(logging.DEBUG):
            took = (self.timing.now() - began) * 1000
            shown = self.redact(str(url))
            _log.debug("%s %s %s: %d in %.0f ms", self.service, request.method, shown, response.status, took)
        return response

    def _redirect(
        self,
        request: _Request,
        response: aiohttp.ClientResponse,
        url: URL,
        headers: Mapping[str, str],
        hops: int,
    ) -> tuple[URL, dict[str, str]]:
        """Return the URL and headers of the next hop."""
        location = response.headers.get("Location", "")
        try:
            target = url.join(URL(location, encoded=True)).with_fragment(None)
            usable = bool(location and target.host and target.port)
        except (ValueError, TypeError):
            target, usable = URL(), False
        if not usable:
            raise ProviderRefused(f"{self.service} answered {response.status} without a location")
        shown = self.redact(str(target))[:_SHOWN]
        if hops <= 0 or request.method not in ("GET", "HEAD"):
            raise ProviderRefused(
                f"{self.service} answered {response.status}: redirect to {shown} not followed"
            )
        if url.scheme == "https" and target.scheme != "https":
            raise ProviderRefused(f"{self.service} redirects from https to {shown}")
        next_headers = dict(headers)
        if origin_of(target) != origin_of(url):
            next_headers = {name: value for name, value in next_headers.items() if name.lower() in _HARMLESS}
        return target, next_headers

    async def _session(self, trusted: bool) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._sessions, self._open = loop, {}, []
        open_session = self._sessions.get(trusted)
        if open_session is not None and not open_session.closed:
            return open_session
        if trusted:
            connector = aiohttp.TCPConnector(limit=self._concurrency, resolver=addresses.Resolver())
        else:
            connector = addresses.public_connector(self._concurrency, self._lookup)
        new_session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._bounds.timeouts.connect),
            read_bufsize=256 * 1024,
            auto_decompress=False,
        )
        self._sessions[trusted] = new_session
        # A caller that runs `asyncio.run` for each sync closes nothing in that loop. But a loop that ends closes the
        # asynchronous generators that were begun in it, so one of them closes the session.
        ending = _until_the_end(new_session)
        await anext(ending)
        self._open.append(ending)
        return new_session

    def _target(self, url: str | URL, params: Mapping[str, str] | None) -> URL:
        try:
            target = URL(url, encoded=True) if isinstance(url, str) else url
            if params:
                target = target.update_query(params)
            if target.scheme in ("http", "https") and target.host:
                return target
        except (ValueError, TypeError):
            pass
        raise ProviderRefused(self.redact(f"{self.service}: {shown_spec(str(url))} is not an http URL"))

    def _configured(self, url: str) -> Origin:
        origin = origin_of(url)
        if origin is None:
            raise ConfigError(self.redact(f"{self.service}: {shown_spec(url)!r} is not an http or https URL"))
        return origin


async def _until_the_end(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()


#: Scheme, host, port.
Origin: TypeAlias = tuple[str, str, int]


def origin_of(url: str | URL) -> Origin | None:
    """Return scheme, host and port of an http(s) URL; None for anything else."""
    try:
        parsed = URL(url)
        if parsed.scheme in ("http", "https") and parsed.host and parsed.port:
            return parsed.scheme, parsed.host.lower().rstrip("."), parsed.port
    except (ValueError, TypeError):
        pass
    return None


def urls_of(given: str | Iterable[str], what: str) -> list[str]:
    """Return the URLs in a comma list or sequence, without slashes at their ends. ConfigError for an empty
    list or a bad URL."""
    texts = given.split(",") if isinstance(given, str) else list(given)
    urls = list(dict.fromkeys(text.strip().rstrip("/") for text in texts if text.strip()))
    if not urls:
        raise ConfigError(f"no {what} is named")
    for url in urls:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.query or parts.fragment:
            raise ConfigError(
                f"{shown_spec(url)!r} is not the URL of a {what}", hint="For instance https://example.com"
            )
    return urls


_HARMLESS: Final = frozenset(("accept", "cache-control", "range", "user-agent", "accept-encoding"))


class _Request(msgspec.Struct, frozen=True):
    """One request, with all `RequestOptions` resolved."""

    method: str
    url: URL
    headers: dict[str, str]
    body: bytes | Body | AsyncIterable[bytes] | None
    whole: bool  #: the answer is read to its end as part of the attempt
    allow: frozenset[int]
    idempotent: bool
    max_bytes: int
    redirects: int
    stall: float | None
    total: float | None
    what: str

    @property
    def sent(self) -> int | None:
        """Return the bytes of its body; None if unknown."""
        if isinstance(self.body, Body):
            return self.body.size
        return len(self.body) if isinstance(self.body, bytes) else None if self.body is not None else 0

    @property
    def is_replayable(self) -> bool:
        """Return whether its body can be sent again."""
        return self.body is None or isinstance(self.body, (bytes, Body))


class _FailedAttempt(msgspec.Struct):
    error: ProviderError
    after: float | None  #: seconds that the service asks to wait
    nothing_done: bool  #: the service surely did not begin
    heard: bool = False  #: it asked for a pause, or reported overload: not an outage
    silent: bool = False  #: the time to connect ran out


def _blocked(error: BaseException) -> addresses.BlockedAddress | None:
    seen: BaseException | None = error
    for _ in range(6):
        if isinstance(seen, addresses.BlockedAddress):
            return seen
        inner = getattr(seen, "os_error", None) or getattr(seen, "_os_error", None)
        seen = inner if inner is not None and inner is not seen else (seen.__cause__ if seen else None)
    return None


def _words(error: BaseException) -> str:
    """Describe an error without the URLs and headers in aiohttp's own texts."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the name is not known"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return "no secure connection: the certificate is not accepted"
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError | ConnectionError):
        return "the connection broke off"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the answer is not valid HTTP"
    number = getattr(error, "errno", None)
    if number in (errno.ECONNRESET, errno.EPIPE):
        return "the connection broke off"
    if isinstance(number, int):
        return os.strerror(number).lower()
    return type(error).__name__
