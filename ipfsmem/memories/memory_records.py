"""The records that reads return, with the token that a later write passes back.

A token lists the dots that were rendered in a text; a write replaces these dots and no others (format section 5). Where only a
string can be passed (an ETag, a command line), the token's hash is used: it is valid while exactly these dots are shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from hashlib import sha256
from typing import Protocol, TypeVar

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.errors import FormatError

#: The dots that were rendered in the text that a caller was shown.
Token = tuple[str, ...]
#: Digits of a token's hash, and the minimum that identifies it.
SEEN_DIGITS = 16
SEEN_LEAST = 8


def token_hash(token: Iterable[str]) -> str:
    """Return the hash of a token, 16 hex digits that do not depend on the order of its dots."""
    return sha256("\n".join(sorted(set(token))).encode()).hexdigest()[:SEEN_DIGITS]


def readable_file(data: bytes) -> MemoryFile:
    """Parse header and body leniently: an invalid memory file becomes a body without a header, and bytes that are not UTF-8 are
    replaced, because a text of others may be invalid. For display only."""
    try:
        return parse_memory(data)
    except FormatError:
        return MemoryFile({}, data.decode("utf-8", "replace"))


def place_of(scope: str, key: str) -> str:
    """Return the displayed name of a memory: `key`, or `scope/key`."""
    return f"{scope}/{key}" if scope else key


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One memory as it is shown, in Python and as JSON. A write with `seen` (the hash of `token`), `token` or the whole record
    replaces this text and no other."""

    key: str
    #: Its scope; "" is the default scope.
    scope: str
    #: Of the whole text; for `if_match`.
    sha256: str
    #: The header and the body, parsed leniently.
    fields: dict[str, str]
    body: str
    #: The whole text including the header; invalid UTF-8 in a text of others is replaced.
    text: str
    #: The dots rendered in the text.
    token: Token
    seen: str
    #: The device that wrote it, and its clock: 16 hex digits, the first 12 of them milliseconds.
    device: str
    hlc: str
    merged: bool
    #: The names of conflict copies.
    conflicts: tuple[str, ...]
    #: Whether the text is own or approved; otherwise it is a pending text of others (format section 5.2).
    own: bool = True

    @classmethod
    def of(
        cls,
        key: str,
        data: bytes,
        token: Token,
        *,
        merged: bool = False,
        conflicts: tuple[str, ...] = (),
        device: str = "",
        hlc: str = "",
        own: bool = True,
        scope: str = "",
        file: MemoryFile | None = None,
    ) -> MemoryRecord:
        """Return the record of the text `data`, which the caller is shown. `file`: the parsed text, if the caller has it."""
        if file is None:
            file = readable_file(data)
        record = cls(
            key=key,
            scope=scope,
            sha256=sha256(data).hexdigest(),
            fields=file.fields,
            body=file.body,
            text=data.decode("utf-8", "replace"),
            token=token,
            seen=token_hash(token),
            device=device,
            hlc=hlc,
            merged=merged,
            conflicts=conflicts,
            own=own,
        )
        vars(record)["data"] = data
        return record

    @cached_property
    def data(self) -> bytes:
        """The bytes of the text."""
        return self.text.encode()

    @property
    def file(self) -> MemoryFile:
        """Header and body. Raises FormatError for an invalid memory file of others."""
        return parse_memory(self.data)

    @property
    def readable(self) -> MemoryFile:
        """Header and body, parsed leniently."""
        return MemoryFile(self.fields, self.body)


class Alternative(msgspec.Struct, frozen=True):
    """An alternative to the shown text, or a text hidden by a forget, and its dots. `reading` None: it is not fetched."""

    file: str
    token: Token
    reading: MemoryRecord | None


class Conflict(msgspec.Struct, frozen=True):
    """A memory with a conflict, in Python and as JSON: the shown text, and the alternatives. Pass it, or its `seen`, to `resolve`.

    `shown` None: the key is forgotten, or the text that would be shown is not fetched.
    """

    key: str
    shown: MemoryRecord | None
    copies: tuple[Alternative, ...]
    #: The dots of the shown text, or of the forget that hides the copies; and of others' forgets without effect for this reader.
    dots: Token = ()
    forgotten: bool = False
    scope: str = ""
    #: The hash of the token.
    seen: str = ""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "seen", token_hash(self.token))

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the copies."""
        return tuple(copy.file for copy in self.copies)

    @property
    def token(self) -> Token:
        """The dots of all texts in this record. A copy that is not fetched is excluded: nobody was shown it."""
        return (*self.dots, *(dot for copy in self.copies if copy.reading is not None for dot in copy.token))


#: What a caller was shown: a record, its token, or the token's hash.
Seen = MemoryRecord | Conflict | Token | str


class SaysWhose(Protocol):
    """Any record that distinguishes own texts from texts of others."""

    @property
    def own(self) -> bool: ...


R = TypeVar("R", bound=SaysWhose)


def first_own(readings: Iterable[R | None]) -> R | None:
    """Return the record to show of one key in several scopes: the first own one, else the first. Later scopes are not read."""
    others: R | None = None
    for record in readings:
        if record is not None and record.own:
            return record
        others = others or record
    return others
