"""Compute the view of one key from its siblings (format section 5, "View of one key").

A view is not state: a merge becomes state only through a write, which replaces exactly the dots rendered for its
writer. Functions of the caller return the bodies; a missing body makes the view incomplete, never shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ipfsmem.bundle.keys import conflict_file_name
from ipfsmem.causal.value import FORGOTTEN, Entry, Value, hash32
from ipfsmem.errors import NotFoundError

#: Returns a body by its SHA-256 (64 hex), hash checked; None if not available.
Bodies = Callable[[str], bytes | None]
#: Returns a base by its hash as used in `b` (32 hex); None if not available.
BaseBodies = Callable[[str], bytes | None]
#: Merges two edits of a base; None on conflict.
Merge = Callable[[bytes, bytes, bytes], bytes | None]


class Sibling(msgspec.Struct, frozen=True, gc=False):
    """All dots that hold one body, represented by the greatest (HLC, dot)."""

    body: str
    dots: tuple[str, ...]
    h: str
    #: The body's own hash and the hashes in `b` of its values, newest first, without repeats.
    known: tuple[str, ...]
    #: The body's own hash and the first hash in `b` of each value: the texts whose bytes have a location.
    located: frozenset[str]

    @property
    def order(self) -> tuple[str, str, str]:
        """Return the sort key of siblings: (HLC, device, body)."""
        return (self.h, self.dots[0][:16], self.body)


class ConflictCopy(msgspec.Struct, frozen=True):
    """A sibling shown under `file` instead of the key's own file. A write or delete that read it replaces it."""

    file: str
    body: str
    dots: tuple[str, ...]

    @property
    def dot(self) -> str:
        """The dot that represents the copy."""
        return self.dots[0]


class KeyView(msgspec.Struct, frozen=True):
    """The view of one key.

    `data`: the bytes shown; None if the key is forgotten or gone, or the body is not fetched.
    `body`: SHA-256 of the bytes shown if they are one sibling's text; None for a merge.
    `dot`: the dot whose writer and time are shown.
    `dots`: the dots rendered in `data`; a write or delete after reading it replaces exactly these. For a forgotten key
    the
        forgotten dots, so that they do not hide a new text. Empty when the body is not fetched.
    `conflicts`: the other siblings, greatest first, each with its own file.
    `hidden`: siblings without a file: those hidden by a FORGOTTEN value, and those whose file name, made of
        8 digits of the hash, a greater sibling has.
    `others`: in `own_view`, the pending texts of other people, never in `conflicts` or `hidden`.
    `unheeded`: in `own_view`, the dots of other people's FORGOTTEN values.
    `own`: whether the text shown is the reader's own; True if nothing is shown.
    `not_fetched`: dots whose body is missing, and `missing_base`, a missing base: fetching them may change the view.
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
        """Tell whether all inputs of the view were available. Only complete views are equal on every device."""
        return not self.not_fetched and self.missing_base is None

    def rendered(self, *files: str) -> tuple[str, ...]:
        """Return the dots that a write replaces if its writer was shown this text and the conflict copies `files`.

        Raises NotFoundError for an unknown copy.
        """
        copies = {copy.file: copy for copy in (*self.others, *self.hidden, *self.conflicts)}
        dots = self.dots
        for file in files:
            if file not in copies:
                raise NotFoundError(f"{self.key!r} has no alternative {file!r}")
            dots += copies[file].dots
        return dots


def view_entry(
    key: str, entry: Entry, bodies: Bodies, base_bodies: BaseBodies, merge: Merge | None = None
) -> KeyView:
    """Return the view of one key by rules (1) to (5) of the format. An empty entry is a deleted key. `merge` replaces
    the format's merge."""
    forgotten = [dot for dot, value in entry.items() if value.kind == FORGOTTEN]
    if forgotten:
        dots = tuple(sorted(forgotten, key=lambda dot: _dot_order(dot, entry[dot]), reverse=True))
        return KeyView(key, forgotten=True, dot=dots[0], dots=dots, hidden=copies_of(key, entry))
    candidates = siblings(entry)
    if not candidates:
        return KeyView(key)
    winner = candidates[0]
    data = bodies(winner.body)
    if len(candidates) == 1:
        return _view_of_one_text(key, winner.body, winner.dots, data)
    return _view_of_several(key, candidates, data, bodies, base_bodies, merge)


