"""Answers of services, read whole or incrementally, within bounds. client.py makes them and decides what a
failure is."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import aiohttp
import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem_providers.http.errors import Reason, reason_of

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy
    from yarl import URL

    from ipfsmem_providers.http.stall_timeout import StallTimeout

T = TypeVar("T")

#: Default limit of an answer that is read whole, in bytes.
ANSWER_MAX: Final = 1024 * 1024
#: Bytes of an answer that are read for the reason of a failure.
ERROR_MAX: Final = 64 * 1024


class Client(Protocol):
    """What an answer needs of the client that received it (`client.Http`)."""

    @property
    def service(self) -> str:
        """Return the service's name for messages."""

    def redact(self, text: str, /) -> str:
        """Return a text without secrets."""

    def unavailable(self, message: str, /) -> ProviderError:
        """Return an error that a later attempt may not have."""

    def failure(self, answer: Answer, what: str = "") -> ProviderError:
        """Return an answer as an error."""

    def failed(self, error: Exception, url: URL, timeout: StallTimeout | None = None) -> ProviderError:
        """Return an error of the connection as ours."""

    def count(self, direction: str, size: int) -> None:
        """Report bytes."""


class Answer:
    """A whole answer: status, headers, body, and the URL that gave it."""

    def __init__(
        self, http: Client, status: int, headers: CIMultiDictProxy[str], body: bytes, url: URL
    ) -> None:
        self._http = http
        self.status = status
        self.headers = headers
        self.body = body
        self.url = url

    def __repr__(self) -> str:
        return f"<Answer {self.status} {self._http.redact(str(self.url))} {len(self.body)} bytes>"

    @property
    def content_type(self) -> str:
        """Return it in lower case, without parameters."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def reason(self) -> Reason:
        """Return the service's own reason for a failure."""
        return reason_of(self.body, self._http.redact)

    @property
    def text(self) -> str:
        """Return the body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body as JSON. ProviderUnavailable for anything else: something other answered, such as a
        portal."""
        return self.decode(Any)

    def decode(self, kind: type[T]) -> T:
        """Return the body as JSON of a msgspec type; unknown fields are ignored. ProviderUnavailable when it
        is not that."""
        try:
            return read_json(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problem_text = str(error)
        shown = self.content_type or "no content type"
        raise self._http.unavailable(
            f"{self._http.service} answered {self.status} with something unexpected ({shown}): {problem_text}"
        )


class LineCutter:
    """Cut pieces of a body into lines; a long line costs as much as its bytes, however many pieces it has."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def waiting(self) -> int:
        """Return the bytes of the unfinished line."""
        return len(self._rest)

    def add(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in this piece, stripped; empty ones are left out."""
        first, *others = piece.split(b"\n")
        self._rest += first
        if not others:
            return []
        whole = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        return [line for one in whole if (line := one.strip())]


class Stream:
    """An answer whose body is read piece by piece; `Http.stream` makes it."""

    def __init__(
        self, http: Client, response: aiohttp.ClientResponse, timeout: StallTimeout, max_bytes: int
    ) -> None:
        self._http = http
        self.response = response  #: for Http alone
        self._timeout = timeout
        self._max = max_bytes
        self.status = response.status
        self.headers = response.headers
        self.url = response.url
        self.received = 0
        self.whole = b""  #: the body, when `Http.request` asked for it

    @property
    def content_type(self) -> str:
        """Return it in lower case, without parameters."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body. ProviderUnavailable when it breaks off, ProviderRefused when it is
        too long or encoded: nothing is decompressed (format section 8)."""
        encoding = self.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            shown = self._http.redact(encoding[:40])
            raise ProviderRefused(
                f"{self._http.service} answered in the encoding {shown!r}, which was not asked for"
            )
        declared = self.response.content_length
        if declared is not None and declared > self._max:
            raise self._too_long(self._max)
        while True:
            try:
                async with self._timeout:
                    piece = await self.response.content.readany()
                problem = None
            except (aiohttp.ClientError, OSError) as error:
                problem = self._http.failed(error, self.response.url, self._timeout)
            if problem is not None:
                raise problem
            if not piece:
                return
            self.received += len(piece)
            self._timeout.bytes_passed(len(piece))
            self._http.count("received", len(piece))
            if self.received > self._max:
                raise self._too_long(self._max)
            yield piece

    async def read(self) -> bytes:
        """Return the whole body, at most `max_bytes`."""
        return b"".join([piece async for piece in self])

    async def lines(self, max_line: int = ANSWER_MAX) -> AsyncIterator[bytes]:
        """Yield the lines of the body (NDJSON) without line ends; empty ones are left out."""
        cut = LineCutter()
        async for piece in self:
            for line in cut.add(piece):
                yield line
            if cut.waiting > max_line:
                raise self._too_long(max_line)
        for line in cut.add(b"\n"):
            yield line

    async def failure(self, what: str = "") -> ProviderError:
        """Return this answer as an error, with the reason from its body."""
        return self._http.failure(await self.start(ERROR_MAX), what)

    async def start(self, most: int) -> Answer:
        """Return the body up to `most` bytes, or the part received before a failure."""
        body = b""
        self._max = max(self._max, most + (1 << 20))
        with contextlib.suppress(ProviderError):
            async for piece in self:
                body += piece
                if len(body) >= most:
                    break
        return Answer(self._http, self.status, self.headers, body[:most], self.url)

    def _too_long(self, most: int) -> ProviderRefused:
        url = self._http.redact(str(self.url))
        return ProviderRefused(
            f"{self._http.service} answered with more than the {most:,} bytes that are allowed at {url}"
        )
