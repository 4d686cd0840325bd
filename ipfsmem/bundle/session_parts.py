"""Recognise session parts by key and header (format section 5.1). Indexes, lists, contexts and plain folders omit
them.

A memory of the type `session` under any other key is an ordinary memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Protocol

from ipfsmem.bundle.memory_file import ENTRY_TYPES, TYPES
from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

#: The type of a part, and the header field with the name of its session.
SESSION = "session"
#: Types by which recall can filter.
RECALLED_TYPES = (*TYPES, *ENTRY_TYPES, SESSION)
#: Maximum characters of a session's name.
MAX_NAME = 256
#: Matches device and number at the end of a part's key.
NUMBERED = r"([0-9a-f]{16})-(0|[1-9][0-9]{0,5})"
#: Name prefix of sessions that hold the earlier texts of a memory. Lists of conversations omit these sessions.
HISTORY = "ipfsmem-history/"
#: Prefix of parts' keys.
PART_PREFIX = "session-"
_UNFIT = lazy_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_PLAIN = lazy_pattern(r"[a-z0-9][a-z0-9_]{0,23}")
_OTHER = lazy_pattern(r"[^a-z0-9]+")
_PART = lazy_pattern(f"{PART_PREFIX}(.+)-{NUMBERED}")


def parts_with_unknown_marks(keys: Iterable[str], missing: Iterable[str]) -> set[str]:
    """Return the keys of parts that are missing, or that precede a missing part of the same session and device.

    A missing part may mark items of its own or of an earlier part as imported and pending.
    """
    last: dict[str, int] = {}
    for key in filter(is_part_key, missing):
        of, _, number = key.rpartition("-")
        last[of] = max(last.get(of, -1), int(number))
    parts = ((key, key.rpartition("-")) for key in keys if is_part_key(key))
    return {key for key, (of, _, number) in parts if int(number) <= last.get(of, -1)}


class PartHeader(Protocol):
    """A header that identifies a part: that of a memory file, or of its line in an index."""

    @property
    def type(self) -> str: ...

    @property
    def session(self) -> str: ...


def session_token(session: str) -> str:
    """Return the token that represents a session in the keys of its parts. Raises UsageError for an invalid name."""
    if not session or len(session) > MAX_NAME or _UNFIT.search(session):
        raise UsageError(
            f"invalid session name {session[:80]!a}: 1-{MAX_NAME} characters, no control characters"
        )
    if _PLAIN.fullmatch(session):
        return session
    slug = _OTHER.sub("_", session.lower()).strip("_")[:15].rstrip("_") or "x"
    return f"{slug}-{sha256(session.encode()).hexdigest()[:16]}"


def is_part_key(key: str) -> bool:
    """Tell whether a key has the form of a part's."""
    return key.startswith(PART_PREFIX) and _PART.fullmatch(key) is not None


def is_part(key: str, file: PartHeader) -> bool:
    """Tell whether the text under a key is a session part."""
    if file.type != SESSION or (match := _PART.fullmatch(key)) is None:
        return False
    try:
        return match[1] == session_token(file.session)
    except UsageError:
        return False
