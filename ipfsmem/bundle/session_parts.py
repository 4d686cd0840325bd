"""Which memory files are parts of sessions, by key and header (format section 5.1): what indexes, lists, contexts and plain folders
leave out. A type alone makes none: a memory that merely calls itself a session is a memory like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Protocol

from ipfsmem.bundle.memory_file import ENTRY_TYPES, TYPES
from ipfsmem.errors import UsageError
from ipfsmem.lazy_pattern import lazy_pattern

#: The type of a part, and the header field that names its session.
SESSION = "session"
#: What recall can be asked for alone.
RECALLED_TYPES = (*TYPES, *ENTRY_TYPES, SESSION)
#: Characters of the name of a session.
MAX_NAME = 256
#: The device and the number at the end of a part's key.
NUMBERED = r"([0-9a-f]{16})-(0|[1-9][0-9]{0,5})"
#: How the sessions begin that hold the earlier texts of one memory: no conversations, so lists of these leave them out.
HISTORY = "ipfsmem-history/"
#: How the keys of parts begin.
PART_PREFIX = "session-"
_UNFIT = lazy_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_PLAIN = lazy_pattern(r"[a-z0-9][a-z0-9_]{0,23}")
_OTHER = lazy_pattern(r"[^a-z0-9]+")
_PART = lazy_pattern(f"{PART_PREFIX}(.+)-{NUMBERED}")


def is_part_key(key: str) -> bool:
    """Whether a key has the form of a part's."""
    return _PART.fullmatch(key) is not None


def unsure_parts(keys: Iterable[str], missing: Iterable[str]) -> set[str]:
    """Of the keys of parts those that are missing, or come before a missing one of the same session and device: that one may say that what
    they hold was imported and nobody approved it, which stands in the same or a later part."""
    last: dict[str, int] = {}
    for key in filter(may_be_part, missing):
        of, _, number = key.rpartition("-")
        last[of] = max(last.get(of, -1), int(number))
    parts = ((key, key.rpartition("-")) for key in keys if may_be_part(key))
    return {key for key, (of, _, number) in parts if int(number) <= last.get(of, -1)}


class SaysItsKind(Protocol):
    """What tells a part by its header: a memory file, or its line in an index."""

    @property
    def type(self) -> str: ...

    @property
    def session(self) -> str: ...


def session_token(session: str) -> str:
    """What stands for a session in the keys of its parts. Raises UsageError for a name that none can have."""
    if not session or len(session) > MAX_NAME or _UNFIT.search(session):
        raise UsageError(
            f"a session is called by 1 to {MAX_NAME} characters without control characters, and {session[:80]!a} is not"
        )
    if _PLAIN.fullmatch(session):
        return session
    slug = _OTHER.sub("_", session.lower()).strip("_")[:15].rstrip("_") or "x"
    return f"{slug}-{sha256(session.encode()).hexdigest()[:16]}"


def may_be_part(key: str) -> bool:
    """Whether a key has the form of a part's."""
    return key.startswith(PART_PREFIX) and _PART.fullmatch(key) is not None


def is_part(key: str, file: SaysItsKind) -> bool:
    """Whether what stands under a key is a part of a session."""
    if file.type != SESSION or (match := _PART.fullmatch(key)) is None:
        return False
    try:
        return match[1] == session_token(file.session)
    except UsageError:
        return False
