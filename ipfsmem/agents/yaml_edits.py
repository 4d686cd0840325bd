"""Edits of YAML: add an entry to a top-level mapping or list, and remove exactly that; all other bytes stay unchanged.

Lines are added and removed, never rewritten by a library. The text is parsed before and after: an edit that changes anything
but the entry is refused. Pure functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ipfsmem.agents.json_edits import newline
from ipfsmem.errors import FormatError

if TYPE_CHECKING:
    from yaml.events import Event

_NULLS: Final = ("", "~", "null", "Null", "NULL")
#: The text after the first word of a line, and the start of a line with only space or a comment.
_tabs = re.compile(r"(?m)(?<=[^ \t\r\n])[^\r\n]*(?=\r?$)|^[ \t]*(?=#|\r?$)")
#: Characters that YAML does not allow, or line ends in YAML that JSON leaves unescaped.
_escaped = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class YamlEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A wanted entry of a mapping or a list of a YAML file."""

    #: The name of the mapping or the list, and that of the entry.
    path: tuple[str, str]
    value: dict[str, Any]
    #: Keys that the program writes into it.
    program_keys: tuple[str, ...] = ()
    #: True for an item of a list, identified by its `name`.
    listed: bool = False


class Inserted(msgspec.Struct, frozen=True, kw_only=True):
    """An added entry: enough to find it again in a text that has changed since."""

    entry: YamlEntry
    #: The added characters.
    written: str
    #: True if the mapping or the list was created with it.
    made: bool
    #: The null that it replaced, verbatim.
    instead: str = ""


def find(text: str, wanted: YamlEntry) -> Any:
    """Return the value of an entry, UNSET without one. Raises FormatError unless the text is one YAML mapping."""
    return _Read(text, wanted).value()


def add(text: str, wanted: YamlEntry) -> tuple[str, Inserted]:
    """Return the text with a new entry, and the addition. Raises FormatError if the text cannot be edited safely."""
    read = _Read(text, wanted)
    null = read.null()
    if null is not None:
        start, end = read.start(null), read.end(null)
        written = _flow_at(wanted, null == read.top)
    else:
        start, written = _insertion(read, wanted)
        end = start
    edited = text[:start] + written + text[end:]
    try:
        after = _Read(edited, wanted)
    except FormatError as error:
        raise FormatError(f"with the entry it could not be read any more: {error}") from None
    if after.value() != wanted.value or after.around() != read.around():
        raise FormatError("the edit would change more than one entry")
    is_new = read.parent is None
    return edited, Inserted(entry=wanted, written=written, made=is_new, instead=text[start:end])


def remove(text: str, done: Inserted) -> str:
    """Return the text without that entry, whatever else changed since; the same text if it is gone. Raises FormatError."""
    read = _Read(text, done.entry)
    if read.entry is None:
        return text
    prune = done.made and len(read.children) == 1
    for edited in _removals(text, done, read, prune):
        try:
            after = _Read(edited, done.entry)
        except FormatError:
            continue
        if after.entry is None and after.around() == read.around() and not (prune and after.parent):
            return edited
    raise FormatError(
        f"{'.'.join(done.entry.path)} cannot be removed without changing another part of the file"
    )


def _block(wanted: YamlEntry, indent: str, step: str) -> list[str]:
    """Return an entry in block style."""
    lines = [f"{key}: {_flow(each)}" for key, each in wanted.value.items()]
    if wanted.listed:
        return [f"{indent}{'  ' if place else '- '}{line}" for place, line in enumerate(lines)]
    return [f"{indent}{wanted.path[1]}:", *(f"{indent}{step}{line}" for line in lines)]


def _flow_at(wanted: YamlEntry, top: bool) -> str:
    """Return the mapping or list of an entry in flow style, with `top` in a top-level mapping."""
    parent, name = wanted.path
    own = _flow([wanted.value] if wanted.listed else {name: wanted.value})
    return f"{{{json.dumps(parent)}: {own}}}" if top else own


def _flow(value: Any) -> str:
    """Return a value on one line: JSON, which is YAML."""
    return _escaped.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


class _Pair(NamedTuple):
    """The events at which a key, its value, and the next node begin."""

    key: int
    value: int
    end: int


