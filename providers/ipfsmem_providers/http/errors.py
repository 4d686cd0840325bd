"""Failures reported by services, as errors without secrets.

An answer becomes ProviderUnavailable (the same call may work later) or ProviderRefused (it will not), with
the service's own reason, which has many forms. `Redactor` removes tokens.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable

REDACTED: Final = "[redacted]"
#: Longest reason that an error shows, in characters.
_REASON_MAX: Final = 300
_SECRET_HEADERS: Final = re.compile(
    r"auth|token|secret|cookie|api[-_]?key|signature|credential", re.IGNORECASE
)
# None of these patterns backtracks: a stranger chooses the length of an answer.
_QUERY: Final = re.compile(r"([?&;])([^?=&;#\s]*+)=([^&;#\s\"'<>]++)")
_SECRET_NAME: Final = re.compile(
    r"token|secret|signature|password|credential|api[-_]?key|auth|jwt|\Asig\Z|\Akey\Z", re.IGNORECASE
)
_USER_INFO: Final = re.compile(r"(\bhttps?://)[^/@\s]++@", re.IGNORECASE)
_BEARER: Final = re.compile(r"\b(Bearer|Basic)\s++[\w+/=.~-]{6,}+", re.IGNORECASE)
# Text that starts like a JWT but is not one is skipped whole.
_JWT: Final = re.compile(r"\beyJ(?:(?P<rest>[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?)|[\w-]*+)")
_UNAVAILABLE: Final = frozenset((408, 425, 429))
#: The pause, in seconds, that 429 asks for without saying how long.
PAUSE: Final = 30.0


class Reason(msgspec.Struct, frozen=True):
    """A service's reason for a failure."""

    code: str = ""  #: its own short code, such as NO_SCOPES_FOUND or NoSuchKey
    text: str = ""  #: for people

    def __str__(self) -> str:
        if self.code and self.text and self.code != self.text:
            return f"{self.code}: {self.text}"
        return self.code or self.text


class Redactor:
    """Takes secrets out of texts: known ones, and texts that look like one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Add secrets. Those shorter than 6 characters are ignored: they would make texts unreadable."""
        self._secrets.update(secret for secret in secrets if len(secret) >= 6)

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Add the values of headers that carry credentials."""
        for name, value in headers.items():
            if _SECRET_HEADERS.search(name):
                self.add(value, value.partition(" ")[2])

    def __call__(self, text: str) -> str:
        """Return `text` without secrets."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, REDACTED)
        text = _USER_INFO.sub(rf"\g<1>{REDACTED}@", text)
        text = _QUERY.sub(_without_value, text)
        text = _BEARER.sub(rf"\g<1> {REDACTED}", text)
        return _JWT.sub(lambda found: found[0] if found["rest"] is None else REDACTED, text)


def _without_value(match: re.Match[str]) -> str:
    """Return a field of a query, without its value when its name sounds like a secret."""
    return f"{match[1]}{match[2]}={REDACTED}" if _SECRET_NAME.search(match[2]) else match[0]


def reason_of(body: bytes, redact: Callable[[str], str] = str) -> Reason:
    """Return the service's own reason from a failure's body: JSON of many shapes, S3 XML, HTML, or text. Never fails.

    `redact` removes secrets before texts are truncated: half a token would not be recognised.
    """
    text = body[:65536].decode("utf-8", "replace").strip()
    if not text:
        return Reason()
    if text[:1] in "{[":
        try:
            return _from_json(read_json(text), redact)
        except (msgspec.DecodeError, RecursionError):
            pass
    if text.startswith("<"):
        return _from_markup(text, redact)
    return Reason("", short(text, redact))


def is_unavailable(status: int) -> bool:
    """Return whether a status means that the same call may work later."""
    return status in _UNAVAILABLE or status >= 500


