"""What a reader finds in another program's files: records that could become memories, events, and what was wrong.

A record is neutral: who it is from, what it says, whose word it is. Nothing here knows of keys that are taken, of this memory,
or of a program's form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import rfc8785

from ipfsmem.bundle.header import render_tags
from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.bundle.memory_file import MemoryFile, render_memory
from ipfsmem.bundle.origin_name import with_origin
from ipfsmem.bundle.timeline import normal_ts
from ipfsmem.errors import FormatError

#: Characters of a text's beginning that serve as its name where it has none.
_NAME = 60
#: Bytes of further data that stand in the header; more of it stands at the end of the body.
_IN_HEADER = 1024
#: Numbers above this count milliseconds since 1970, below it seconds: as seconds it is the year 5138.
_MILLISECONDS = 100_000_000_000


#: An id that nobody has by counting: a UUID.
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: Different digits that one made at random has at least, but for one in many millions.
_DIGITS = 6


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One text that could become a memory."""

    #: Where it stood, in a person's words.
    where: str
    #: The body; or a whole file as it is, header and all.
    text: str = ""
    file: bytes | None = None
    #: The file name from which its key is made. Without one the key is made of the beginning of the text and of `ident`.
    file_name: str = ""
    #: What tells it from others of its program, "" for its text. `unique`: no other store has one with this id, so another
    #: text under it is this one, changed, wherever it is read from.
    ident: str = ""
    unique: bool = False
    name: str = ""
    description: str = ""
    type: str = ""
    tags: Sequence[str] = ()
    #: ISO 8601, or "".
    created: str = ""
    updated: str = ""
    #: Where it came from: the program, and what it calls it.
    source: str = ""
    #: Further header fields.
    fields: Mapping[str, str] = {}
    #: Whatever else was said of it.
    extra: Mapping[str, Any] = {}
    #: Whether it was distilled out of conversations, so that a person has to agree before agents are given it.
    candidate: bool = False
    #: The scope that it belongs in, "" for the nameless one.
    scope: str = ""

    def render(self) -> bytes:
        """The memory file. Raises FormatError for text that is not Unicode, LimitError."""
        if self.file is not None:
            origin = key_of_foreign_name(self.file_name).origin if self.file_name else None
            return with_origin(self.file, origin)
        body, fields = self.text, dict(self.fields)
        if self.extra:
            said = _json(self.extra)
            if len(said.encode(errors="surrogatepass")) <= _IN_HEADER:
                fields["extra"] = said
            else:
                body = f"{body.rstrip()}\n\n```json\n{said}\n```"
        known = {
            "name": self.name,
            "description": " ".join(self.description.split()),
            "type": self.type,
            "created": self.created,
            "updated": self.updated,
            "source": self.source,
            "tags": render_tags(self.tags),
        }
        return render_memory(MemoryFile().with_fields({**known, **fields}, body))


class Happened(msgspec.Struct, frozen=True):
    """One event for the timeline, without an id of ours."""

    event: dict[str, Any]
    scope: str = ""


class Problem(msgspec.Struct, frozen=True):
    """Something that could not be read."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{shown(self.where)} was left out: {self.why}"


class Skipped(msgspec.Struct, frozen=True):
    """Something that was read, and is nothing to remember."""

    why: str


Item = Record | Happened | Problem | Skipped


class NotReadableError(FormatError):
    """One record is not what it should be; the others are read on."""


def records_of(
    values: Iterable[Any], what: str, make: Callable[[str, Any], Record | Skipped]
) -> Iterator[Item]:
    """What `make` makes of each value, given where it stood; a value that is not what it should be is a problem."""
    for number, value in enumerate(values, 1):
        where = f"{what} {number}"
        try:
            yield make(where, value)
        except FormatError as error:
            yield Problem(where, str(error))


def shown(text: str) -> str:
    """A name from outside, as it can be printed."""
    return (text if text.isprintable() else ascii(text)[1:-1])[:120]


def text_of(value: object, what: str) -> str:
    """A text out of decoded JSON; "" for none. Raises NotReadableError."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NotReadableError(f"{what} is not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotReadableError(f"{what} is not Unicode text (a lone surrogate)") from None
    return value


def needed_text(value: object, what: str) -> str:
    """The same for one that must be there. Raises NotReadableError; for blank text too."""
    text = text_of(value, what)
    if not text.strip():
        raise NotReadableError(f"{what} is empty")
    return text


def mapping_of(value: object, what: str) -> dict[str, Any]:
    """A JSON object; {} for none. Raises NotReadableError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotReadableError(f"{what} is no JSON object")
    return value


def list_of(value: object, what: str) -> list[Any]:
    """A JSON list; [] for none. Raises NotReadableError."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotReadableError(f"{what} is no list")
    return value


def texts_of(value: object) -> tuple[str, ...]:
    """The texts in a list, or between the commas of a text, what is no text left out: for tags and their like."""
    found = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(one for one in found if isinstance(one, str) and _is_unicode(one) and one.strip())


def is_one_of_a_kind(ident: str) -> bool:
    """Whether an id is one that two stores never give to different things. Numbers and words are not: each store counts anew."""
    return _UUID.fullmatch(ident) is not None and len(set(ident.lower()) - {"-"}) >= _DIGITS


def date_of(value: object) -> str:
    """An instant as ISO 8601: a text that is one stays as it is, numbers are seconds or milliseconds since 1970; "" for any other."""
    if isinstance(value, str):
        try:
            normal_ts(value)
        except FormatError:
            return ""
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            seconds = value / 1000 if abs(value) > _MILLISECONDS else value
            moment = datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, OSError, ValueError):
            return ""
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return ""


def name_of(text: str) -> str:
    """A name for a text that has none: the beginning of its first line, cut between words."""
    # What stands far behind is no name, and a text may be one line of a megabyte.
    lines = (line.strip(" \t#*->") for line in text[:2000].splitlines())
    line = next(filter(None, lines), "")[: 4 * _NAME]
    if not line.isprintable():
        line = "".join(c for c in line if not unicodedata.category(c).startswith("C"))
    line = " ".join(line.split())
    if len(line) <= _NAME:
        return line
    cut = line[:_NAME].rpartition(" ")[0]
    return (cut or line[:_NAME]) + "…"


def one_line(text: str, most: int) -> str:
    """A text in one line of at most so many characters, for events."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _json(value: Mapping[str, Any]) -> str:
    try:
        return str(rfc8785.dumps(dict(value)), "utf-8")
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError, ValueError):
        raise NotReadableError("what is said beside it has no form that others read alike") from None
