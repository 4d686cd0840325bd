"""The RPC of a Kubo node, and of nodes like it: one command, its answer, and the meaning of its errors.

Every command is a POST. A failed command answers 500 with {"Message","Code","Type"}; one that fails after its
answer began reports it in a last line of the same form, or in the trailer X-Stream-Error, which HTTP clients
rarely expose, so the end of a stream proves nothing unless its content does. js-ipfs has the same commands with
differences (see `is_js`).
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Literal, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.http.body import Body
from ipfsmem_providers.http.client import ANSWER_MAX, Answer, Http, Stream, urls_of
from ipfsmem_providers.http.errors import short

T = TypeVar("T")

DEFAULT_URL: Final = "http://127.0.0.1:5001"
_JS_SIGNS: Final = ("ipfs-core", "interface-ipfs-core", "ipfs-http-client")
_MULTIADDR: Final = re.compile(r"/(ip4|ip6|dns|dns4|dns6)/([^/]+)/tcp/(\d+)(?:/(http|https))?/?")
_ABSENT: Final = ("not found", "could not find", "not pinned")
_TIMED_OUT: Final = ("timed out", "deadline exceeded", "context canceled")
#: Statuses with which the node itself reports a reason; a failed command answers 500.
_NODE_STATUSES: Final = (400, 404, 500)


class CommandFailed(ProviderUnavailable):
    """The node reported a failed command; `words` is its reason. It may work later unless the reason rules that out."""

    def __init__(self, message: str, words: str) -> None:
        super().__init__(message)
        self.words = words.lower()

    @property
    def absent(self) -> bool:
        """Return whether something asked for is not there."""
        return any(sign in self.words for sign in _ABSENT)

    @property
    def timed_out(self) -> bool:
        """Return whether the node gave up waiting."""
        return any(sign in self.words for sign in _TIMED_OUT)


class _Failure(msgspec.Struct):
    message: str = msgspec.field(name="Message")
    type: Literal["error"] = msgspec.field(name="Type")


class _Version(msgspec.Struct):
    version: str = msgspec.field(name="Version")


class KuboRpc:
    """Commands for one node."""

    def __init__(self, url: str, authorization: str = "", settings: Mapping[str, Any] | None = None) -> None:
        """`url` with or without `/api/v0`, or a multiaddr; `authorization` as returned by `node_authorization`."""
        self.url, inside = rpc_url(url)
        authorization = authorization or inside
        self.http = Http(
            "kubo",
            trusted=[self.url],
            auth={"Authorization": authorization} if authorization else None,
            secrets=[authorization.partition(" ")[2]],
            settings=settings,
            concurrency=32,
            auth_setting="KUBO_RPC_AUTH",
        )
        self._version: tuple[bool, tuple[int, ...], str] | None = None

    async def call(
        self,
        command: str,
        params: Mapping[str, str] | None = None,
        *,
        body: Body | None = None,
        what: str = "",
        repeat: bool = True,
        max_bytes: int = ANSWER_MAX,
        stall: float | None = None,
    ) -> Answer:
        """Run a command and read its whole answer. Raises CommandFailed when it fails."""
        answer = await self.http.request(
            "POST", f"{self.url}/api/v0/{command}", params=_query(params), body=body, allow=_NODE_STATUSES,
            idempotent=repeat, max_bytes=max_bytes, stall=stall, what=what or command,
        )  # fmt: skip
        if answer.status in _NODE_STATUSES:
            raise self._failed(answer, what or command)
        return answer

    @contextlib.asynccontextmanager
    async def stream(
        self,
        command: str,
        params: Mapping[str, str] | None = None,
        *,
        body: Body | None = None,
        what: str = "",
        max_bytes: int,
    ) -> AsyncIterator[Stream]:
        """Run a command and stream its answer. Raises CommandFailed when it fails at once."""
        async with self.http.stream(
            "POST", f"{self.url}/api/v0/{command}", params=_query(params), body=body, allow=_NODE_STATUSES,
            idempotent=True, max_bytes=max_bytes, what=what or command,
        ) as answer:  # fmt: skip
            if answer.status in _NODE_STATUSES:
                raise self._failed(await answer.start(ANSWER_MAX), what or command)
            yield answer

    async def lines(
        self,
        command: str,
        kind: type[T],
        params: Mapping[str, str] | None = None,
        *,
        body: Body | None = None,
        what: str = "",
        max_bytes: int,
        max_line: int = ANSWER_MAX,
    ) -> AsyncIterator[T]:
        """Yield the lines of an NDJSON answer. Raises as `stream` does, CommandFailed for a line that reports a failure,
        ProviderUnavailable for an invalid line."""
        async with self.stream(command, params, body=body, what=what, max_bytes=max_bytes) as answer:
            async for line in answer.lines(max_line=max_line):
                self.refuse_failure(line, what or command)
                try:
                    yield read_json(line, type=kind)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    problem = str(error)
                else:
                    continue
                raise self.http.unavailable(f"kubo answered {command} with something unexpected: {problem}")

    def refuse_failure(self, line: bytes, what: str) -> None:
        """Raise CommandFailed if a line of an answer reports that the command failed after the answer began."""
        if b'"Message"' not in line:
            return
        try:
            words = read_json(line, type=_Failure).message
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        raise CommandFailed(f"kubo could not {what}: {short(words, self.http.redact)}", words)

    async def is_js(self) -> bool:
        """Return whether it is a js-ipfs node."""
        return (await self._identify())[0]

    async def at_least(self, *version: int) -> bool:
        """Return whether it is a Kubo of at least this version."""
        js, current, _ = await self._identify()
        return not js and current >= version

    async def version(self) -> str:
        """Return its version for display."""
        return (await self._identify())[2]

    async def close(self) -> None:
        """Close connections."""
        await self.http.close()

    async def _identify(self) -> tuple[bool, tuple[int, ...], str]:
        if self._version is None:
            answer = await self.call("version", what="tell its version")
            text = short(answer.decode(_Version).version, self.http.redact)
            identity = answer.json()
            js = any(sign in identity for sign in _JS_SIGNS)
            numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", text.partition("-")[0])[:3])
            self._version = js, numbers, f"{'js-ipfs' if js else 'Kubo'} {text}"
        return self._version

    def _failed(self, answer: Answer, what: str) -> ProviderError:
        words = str(answer.reason)
        message = self.http.redact(f"kubo could not {what}: {words or answer.status}")
        if answer.status == 404:
            return ProviderRefused(message, hint=f"Is {self.http.redact(self.url)} the RPC of a Kubo node?")
        return ProviderRefused(message) if answer.status == 400 else CommandFailed(message, answer.text)


def node_authorization(value: str) -> str:
    """Return the Authorization header of a setting. ConfigError for an invalid one.

    Forms: `bearer:<token>` or `basic:<user>:<password>` as in Kubo's own configuration, `Bearer <token>`,
    `Basic <base64>`, or `<user>:<password>`.
    """
    text = value.strip()
    if not text:
        return ""
    kind, space, rest = text.partition(" ")
    if space and kind.lower() in ("bearer", "basic") and rest.strip():
        return f"{kind.capitalize()} {rest.strip()}"
    kind, colon, rest = text.partition(":")
    if not colon or not rest or any(char in text for char in "\r\n"):
        raise ConfigError(
            "KUBO_RPC_AUTH cannot be used",
            hint="bearer:<token>, basic:<user>:<password> or <user>:<password>",
        )
    if kind.lower() == "bearer":
        return f"Bearer {rest}"
    if kind.lower() == "basic":
        return f"Basic {_basic(rest) if ':' in rest else rest}"
    return f"Basic {_basic(text)}"


def _basic(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def rpc_url(value: str) -> tuple[str, str]:
    """Return the base URL, and an Authorization header for a user and password in it."""
    text = value.strip() or DEFAULT_URL
    match = _MULTIADDR.fullmatch(text)
    if match:
        kind, host, port, scheme = match.groups()
        text = f"{scheme or 'http'}://{f'[{host}]' if kind == 'ip6' else host}:{port}"
    try:
        parts = urlsplit(text)
        user, password = parts.username or "", parts.password or ""
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    except ValueError:
        raise ConfigError(
            "the URL of the node's RPC cannot be read", hint=f"For instance {DEFAULT_URL}"
        ) from None
    url = urls_of([bare], "node")[0].removesuffix("/api/v0").rstrip("/")
    return url, f"Basic {_basic(f'{unquote(user)}:{unquote(password)}')}" if user else ""


def _query(params: Mapping[str, str] | None) -> dict[str, str]:
    return {**(params or {}), "cid-base": "base32"}