class _Read:
    """A YAML text as events, with the positions of the mapping and the entry of a path."""

    def __init__(self, text: str, wanted: YamlEntry) -> None:
        import yaml  # only here, as it slows down the start

        self.text, self.wanted, self._yaml = text, wanted, yaml
        self.events: list[Event] = self._parsed()
        if sum(isinstance(one, yaml.DocumentStartEvent) for one in self.events) > 1:
            raise FormatError("it holds more than one YAML document")
        #: The top-level value, and the mapping there; None in an empty text, and for null.
        self.top = next((i for i, one in enumerate(self.events) if isinstance(one, yaml.NodeEvent)), None)
        self.root = self._root()
        self.pairs = [] if self.root is None else [*self._pairs(self.root)]
        self.parent = self._named(self.pairs, wanted.path[0])
        self.children = self._children()
        self.entry = self._named(self.children, wanted.path[1], listed=wanted.listed)

    def _parsed(self) -> list[Event]:
        """Return the events of the text. Unreadable tabs are replaced by spaces where other parsers accept them as space."""
        yaml = self._yaml
        error: Exception | None = None
        for text in dict.fromkeys((self.text, _spaced(self.text))):
            try:
                return [*yaml.parse(text, Loader=yaml.SafeLoader)]
            except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as problem:
                error = error or problem
        raise FormatError(f"not YAML: {' '.join(str(error).split())[:200]}")

    def null(self) -> int | None:
        """Return the event of an explicit null in place of the mapping or the list."""
        at = self.top if self.root is None else None if self.parent is None else self.parent.value
        return at if at is not None and self._is_null(at) and self.start(at) < self.end(at) else None

    def value(self) -> Any:
        """Return the value of the entry, UNSET without one."""
        if self.entry is None:
            return msgspec.UNSET
        yaml = self._yaml
        own = self.events[self.entry.value : self.entry.end]
        whole = [
            yaml.StreamStartEvent(),
            yaml.DocumentStartEvent(),
            *own,
            yaml.DocumentEndEvent(),
            yaml.StreamEndEvent(),
        ]
        try:
            return yaml.safe_load(yaml.emit(whole))
        except (yaml.YAMLError, ValueError, RecursionError):
            raise FormatError(f"{'.'.join(self.wanted.path)} uses unsupported YAML syntax") from None

    def around(self) -> tuple[Any, ...]:
        """Return all other content of the text; a missing mapping equals one without the entry."""
        outside = tuple(self._said(pair.key, pair.end) for pair in self.pairs if pair != self.parent)
        own = None if self.parent is None else self.events[self.parent.value]
        head = (getattr(own, "anchor", None), getattr(own, "tag", None))
        return (
            outside,
            head,
            tuple(self._said(one.key, one.end) for one in self.children if one != self.entry),
        )

    def _root(self) -> int | None:
        yaml = self._yaml
        at = self.top
        if at is None or self._is_null(at):
            return None
        if not isinstance(self.events[at], yaml.MappingStartEvent):
            raise FormatError("it is not a mapping of YAML")
        return at

    def _children(self) -> list[_Pair]:
        if self.parent is None or self._is_null(self.parent.value):
            return []
        start = "SequenceStartEvent" if self.wanted.listed else "MappingStartEvent"
        if type(self.events[self.parent.value]).__name__ != start:
            kind = "list" if self.wanted.listed else "mapping"
            raise FormatError(f"{self.wanted.path[0]} is not a {kind} of YAML")
        return [*self._pairs(self.parent.value)]

    def _is_null(self, at: int) -> bool:
        one = self.events[at]
        return (
            isinstance(one, self._yaml.ScalarEvent)
            and one.implicit[0]
            and one.style is None
            and one.anchor is None
            and one.value in _NULLS
        )

    def _pairs(self, at: int) -> Iterator[_Pair]:
        """Yield the pairs of a mapping, or the items of a list."""
        has_keys = isinstance(self.events[at], self._yaml.MappingStartEvent)
        at += 1
        while not isinstance(self.events[at], self._yaml.CollectionEndEvent):
            value = self._behind(at) if has_keys else at
            end = self._behind(value)
            yield _Pair(at, value, end)
            at = end

    def _behind(self, at: int) -> int:
        """Return the index of the event after the node that begins at an event."""
        depth = 0
        while True:
            one = self.events[at]
            depth += isinstance(one, self._yaml.CollectionStartEvent)
            depth -= isinstance(one, self._yaml.CollectionEndEvent)
            at += 1
            if depth == 0:
                return at

    def _named(self, pairs: Sequence[_Pair], name: str, *, listed: bool = False) -> _Pair | None:
        matches = [
            pair for pair in pairs if (self._name_of(pair) if listed else self._word(pair.key)) == name
        ]
        if len(matches) > 1:
            raise FormatError(f"{name} is there twice")
        return matches[0] if matches else None

    def _word(self, event: int) -> Any:
        """Return the value of a scalar."""
        return getattr(self.events[event], "value", None)

    def _name_of(self, item: _Pair) -> Any:
        """Return the `name` of an item of a list."""
        if not isinstance(self.events[item.value], self._yaml.MappingStartEvent):
            return None
        names = (self._word(pair.value) for pair in self._pairs(item.value) if self._word(pair.key) == "name")
        return next(names, None)

    def _said(self, begin: int, end: int) -> tuple[Any, ...]:
        """Return events as comparable values, without layout."""
        return tuple(
            (
                type(one).__name__,
                getattr(one, "anchor", None),
                getattr(one, "tag", None),
                getattr(one, "value", None),
                getattr(one, "style", None),
            )
            for one in self.events[begin:end]
        )

    def start(self, event: int) -> int:
        """Return the offset of the first character of an event."""
        return _index(self.events[event].start_mark)

    def end(self, event: int) -> int:
        """Return the offset after the last character of an event."""
        return _index(self.events[event].end_mark)

    def begin(self, pair: _Pair) -> int:
        """Return the offset of the first character of an entry: its key, or the dash before it."""
        start = self.start(pair.key)
        if not self.wanted.listed or pair not in self.children or self.is_flow(self._parent()):
            return start
        return self.text.rfind("-", 0, start)

    def column(self, pair: _Pair) -> int:
        """Return the indentation of an entry."""
        begin = self.begin(pair)
        return begin - (self.text.rfind("\n", 0, begin) + 1)

    def _parent(self) -> int:
        assert self.parent is not None
        return self.parent.value

    def is_flow(self, event: int) -> bool:
        """Tell whether a mapping or a list is in flow style (braces or brackets)."""
        return bool(getattr(self.events[event], "flow_style", False))

    def stop(self) -> int:
        """Return the offset of the end of the document: its `...`, if any."""
        for at, one in enumerate(self.events):
            if isinstance(one, self._yaml.DocumentEndEvent) and one.explicit:
                return self.start(at)
        return len(self.text)

    def last(self, pair: _Pair) -> int:
        """Return the offset after the last character of a value; a block ends with its last part."""
        at = pair.end - 1
        while isinstance(self.events[at], self._yaml.CollectionEndEvent) and self.end(at) == self.start(at):
            at -= 1
        if self.is_flow(at):  # empty braces are two events
            return self.end(at + 1)
        return self.end(at)


