"""Messages of rclone as our errors, each with the next step. Pure."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused, ProviderUnavailable

INSTALL_HINT: Final = (
    "Install rclone 1.60 or newer (https://rclone.org/install), and create a remote: rclone config"
)
#: Credentials in an address, and what signs it.
_SECRET: Final = re.compile(r"(?<=//)[^\s\"'?]*@")
_QUERY: Final = re.compile(r"(?<=[^\s?])\?[^\s\"']+")
#: Addresses and quoted paths: their words and digits are not the reason.
_QUOTED: Final = re.compile(r"\"[^\"\s]*/[^\"]*\"|'[^'\s]*/[^'\s]*'|\b[a-z]+://\S+")
#: A code of HTTP in a message in lower case; other digits are those of names and sizes.
_STATUS: Final = re.compile(
    r"\b(?:error|status|code|http)[: ]*(\d{3})\b|\b(\d{3}) (?:forbidden|unauthorized|too many|insufficient)"
)
#: What begins a line of its log.
_DATE: Final = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ")
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")
_LINE_MAX: Final = 200
#: What rclone says of a file or folder that is missing.
_MISSING: Final = ("object not found", "directory not found", "file not found", "not a regular file")
_NONE: Final[frozenset[str]] = frozenset()
#: Words of a message in lower case, codes of HTTP, whether the failure is permanent, what we say, and the next step.
_KNOWN: Final[tuple[tuple[tuple[str, ...], Set[str], bool, str, str], ...]] = (
    (
        ("didn't find section in config file",),
        _NONE,
        True,
        "rclone has no remote of this name",
        "Choose one of: rclone listremotes. Or create it: rclone config",
    ),
    (
        ("decrypt configuration", "config file is encrypted", "configuration password", "config password"),
        _NONE,
        True,
        "rclone's configuration is encrypted",
        "Set RCLONE_CONFIG_PASS, or RCLONE_PASSWORD_COMMAND.",
    ),
    (
        ("invalid_grant", "fetch token", "token expired", "expired_access_token", "refresh token", "empty token", "couldn't find token"),
        _NONE,
        True,
        "the account's login at the remote has expired",
        "Log in again: rclone config reconnect REMOTE:",
    ),
    (
        ("quota", "no space left", "insufficient storage", "insufficient_space", "storage limit"),
        frozenset(("507",)),
        False,
        "no space is left at the remote",
        "Free space there.",
    ),
    (
        ("rate limit", "ratelimit", "too many requests", "slowdown"),
        frozenset(("429",)),
        False,
        "the remote received too many requests",
        "Sync again in a while.",
    ),
    (
        ("permission denied", "access denied", "accessdenied", "unauthorized", "forbidden", "insufficient permission", "unable to authenticate"),
        frozenset(("401", "403")),
        True,
        "the remote refuses access",
        "Check that the account may read and write the folder: rclone lsf REMOTE:PATH",
    ),
)  # fmt: skip


def is_missing(text: str) -> bool:
    """Return whether rclone says that a file or folder is not there."""
    return any(word in text.lower() for word in _MISSING)


def explain(where: str, text: str) -> ProviderError:
    """Return the error for a failed call. What rclone said is quoted, cut to a line."""
    lower, quoted = _QUOTED.sub(" ", text).lower(), last_line(text)
    codes = {code or name for code, name in _STATUS.findall(lower)}
    for words, numbers, permanent, text_of, hint in _KNOWN:
        if any(word in lower for word in words) or codes & numbers:
            kind = ProviderRefused if permanent else ProviderUnavailable
            return kind(f"{where}: {text_of} ({quoted})", hint=hint)
    return ProviderUnavailable(
        f"{where}: rclone failed ({quoted})", hint="Try again, or run: rclone lsf REMOTE:PATH"
    )


def last_line(text: str) -> str:
    """Return the last line of a message: printable, short, and without credentials."""
    lines = [_DATE.sub("", line.strip()) for line in re.split(r"[\r\n]+", text) if line.strip()]
    line = _QUERY.sub("?***", _SECRET.sub("", lines[-1] if lines else ""))
    return _UNPRINTABLE.sub(" ", line)[:_LINE_MAX].strip() or "no message"
