"""What a reader is shown under one key: a pure function of the set of siblings (format section 5, "View of one key").

The view is never state: a merge becomes state only when somebody writes, and that write replaces the dots that were
rendered in what its writer was given, no others. Bodies come through functions; a body that is not at hand makes the view
incomplete, never shorter. Nothing here fetches, opens or writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ipfsmem.bundle.keys import conflict_file_name
from ipfsmem.causal.value import FORGOTTEN, Entry, Value, hash32
from ipfsmem.errors import NotFoundError

#: The plain bytes of a body by its SHA-256 (64 hex), None when not at hand. Whoever answers has checked the hash.
Bodies = Callable[[str], bytes | None]
#: The plain bytes of a base by its hash as it stands in `b` (32 hex), None when not at hand.
BaseBodies = Callable[[str], bytes | None]
#: Merges two edits of a base; None when that is not clean. Of a view it is that of the format.
Merge = Callable[[bytes, bytes, bytes], bytes | None]


class Sibling(msgspec.Struct, frozen=True, gc=False):
    """All dots that hold one and the same body; the first, the greatest (HLC, dot), represents them."""

    body: str
    dots: tuple[str, ...]
    h: str
    #: Own hash and the lists `b` of its values, newest first, without repeats.
    known: tuple[str, ...]
    #: Own hash and the first of each value's `b`: the versions whose bytes are in the tree.
    located: frozenset[str]

    @property
    def order(self) -> tuple[str, str, str]:
        """What siblings are folded by, ascending: (HLC, device, body)."""
        return (self.h, self.dots[0][:16], self.body)


class ConflictCopy(msgspec.Struct, frozen=True):
    """A sibling that is not shown under the key's own file name but under `file`. A write or delete that read it replaces it."""

    file: str
    body: str
    dots: tuple[str, ...]

    @property
    def dot(self) -> str:
        """The dot that represents it."""
        return self.dots[0]


class KeyView(msgspec.Struct, frozen=True):
    """What stands under one key.

    `data`: the bytes shown; None when the key is forgotten or gone, or the body is not fetched.
    `body`: SHA-256 of what is shown when it is one sibling's text; None for a merge.
    `dot`: represents the view: its writer and time are shown.
    `dots`: rendered in `data`: a write or delete after reading it replaces exactly these. For a forgotten key the
        forgotten dots, so that a new text is not hidden by them. Empty when the body is not fetched.
    `conflicts`: the other siblings, greatest first, each with a file of its own.
    `hidden`: siblings without a file, listed only: those behind a forgotten value, and those whose file name, made of
        8 digits of the hash, a greater sibling has.
    `others`: in an own view the texts of others that are not promoted; none of them stands in `conflicts` or `hidden`.
    `unheeded`: in an own view the dots of others' wishes to forget.
    `own`: whether what is shown is the reader's own word; also true when nothing is.
    `not_fetched`: dots whose body is not at hand, and `missing_base`, a base that is not: the view may change when they are.
    """

    key: str
    data: bytes | None = None
    body: str | None = None
    dot: str | None = None
    dots: tuple[str, ...] = ()
    merged: bool = False
    forgotten: bool = False
    conflicts: tuple[ConflictCopy, ...] = ()
    hidden: tuple[ConflictCopy, ...] = ()
    others: tuple[ConflictCopy, ...] = ()
    unheeded: tuple[str, ...] = ()
    own: bool = True
    not_fetched: tuple[str, ...] = ()
    missing_base: str | None = None

    @property
    def complete(self) -> bool:
        """Whether everything that decides the view was at hand; only then is it the same on every device."""
        return not self.not_fetched and self.missing_base is None

    def rendered(self, *files: str) -> tuple[str, ...]:
        """The dots that a write replaces whose writer was given this text and the copies `files` too.

        Raises NotFoundError for a copy that is not listed here.
        """
        copies = {copy.file: copy for copy in (*self.others, *self.hidden, *self.conflicts)}
        dots = self.dots
        for file in files:
            if file not in copies:
                raise NotFoundError(f"{self.key!r} has no conflict copy {file!r}")
            dots += copies[file].dots
        return dots