def own_view(
    key: str,
    entry: Entry,
    own: Callable[[str, str], bool],
    bodies: Bodies,
    base_bodies: BaseBodies,
    merge: Merge | None = None,
) -> KeyView:
    """Return the view of the reader's own texts only, for folders, context and the agents' index (section 5.2).

    `own(dot, author)` tells whether a value is the reader's own. Other people's texts are in `others`. A write after
    this view replaces the reader's dots and the other dots with the same bodies.
    """
    mine = {dot: value for dot, value in entry.items() if own(dot, value.author)}
    if len(mine) == len(entry):
        return view_entry(key, entry, bodies, base_bodies, merge)
    shown = view_entry(key, mine, bodies, base_bodies, merge)
    same: dict[str, tuple[str, ...]] = {}
    foreign: Entry = {}
    unheeded: list[str] = []
    own_bodies = {value.body for value in mine.values()}
    for dot, value in entry.items():
        if dot in mine:
            continue
        if value.body is None:
            unheeded.append(dot)
        elif value.body in own_bodies:
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
    """Return every text of an entry as a conflict copy, greatest first."""
    return tuple(ConflictCopy(_file(key, s), s.body, s.dots) for s in siblings(entry))


def siblings(entry: Entry) -> list[Sibling]:
    """Return the live texts of an entry, equal bodies as one, in view order: greatest (HLC, device, body) first."""
    if len(entry) == 1:
        ((dot, value),) = entry.items()
        return [_sibling([(dot, value)])] if value.body is not None else []
    by_body: dict[str, list[tuple[str, Value]]] = {}
    for dot, value in entry.items():
        if value.body is not None:
            by_body.setdefault(value.body, []).append((dot, value))
    return sorted(map(_sibling, by_body.values()), key=lambda s: s.order, reverse=True)


def merge_base(candidates: list[Sibling]) -> str | None:
    """Return the merge base of these siblings (in view order), or None.

    Candidates are the hashes that all siblings know and that are the hash, or the first hash in `b`, of one of them.
    The base is the candidate that comes first in the list of the greatest sibling.
    """
    shared = set(candidates[0].known).intersection(*(s.known for s in candidates[1:]))
    located = frozenset[str]().union(*(s.located for s in candidates))
    return next((known for known in candidates[0].known if known in shared and known in located), None)


def in_view_order(entry: Entry, dots: Iterable[str]) -> list[Value]:
    """Return the values of those `dots` that the entry has, in view order, as `next_bases` expects."""
    wanted = {dot: entry[dot] for dot in dots if dot in entry}
    if len(wanted) <= 1:
        return list(wanted.values())
    live = [wanted[dot] for sibling in siblings(wanted) for dot in sibling.dots]
    return live + [value for value in wanted.values() if value.body is None]


def view_of_one(key: str, dot: str, value: Value, data: bytes | None) -> KeyView:
    """Return the view of an entry with one LIVE value, whose body `data` is given."""
    return _view_of_one_text(key, value.body or "", (dot,), data)


def _view_of_one_text(key: str, body: str, dots: tuple[str, ...], data: bytes | None) -> KeyView:
    if data is None:
        return KeyView(key, body=body, dot=dots[0], not_fetched=dots)
    return KeyView(key, data, body, dots[0], dots)


def _view_of_several(
    key: str,
    candidates: list[Sibling],
    data: bytes | None,
    bodies: Bodies,
    base_bodies: BaseBodies,
    merge: Merge | None,
) -> KeyView:
    winner, texts = candidates[0], {}
    for sibling in candidates:
        texts[sibling.body] = data if sibling is winner else bodies(sibling.body)
    not_fetched = tuple(dot for s in candidates if texts[s.body] is None for dot in s.dots)
    missing_base = None
    base = merge_base(candidates)
    if base is not None and not not_fetched:
        start = _base_text(base, candidates, texts, base_bodies)
        if start is None:
            missing_base = base
        else:
            live = [text for s in reversed(candidates) if (text := texts[s.body]) is not None]
            merged = _fold(start, live, merge)
            if merged is not None:
                dots = tuple(dot for s in candidates for dot in s.dots)
                return KeyView(key, merged, None, winner.dots[0], dots, merged=True)
    conflicts: list[ConflictCopy] = []
    hidden: list[ConflictCopy] = []
    files: set[str] = set()
    for sibling in candidates[1:]:
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
    base: str, candidates: list[Sibling], texts: dict[str, bytes | None], base_bodies: BaseBodies
) -> bytes | None:
    for sibling in candidates:
        if hash32(sibling.body) == base:
            return texts[sibling.body]
    return base_bodies(base)


def _fold(base: bytes, texts: list[bytes], merge: Merge | None) -> bytes | None:
    from ipfsmem.causal.merge3 import merge_memory  # imported late: concurrent texts are rare

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
    if len(values) == 1:
        return Sibling(
            body,
            (values[0][0],),
            first.h,
            tuple(dict.fromkeys([own, *first.b])),
            frozenset([own, *first.b[:1]]),
        )
    known = tuple(dict.fromkeys([own, *(b for _, value in values for b in value.b)]))
    located = frozenset([own, *(value.b[0] for _, value in values if value.b)])
    return Sibling(body, tuple(dot for dot, _ in values), first.h, known, located)


def _dot_order(dot: str, value: Value) -> tuple[str, str, int]:
    return (value.h, dot[:16], int(dot[17:]))


def _file(key: str, sibling: Sibling) -> str:
    return conflict_file_name(key, sibling.body)
