"""The shared state of a set of tools: the memory, the scope of calls that name none, and the texts that this session was shown.

A read searches the scope and then the default scope, and names the scope of a text; a write goes to exactly one scope. It has
no rules of its own about memories.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ipfsmem.bundle.fence import CANDIDATE, NOTICE, Quoted, clean_text, fence
from ipfsmem.bundle.keys import check_scope
from ipfsmem.config import refuse_agents_switched_off
from ipfsmem.errors import ChangedError, NotFoundError
from ipfsmem.memories.memory_records import MemoryRecord, first_own, place_of
from ipfsmem.memories.write_request import scope_of_type
from ipfsmem.memories.writers import Writers
from ipfsmem.tools.schema import JSON, answer

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Maximum number of facts of a session; the oldest are dropped.
SESSION_FACTS = 50
#: Maximum number of texts that a session records as shown.
_SHOWN = 1_000
#: Scope, key, and the name of an alternative; "" for the shown text.
_Place = tuple[str, str, str]

_text = {"type": "string"}
#: The structured form of one text, with details about it.
TEXT_SCHEMA = answer(
    notice=_text,
    key=_text,
    scope=_text,
    own={"type": "boolean"},
    name=_text,
    description=_text,
    type=_text,
    tags={"type": "array", "items": _text},
    body=_text,
    by=_text,
    member=_text,
    source=_text,
    written=_text,
)


class ShownText(Protocol):
    """A text that an answer showed."""

    @property
    def scope(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def seen(self) -> str: ...


class Session:
    """The state of one connection, in this process only; gone when it ends."""

    def __init__(self, *, shared: bool = False) -> None:
        """`shared`: several conversations use it indistinguishably, so texts shown in parts, or before, are valid for none of
        them."""
        self._shared = shared
        #: The scope of the project that the program works on, "" if unknown.
        self.project = ""
        #: Pairs of category and fact.
        self.facts: deque[tuple[str, str]] = deque(maxlen=SESSION_FACTS)
        self._shown: dict[_Place, str] = {}
        #: Of the text that was begun last in each place: its `seen`, and the end of the part shown from its beginning.
        self._read: dict[_Place, tuple[str, int]] = {}

    def show(self, reading: ShownText, copy: str = "") -> None:
        """Record that this text was shown whole, or written."""
        place = reading.scope, reading.key, copy
        self._shown.pop(place, None)
        self._shown[place] = reading.seen
        if len(self._shown) > _SHOWN:
            self._shown.pop(next(iter(self._shown)))

    def show_part(
        self, reading: MemoryRecord, start: int, end: int, copy: str = "", *, fields: bool = True
    ) -> str:
        """Record that a part was shown, in characters of the body. Return `seen` once the whole text was, without a gap and in
        one revision. `fields`: the first page showed every field whole; `copy`: name of an alternative. Raises ChangedError
        for a part of another text than the one that was begun."""
        place = reading.scope, reading.key, copy
        seen, upto = self._read.pop(place, ("", 0)) if start else (reading.seen if fields else "", 0)
        if start and seen not in ("", reading.seen):
            raise ChangedError(
                f"{place_of(*place[:2])} changed since you began to read it",
                hint="Read it again from start=0.",
            )
        if seen and start <= upto:
            upto = max(upto, end)
        if seen:
            self._read[place] = seen, upto
            if len(self._read) > _SHOWN:
                self._read.pop(next(iter(self._read)))
        if not seen or upto < len(reading.readable.body) or (self._shared and start):
            return ""
        self.show(reading, copy)
        return reading.seen

    def was_shown(self, reading: MemoryRecord, copy: str = "") -> bool:
        """Tell whether exactly this text was shown."""
        return not self._shared and self._shown.get((reading.scope, reading.key, copy)) == reading.seen


class ToolContext:
    """One set of tools over one memory."""

    def __init__(
        self,
        source: Callable[[], Memory],
        scope: str | None,
        session: Session,
        *,
        by_type: bool = False,
    ) -> None:
        """`source` returns the open memory, each time; `scope` None: the scope that the memory was chosen for; `by_type`: the
        type of a new memory decides its scope. Raises KeyNameError, UsageError."""
        self._source = source
        self._scope = check_scope(scope) if scope else scope
        self._by_type = by_type
        self.session = session

    @property
    def memory(self) -> Memory:
        """Return the open memory. Raises errors of opening it, and ConfigError if the settings disable agents."""
        refuse_agents_switched_off()
        return self._source()

    def scope_of(self, args: JSON, *, must_exist: bool = False) -> str:
        """Return the scope of a call. `must_exist`: refuse an unknown named scope, as a typing error would look empty. Raises
        KeyNameError, NotFoundError."""
        memory = self.memory
        usual = self.usual_scope
        scope: str = args.get("scope", usual)
        if scope:
            check_scope(scope)
        if must_exist and scope not in ("", usual) and memory.scopes.get(scope) is None:
            there = ", ".join(memory.scopes.names()[:20]) or "only the default scope"
            raise NotFoundError(f"unknown scope {scope}", hint=f"Scopes: {there}.")
        return scope

    @property
    def usual_scope(self) -> str:
        """Return the scope of calls that name none: the one that the person chose, else the project's, else the memory's own."""
        if self._scope is not None:
            return self._scope
        return self.session.project or self.memory.in_scope

    def found(self, key: str, args: JSON) -> tuple[Memory, MemoryRecord | None]:
        """Return a text to change or delete, and the memory in its scope: the scope that a call names, else the usual one and
        those below it."""
        there = self.there(args)
        reading = there.read(key, counts=False)
        if "scope" in args or (reading is not None and reading.own):
            return there, reading
        shown = self.read(key, args)
        return (there, reading) if shown is None else (self.memory.scope(shown.scope), shown)

    def there(self, args: JSON) -> Memory:
        """Return the memory in the scope of a call."""
        return self.memory.scope(self.scope_of(args))

    def there_by_type(self, args: JSON) -> Memory:
        """Return the same for a new memory: in the scope of its type, unless the call names a scope."""
        if not self._by_type or "scope" in args or "type" not in args:
            return self.there(args)
        return self.memory.scope(scope_of_type(args["type"], self.scope_of(args)))

    def read(self, key: str, args: JSON, *, counts: bool = False) -> MemoryRecord | None:
        """Return the text shown under a key: in the scope of the call, else in the default scope, an own text before a pending
        one. `counts`: record it as a use."""
        memory, scope = self.memory, self.scope_of(args, must_exist=True)
        return first_own(memory.scope(one).read(key, counts=counts) for one in dict.fromkeys((scope, "")))

    def writers(self) -> Writers:
        """Return the names of writers."""
        return Writers(self.memory.replica)

    def quoted(self, reading: MemoryRecord) -> Quoted:
        """Return a text for a fence."""
        return self.writers().quoted(reading)


def fenced(*items: Quoted) -> str:
    """Return texts in their fences, after a notice."""
    return fence(items)


def notice(*items: Quoted) -> str:
    """Return the notice before texts."""
    return NOTICE if all(item.own for item in items) else f"{NOTICE} {CANDIDATE}"


def as_values(item: Quoted) -> dict[str, Any]:
    """Return the structured form of one text, by TEXT_SCHEMA: the same words as in its fence."""
    return {
        "notice": notice(item),
        "key": item.key,
        "scope": item.scope,
        "own": item.own,
        "name": clean_text(item.name),
        "description": clean_text(item.description),
        "type": clean_text(item.type),
        "tags": [clean_text(tag) for tag in item.tags],
        "body": clean_text(item.body),
        "by": clean_text(item.by),
        "member": clean_text(item.member),
        "source": clean_text(item.source),
        "written": item.written,
    }


def one_line(text: str) -> str:
    """Return a text that others can write, cleaned, on one line."""
    return " ".join(clean_text(text).split())


def whose(own: bool) -> str:
    """Return a mark for pending texts."""
    return "" if own else " (by others, pending)"


def place(reading: MemoryRecord) -> str:
    """Return key and scope of a text, in words."""
    return place_of(reading.scope, reading.key)