def view_entry(
    key: str, entry: Entry, bodies: Bodies, base_bodies: BaseBodies, merge: Merge | None = None
) -> KeyView:
    """The view of one key by the rules (1) to (5) of the format. An empty entry is a key that is gone. `merge`: what it would be
    with another merge than that of the format."""
    forgotten = [dot for dot, value in entry.items() if value.kind == FORGOTTEN]
    if forgotten:
        dots = tuple(sorted(forgotten, key=lambda dot: _dot_order(dot, entry[dot]), reverse=True))
        return KeyView(key, forgotten=True, dot=dots[0], dots=dots, hidden=copies_of(key, entry))
    found = siblings(entry)
    if not found:
        return KeyView(key)
    winner = found[0]
    data = bodies(winner.body)
    if len(found) == 1:
        return _one(key, winner, data)
    return _several(key, found, data, bodies, base_bodies, merge)


def own_view(
    key: str,
    entry: Entry,
    own: Callable[[str, str], bool],
    bodies: Bodies,
    base_bodies: BaseBodies,
    merge: Merge | None = None,
) -> KeyView:
    """What a folder, a context block and the agents' index show: the view of the reader's own texts alone (section 5.2).

    `own(dot, of)` tells whether a value is the reader's own.

    Texts of others that are not also own are in `others`. Where nothing is own nothing is shown. A write that was given
    this replaces, beside the own dots, those of others that hold the very same bodies: of equal bodies own wins.
    """
    mine = {dot: value for dot, value in entry.items() if own(dot, value.of)}
    if len(mine) == len(entry):
        return view_entry(key, entry, bodies, base_bodies, merge)
    shown = view_entry(key, mine, bodies, base_bodies, merge)
    same: dict[str, tuple[str, ...]] = {}
    foreign: Entry = {}
    unheeded: list[str] = []
    held = {value.body for value in mine.values()}
    for dot, value in entry.items():
        if dot in mine:
            continue
        if value.body is None:
            unheeded.append(dot)
        elif value.body in held:
            same[value.body] = (*same.get(value.body, ()), dot)
        else:
            foreign[dot] = value

    def also(dots: tuple[str, ...]) -> tuple[str, ...]:
        rendered = dict.fromkeys(entry[dot].body for dot in dots if dot in entry)
        return dots + tuple(dot for body in rendered for dot in same.get(body or "", ()))

    def copies(listed: tuple[ConflictCopy, ...]) -> tuple[ConflictCopy, ...]:
        return tuple(msgspec.structs.replace(copy, dots=also(copy.dots)) for copy in listed)

    return msgspec.structs.replace(
        shown,
        dots=also(shown.dots),
        conflicts=copies(shown.conflicts),
        hidden=copies(shown.hidden),
        others=copies_of(key, foreign),
        unheeded=tuple(sorted(unheeded, key=lambda dot: _dot_order(dot, entry[dot]), reverse=True)),
    )


def copies_of(key: str, entry: Entry) -> tuple[ConflictCopy, ...]:
    """Every text of an entry under the name of a copy, greatest first."""
    return tuple(ConflictCopy(_file(key, s), s.body, s.dots) for s in siblings(entry))


def siblings(entry: Entry) -> list[Sibling]:
    """The live texts of an entry, equal bodies as one, in view order: the greatest (HLC, device, body) first."""
    if len(entry) == 1:
        ((dot, value),) = entry.items()
        return [_sibling([(dot, value)])] if value.body is not None else []
    by_body: dict[str, list[tuple[str, Value]]] = {}
    for dot, value in entry.items():
        if value.body is not None:
            by_body.setdefault(value.body, []).append((dot, value))
    return sorted(map(_sibling, by_body.values()), key=lambda s: s.order, reverse=True)


