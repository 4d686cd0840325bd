"""Results of readers of other programs' files: records that can become memories, events, and problems.

Records do not depend on the vault or on a program's format.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
import rfc8785

from ipfsmem.bundle.header import render_tags
from ipfsmem.bundle.keys import key_of_foreign_name
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.bundle.origin_name import with_origin
from ipfsmem.bundle.sync_conflicts import base_of_conflict
from ipfsmem.bundle.timeline import NO_TIME
from ipfsmem.errors import FormatError, LimitError
from ipfsmem.exchange.json_input import read_values
from ipfsmem.exchange.lenient import portable, unicode_text, utf8_text

#: Maximum characters of a text's beginning that become its default name.
_NAME = 60
#: Maximum characters of a made key before its digits.
_STEM = 48
_NO_WORD = re.compile(r"[^a-z0-9]+")
#: Maximum bytes of further data in the header; the rest follows the body.
_IN_HEADER = 1024
#: Maximum bytes of a header field that is never moved out of the header.
_SHORT = 200
#: Maximum nesting of objects that an API wraps around a list of records.
_WRAPPED = 8


#: A random id: a UUID.
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
#: Minimum different digits of a random one, except for one in many millions.
_DIGITS = 6


class ImportRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One text that could become a memory."""

    #: Its place in the input, in a person's words.
    where: str
    #: The body; or a whole file, header and all.
    text: str = ""
    file: bytes | None = None
    #: Its key, if it has one.
    key: str = ""
    #: The file name from which its key is made. Without one the key is made of the beginning of the text and of `ident`.
    file_name: str = ""
    #: Its id among others of its program, "" for its text. `unique`: no other store uses this id, so another text under it is a
    #: change of this one, from any source.
    ident: str = ""
    unique: bool = False
    name: str = ""
    description: str = ""
    type: str = ""
    tags: Sequence[str] = ()
    #: ISO 8601, or "".
    created: str = ""
    updated: str = ""
    #: Its source: the program, and the program's name for it.
    source: str = ""
    #: Further header fields.
    fields: Mapping[str, str] = {}
    #: All other data about it.
    extra: Mapping[str, Any] = {}
    #: Whether it was distilled from conversations, so that a person has to approve it before agents get it.
    candidate: bool = False
    #: Its scope, "" for the default scope.
    scope: str = ""

    def render(self) -> bytes:
        """Return the memory file: side fields as far as the header has room, the text, then the rest of them. Raises FormatError
        for a file that is not UTF-8, LimitError for a text that is too long."""
        if self.file is not None:
            return self._render_file(self.file)
        own_fields = {
            "name": self.name,
            "description": " ".join(self.description.split()),
            "type": self.type,
            "created": self.created,
            "updated": self.updated,
            "source": self.source,
            "tags": render_tags(map(unicode_text, self.tags)),
        }
        fields = {name: unicode_text(value) for name, value in (*own_fields.items(), *self.fields.items())}
        text = unicode_text(self.text)
        extra = portable(dict(self.extra)) if self.extra else {}
        while True:
            extra_text = _json(extra)
            short = len(extra_text.encode()) <= _IN_HEADER
            body = text if short else f"{text.rstrip()}\n\n```json\n{extra_text}\n```"
            try:
                return render_memory(
                    MemoryFile().with_fields({**fields, "extra": extra_text if short else ""}, body)
                )
            except LimitError:
                longest = max(fields, key=lambda name: len(fields[name].encode()))
                if len(fields[longest].encode()) <= _SHORT:
                    raise
            extra[next(n for n in (longest, f"{longest}_", f"header_{longest}") if n not in extra)] = fields[
                longest
            ]
            fields[longest] = name_of(fields[longest]) if longest == "name" else ""

    def text_alone(self) -> ImportRecord:
        """Return the same record with its text only."""
        return msgspec.structs.replace(self, extra={}, tags=(), fields={}, description="")

    def _render_file(self, data: bytes) -> bytes:
        data = utf8_text(data)
        name = base_of_conflict(self.file_name) or self.file_name
        origin = key_of_foreign_name(name).origin if name else None
        try:
            parse_memory(data)
        except LimitError:
            # A header that is too long is text like any other.
            data = b"---\n---\n\n" + data.removeprefix(b"\xef\xbb\xbf")
        except FormatError:
            return data
        return with_origin(data, origin)


class Happened(msgspec.Struct, frozen=True):
    """One event for the timeline, without an id yet. `note`: a notice for the user about its import."""

    event: dict[str, Any]
    scope: str = ""
    note: str = ""


class Conversed(msgspec.Struct, frozen=True):
    """A conversation: its items in order, each with its time in milliseconds since 1970 UTC (None: as its neighbours), and its
    title. `agent`: the program's speaker."""

    session: str
    items: Sequence[tuple[int | None, Mapping[str, Any]]]
    agent: str = ""
    scope: str = ""


class Problem(msgspec.Struct, frozen=True):
    """A part of the input that could not be read. `keys`: of the memories that it, or what could not be read next to it, would have been; a file of
    a memory says its own."""

    where: str
    why: str
    keys: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{shown(self.where)} was left out: {self.why}"


class Skipped(msgspec.Struct, frozen=True):
    """A part of the input without anything to remember."""

    why: str


Item = ImportRecord | Happened | Conversed | Problem | Skipped