def _spaced(text: str) -> str:
    """Return the text with a space for each tab after the first word of a line, and in lines without words."""
    return _tabs.sub(lambda found: found[0].replace("\t", " "), text)


def _index(mark: Any) -> int:
    """Return the offset of a parser mark in the text."""
    return int(mark.index)


def _insertion(read: _Read, wanted: YamlEntry) -> tuple[int, str]:
    """Return the offset at which the entry is inserted, and its text."""
    text, pair, end = read.text, read.parent, newline(read.text)
    parent, name = wanted.path
    stop = read.stop()
    entry = _flow(wanted.value) if wanted.listed else f"{json.dumps(name)}: {_flow(wanted.value)}"
    if pair is not None and read.is_flow(pair.value):
        return read.end(pair.value), entry + (", " if read.children else "")
    if pair is None and read.root is not None and read.is_flow(read.root):
        entry = f"[{entry}]" if wanted.listed else f"{{{entry}}}"
        return read.end(read.root), f"{json.dumps(parent)}: {entry}" + (", " if read.pairs else "")
    if pair is None:
        column = read.column(read.pairs[0]) if read.pairs else 0
        lead = "" if not stop or text.endswith("\n", 0, stop) else end
        lines = [f"{' ' * column}{parent}:", *_block(wanted, " " * (column + 2), "  ")]
        return stop, lead + "".join(line + end for line in lines)
    own = read.column(pair)
    inner = read.column(read.children[0]) if read.children else own + 2
    at = text.find("\n", read.end(pair.key)) + 1
    lead = "" if at else end
    lines = _block(wanted, " " * inner, " " * max(inner - own, 1))
    return at or len(text), lead + "".join(line + end for line in lines)


def _removals(text: str, done: Inserted, read: _Read, prune: bool) -> Iterator[str]:
    """Yield candidate texts without the entry: removed as written first, then by its current position."""
    end = newline(text)
    written = done.written.replace("\r\n", "\n").replace("\n", end)
    for one in (written, written.removesuffix(end)):  # an editor may have removed the last line end
        if one and text.count(one) == 1:
            yield text.replace(one, done.instead)
    entry, parent = read.entry, read.parent
    assert entry is not None and parent is not None
    if any(getattr(one, "anchor", None) for one in read.events[entry.key : entry.end]):
        return
    pair, others = (parent, read.pairs) if prune else (entry, read.children)
    begin, stop = read.begin(pair), read.last(pair)
    container = read.root if prune else parent.value
    if container is not None and read.is_flow(container):
        place = others.index(pair)
        if place + 1 < len(others):
            stop = read.start(others[place + 1].key)
        elif place:
            begin = read.last(others[place - 1])
        yield text[:begin] + text[stop:]
        return
    if not prune and len(others) == 1:
        indent = "" if read.column(pair) else " "  # at the margin an empty list would be a key
        yield f"{text[:begin]}{indent}{'[]' if done.entry.listed else '{}'}{text[stop:]}"
        return
    begin = text.rfind("\n", 0, begin) + 1
    ended = text.find("\n", max(stop - 1, begin))
    yield text[:begin] + (text[ended + 1 :] if ended >= 0 else "")