def failure(
    service: str,
    status: int,
    reason: Reason,
    *,
    what: str = "",
    after: float | None = None,
    redact: Redactor | None = None,
    token: str = "",
) -> ProviderError:
    """Return the error for an unsuccessful answer. `what`: a verb phrase for the request, `after`: seconds of
    its Retry-After, `token`: the setting that holds the service's token."""
    message = f"{service} answered {status}{f' to {what}' if what else ''}"
    if str(reason):
        message += f": {reason}"
    message = (redact or Redactor())(message)
    if not is_unavailable(status):
        hint = (
            f"The token is wrong or missing. Set {token}." if token and status == 401 else _HINTS.get(status)
        )
        return ProviderRefused(message, hint=hint)
    pause = after or (PAUSE if status == 429 else None)
    error = ProviderUnavailable(f"{message} (try again in {after:.0f} s)" if after else message)
    error.again_after = pause
    return error


def combined(problems: Sequence[ProviderError], what: str = "") -> ProviderError:
    """Combine several errors with all their messages; ProviderUnavailable if any of them is."""
    message = (f"{what}: " if what else "") + "; ".join(dict.fromkeys(str(problem) for problem in problems))
    if any(not problem.permanent for problem in problems):
        error = ProviderUnavailable(message)
        error.again_after = max((one.again_after for one in problems if one.again_after), default=None)
        return error
    return ProviderRefused(message, hint=problems[0].hint or None)


_HINTS: Final = {
    401: "The token is wrong or missing. Check the provider's settings.",
    402: "The plan does not allow this, or its quota is used up.",
    403: "The token is not allowed to do this. Check its scopes and the plan.",
    410: "The service has ended this. Choose another provider: ipfsmem vault move.",
    413: "Too large for this provider or plan.",
    451: "The provider blocks this content.",
}


def _from_json(value: Any, redact: Callable[[str], str]) -> Reason:
    """Parse {error:{reason,details}}, {error:"text"}, {message}, {Message,Code}, {code,message},
    {errors:[...]}, [..]."""
    for _ in range(4):
        if isinstance(value, str):
            return Reason("", short(value, redact))
        if isinstance(value, list):
            value = value[0] if value else None
            continue
        if not isinstance(value, dict):
            return Reason()
        lower = {key.lower(): item for key, item in value.items()}
        inner = lower.get("error", lower.get("errors"))
        if isinstance(inner, (dict, list)) and inner:
            value = inner
            continue
        code = _word(lower, redact, "reason", "code", "name", "type")
        text = _word(lower, redact, "details", "message", "detail", "description", "msg", "error_description")
        if isinstance(inner, str):
            inner = short(inner, redact)
            code, text = (code or inner, text) if text else (code, inner)
        return Reason(code, text)
    return Reason()


def _word(fields: Mapping[str, Any], redact: Callable[[str], str], *names: str) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return short(value, redact)
    return ""


def _from_markup(text: str, redact: Callable[[str], str]) -> Reason:
    code = re.search(r"<Code>([^<]{1,100})</Code>", text)
    message = re.search(r"<Message>([^<]{1,1000})</Message>", text)
    if code or message:  # S3
        return Reason(
            short(html.unescape(code[1]), redact) if code else "",
            short(html.unescape(message[1]), redact) if message else "",
        )
    title = re.search(r"<title[^<>]{0,200}+>([^<]{1,1000}+)</title>", text, re.IGNORECASE)
    if title and title[1].strip():
        return Reason("", short(html.unescape(title[1]), redact))
    return Reason("", short(html.unescape(" ".join(_bare(text))), redact))


def _bare(text: str) -> Iterable[str]:
    """Yield the text between the tags of a page, without scripts and styles, in linear time."""
    hidden = ""
    for part in text.split("<"):
        mark, closed, after = part.partition(">")
        name = mark.strip("/").split(maxsplit=1)[0].lower() if mark.strip("/") else ""
        if hidden:
            if mark.startswith("/") and name == hidden:
                hidden = ""
            else:
                continue
        elif name in ("script", "style") and closed:
            hidden = name
            continue
        if closed:
            yield after


def short(text: str, redact: Callable[[str], str]) -> str:
    """Return one line of printable text without secrets, truncated to the maximum length."""
    line = redact(" ".join("".join(c if c.isprintable() else " " for c in text).split()))
    return line if len(line) <= _REASON_MAX else line[: _REASON_MAX - 1] + "…"