def merge_base(found: list[Sibling]) -> str | None:
    """The base of a merge of these siblings (in view order): of the hashes that all of them know, and that some sibling
    is or has as the first of its `b`, the earliest in the winner's list. None when there is none.
    """
    shared = set(found[0].known).intersection(*(s.known for s in found[1:]))
    located = frozenset[str]().union(*(s.located for s in found))
    return next((known for known in found[0].known if known in shared and known in located), None)


def in_view_order(entry: Entry, dots: Iterable[str]) -> list[Value]:
    """The values of these dots that the entry holds, in view order: what next_bases of a write is given."""
    wanted = {dot: entry[dot] for dot in dots if dot in entry}
    live = [wanted[dot] for sibling in siblings(wanted) for dot in sibling.dots]
    return live + [value for value in wanted.values() if value.body is None]


def _one(key: str, only: Sibling, data: bytes | None) -> KeyView:
    if data is None:
        return KeyView(key, body=only.body, dot=only.dots[0], not_fetched=only.dots)
    return KeyView(key, data, only.body, only.dots[0], only.dots)


def _several(
    key: str,
    found: list[Sibling],
    data: bytes | None,
    bodies: Bodies,
    base_bodies: BaseBodies,
    merge: Merge | None,
) -> KeyView:
    winner, texts = found[0], {}
    for sibling in found:
        texts[sibling.body] = data if sibling is winner else bodies(sibling.body)
    not_fetched = tuple(dot for s in found if texts[s.body] is None for dot in s.dots)
    missing_base = None
    base = merge_base(found)
    if base is not None and not not_fetched:
        start = _base_text(base, found, texts, base_bodies)
        if start is None:
            missing_base = base
        else:
            live = [text for s in reversed(found) if (text := texts[s.body]) is not None]
            merged = _fold(start, live, merge)
            if merged is not None:
                dots = tuple(dot for s in found for dot in s.dots)
                return KeyView(key, merged, None, winner.dots[0], dots, merged=True)
    conflicts: list[ConflictCopy] = []
    hidden: list[ConflictCopy] = []
    files: set[str] = set()
    for sibling in found[1:]:
        file = _file(key, sibling)
        (hidden if file in files else conflicts).append(ConflictCopy(file, sibling.body, sibling.dots))
        files.add(file)
    return KeyView(
        key,
        data,
        winner.body,
        winner.dots[0],
        winner.dots if data is not None else (),
        conflicts=tuple(conflicts),
        hidden=tuple(hidden),
        not_fetched=not_fetched,
        missing_base=missing_base,
    )


def _base_text(
    base: str, found: list[Sibling], texts: dict[str, bytes | None], base_bodies: BaseBodies
) -> bytes | None:
    for sibling in found:
        if hash32(sibling.body) == base:
            return texts[sibling.body]
    return base_bodies(base)


def _fold(base: bytes, texts: list[bytes], merge: Merge | None) -> bytes | None:
    from ipfsmem.causal.merge3 import merge_memory  # texts that were written at the same time are rare

    merge = merge or merge_memory
    merged: bytes | None = texts[0]
    for text in texts[1:]:
        if merged is None:
            return None
        merged = merge(base, merged, text)
    return merged


def _sibling(values: list[tuple[str, Value]]) -> Sibling:
    if len(values) > 1:
        values.sort(key=lambda item: _dot_order(*item), reverse=True)
    first = values[0][1]
    body = first.body or ""
    own = hash32(body)
    known = tuple(dict.fromkeys([own, *(b for _, value in values for b in value.b)]))
    located = frozenset([own, *(value.b[0] for _, value in values if value.b)])
    return Sibling(body, tuple(dot for dot, _ in values), first.h, known, located)


def _dot_order(dot: str, value: Value) -> tuple[str, str, int]:
    return (value.h, dot[:16], int(dot[17:]))


def _file(key: str, sibling: Sibling) -> str:
    return conflict_file_name(key, sibling.body)