def records_of(
    values: Iterable[Any], kind: str, make: Callable[[str, Any], ImportRecord | Skipped]
) -> Iterator[Item]:
    """Yield the result of `make` for each value, given its place; an invalid value is a problem."""
    for number, value in enumerate(values, 1):
        place = f"{kind} {number}"
        try:
            yield make(place, value)
        except FormatError as error:
            yield Problem(place, str(error))


def read_records(
    file: str,
    data: bytes,
    kind: str,
    make: Callable[[str, Any], ImportRecord | Skipped],
    *,
    lists: Sequence[str],
    texts: Sequence[str],
) -> Iterator[Item]:
    """Yield the result of `make` for each record of a JSON file: a list, an object with one under a name of `lists`, pages of
    both, one record, or any of these on each line. `texts`: the fields with a record's text. Raises FormatError for a file of
    another form."""
    for place, value in read_values(data, file):
        if isinstance(value, FormatError):
            yield Problem(place, str(value).removeprefix(f"{place} "))
            continue
        is_list = isinstance(value, list)
        if (
            place == file
            and not is_list
            and not (isinstance(value, dict) and value.keys() & {*lists, *texts})
        ):
            raise FormatError(f"{file} has no {kind} in it")
        yield from records_of(flat_records(value, lists, texts), f"{kind} in {place}, number", make)


def flat_records(value: Any, lists: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
    """Yield the records in a list, in an object with such lists, and in pages of both; any other value is a record itself. An
    object with a text of its own is a record in addition to those in its lists."""
    if isinstance(value, list):
        for one in value:
            yield from flat_records(one, lists, texts) if isinstance(one, dict) else (one,)
        return
    lists_here = (
        {name: value[name] for name in lists if _holds_records(value.get(name), lists)}
        if isinstance(value, dict)
        else {}
    )
    if not lists_here:
        yield value
        return
    itself = {name: one for name, one in value.items() if name not in lists_here}
    has_text = any(itself.get(name) for name in texts)
    if has_text:
        yield itself
    for some in lists_here.values():
        for one in some if isinstance(some, list) else flat_records(some, lists, texts):
            if not has_text or isinstance(one, dict) or (isinstance(one, str) and one.strip()):
                yield one


def _holds_records(value: Any, lists: Sequence[str], depth: int = _WRAPPED) -> bool:
    """Return whether it is a list, or an object with a list under a name of `lists`, possibly nested: APIs wrap their answers so."""
    if isinstance(value, dict):
        return depth > 0 and any(_holds_records(value.get(name), lists, depth - 1) for name in lists)
    return isinstance(value, list)


#: Prefix of the id that is made for a conversation with neither an id nor a date.
MADE_CONVERSATION: Final = "content-"


def conversation(
    place: str, begin: str, written: str, data: Mapping[str, Any], raw: bytes | FormatError
) -> Happened:
    """Return the event of a conversation that began at `begin`. Without a date it has the date of its file (`written`) and a note
    about it; if it has no id either, its id is made from its content (`raw`), as the date of a file changes."""
    ts, note = begin, ""
    if not ts:
        ts = written or NO_TIME
        how = f"that of its file ({ts[:10]})" if written else f"{NO_TIME[:10]}, as its file has none"
        note = f"{place} has no date; its date in the timeline is {how}"
        if not data["conversation"] and isinstance(raw, bytes):
            data = {**data, "conversation": f"{MADE_CONVERSATION}{sha256(raw).hexdigest()[:16]}"}
    return Happened({"ts": ts, "type": "conversation", **data}, note=note)


def shown(text: str) -> str:
    """Return a foreign name in a printable form."""
    return (text if text.isprintable() else ascii(text)[1:-1])[:120]


def is_one_of_a_kind(ident: str) -> bool:
    """Return whether an id is unique across stores. Numbers and words are not, since every store assigns its own."""
    return _UUID.fullmatch(ident) is not None and len(set(ident.lower()) - {"-"}) >= _DIGITS


def name_of(text: str) -> str:
    """Return a default name for a text: the beginning of its first line, cut between words."""
    # Only the beginning: a text may be one line of a megabyte.
    lines = (line.strip(" \t#*->") for line in text[:2000].splitlines())
    line = next(filter(None, lines), "")[: 4 * _NAME]
    if not line.isprintable():
        line = "".join(c for c in line if not unicodedata.category(c).startswith("C"))
    line = " ".join(line.split())
    if len(line) <= _NAME:
        return line
    cut = line[:_NAME].rpartition(" ")[0]
    return (cut or line[:_NAME]) + "…"


def mark_of(program: str, source: str) -> str:
    """Return the digits of a made key: the same entry has the same on every device."""
    return sha256(f"{program}\n{source}".encode(errors="surrogatepass")).hexdigest()[:12]


def made_key(program: str, name: str, source: str) -> str:
    """Return the key of a text without one: the first words of its name, and `mark_of` its identity."""
    spoken = unicodedata.normalize("NFKD", name).encode("ascii", "ignore")
    words = _NO_WORD.sub("-", spoken.decode().lower()).strip("-")
    stem = words if len(words) <= _STEM else words[:_STEM].rpartition("-")[0] or words[:_STEM]
    return f"{stem or program}-{mark_of(program, source)}"


def one_line(text: str, most: int) -> str:
    """Return a text in one line of at most `most` characters, for events."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _json(value: Mapping[str, Any]) -> str:
    return str(rfc8785.dumps(dict(value)), "utf-8") if value else ""
