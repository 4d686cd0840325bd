"""Admit mailbox entries: a full device writes their ops under its own dots (format section 5.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile, parse_memory, render_memory
from ipfsmem.bundle.session_parts import PART_PREFIX, is_part, session_token
from ipfsmem.causal.authorship import IsMine, author_of_copy, is_own
from ipfsmem.causal.clock import MAX_AHEAD_MS, ZERO, hlc_ms
from ipfsmem.causal.entries import MemoryName, card_entry, memory_entry, parse_entry
from ipfsmem.causal.mailbox_entry import (
    EVENT,
    LINES,
    MAX_PART,
    MailboxOp,
    PlacedOp,
    StoredEntry,
    line_numbers,
    op_mark,
    ops_of,
)
from ipfsmem.causal.mailbox_markers import (
    FOREVER,
    FULL_TOKENS,
    MAILBOX,
    MAX_OP_AGE_MS,
    WEEK_MS,
    MarkerName,
    Marks,
    entry_token,
    marker_text,
    marker_value,
    op_token,
    tokens_of,
)
from ipfsmem.causal.state import State, write
from ipfsmem.causal.value import FORGOTTEN, LIVE, MAX_DOTS, Entry, Value
from ipfsmem.causal.value import dot as make_dot
from ipfsmem.causal.view import Bodies
from ipfsmem.errors import FormatError, UsageError

#: Roles of an agent key.
WRITER: Final = "writer"
APPEND: Final = "append"
#: Scopes that agents cannot write to: they hold agents' rights, mounts, providers and the markers.
PROTECTED: Final = frozenset({"agents", MAILBOX, "mounts", "places"})


class AgentRights(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's rights to write. `scopes`: None allows all scopes; "" is the default scope. `until_ms`: when the
    agent's key expires, in milliseconds since 1970; None for never."""

    role: str
    scopes: frozenset[str] | None = None
    until_ms: int | None = None


class Waiting(msgspec.Struct, frozen=True):
    """An op that is not admitted until a person accepts it, and the reason. Readers do not show it."""

    op: PlacedOp
    reason: str


class AdmittedEvent(msgspec.Struct, frozen=True):
    """An event to append to the timeline of a scope. Events with equal id and line are the same event."""

    scope: str
    line: bytes


class AdmittedOps(msgspec.Struct, frozen=True):
    """The state after an admission. `changed`: names of the changed entries. `texts`: their new bodies by SHA-256.

    New values are unsigned and have no location. The caller stores state, texts and events in one transaction.
    """

    state: State
    changed: tuple[str, ...] = ()
    texts: dict[str, bytes] = {}
    events: tuple[AdmittedEvent, ...] = ()
    waiting: tuple[Waiting, ...] = ()


class Admitting(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of an admission, in addition to state and entries.

    `dev`: the device that writes. `now_ms`: its time, in milliseconds since 1970. `mine`: tells whether an id is a
    device or agent of the device's person; ops of other agents are admitted by the devices of their person. `rights`:
    the rights of each agent that is currently a member. `bodies`: returns the texts of the state. `accepted`,
    `discarded`: marks of waiting ops that a person accepted or discarded; an op that writes to a protected scope
    cannot be accepted.
    """

    dev: str
    now_ms: int
    mine: IsMine
    rights: Mapping[str, AgentRights]
    bodies: Bodies
    accepted: frozenset[str] = frozenset()
    discarded: frozenset[str] = frozenset()


class PendingOps(NamedTuple):
    """Ops that no marker names: `ready` are admitted in this order, `waiting` need a person's decision."""

    ready: list[PlacedOp]
    waiting: list[Waiting]


def pending_ops(
    entries: Iterable[StoredEntry],
    marks: Marks,
    rights: Mapping[str, AgentRights],
    now_ms: int,
    mine: IsMine,
    forgotten: frozenset[str] = frozenset(),
) -> PendingOps:
    """Return the ops of the person's agents that no marker names, each once, in the order of admission.

    `forgotten`: the forgotten scopes.
    """
    found: dict[str, PlacedOp] = {}
    for stored in entries:
        if not mine(stored.entry.agent):
            continue
        for placed in ops_of(stored):
            mark = placed.mark
            done = marks.has_entry(placed.agent, placed.start, placed.place.sha)
            if not done and op_token(mark) not in marks.tokens:
                found.setdefault(mark, placed)
    ready: list[PlacedOp] = []
    waiting: list[Waiting] = []
    for placed in sorted(found.values(), key=lambda each: each.order):
        reason = _refusal(placed, rights.get(placed.agent), now_ms, forgotten)
        if reason is None:
            ready.append(placed)
        else:
            waiting.append(Waiting(placed, reason))
    return PendingOps(ready, waiting)


def _refusal(
    placed: PlacedOp, rights: AgentRights | None, now_ms: int, forgotten: frozenset[str]
) -> str | None:
    op = placed.op
    if rights is None:
        return "its agent key is not a member"
    if rights.until_ms is not None and now_ms >= rights.until_ms:
        return "its agent key has expired"
    if rights.role not in (WRITER, APPEND):
        return "its agent key may not write"
    if rights.role == APPEND and (op.dots or op.sees or op.kind == FORGOTTEN):
        return "its agent key may only add"
    if op.scope in PROTECTED:
        return "no agent writes to this scope"
    if rights.scopes is not None and op.scope not in rights.scopes:
        return "its agent key may not write to this scope"
    if op.scope in forgotten:
        return "the scope is forgotten"
    if hlc_ms(op.h) < now_ms - MAX_OP_AGE_MS:
        return "it is older than 90 days"
    return None


def forgotten_scopes(entries: Mapping[str, Entry], ops: Iterable[MailboxOp]) -> frozenset[str]:
    """Return the scopes of these ops whose card is forgotten."""
    scopes = {op.scope for op in ops} - {""}
    return frozenset(
        scope
        for scope in scopes
        if any(value.kind == FORGOTTEN for value in entries.get(card_entry(scope), {}).values())
    )


def admit(state: State, entries: Iterable[StoredEntry], marks: Marks, by: Admitting) -> AdmittedOps:
    """Write all ops that no marker names under dots of `by.dev`, and write their markers.

    `state`: the join of all heads, or the part of the join with the entries that ops and markers name. The order of
    `entries` does not change the result, and admission is idempotent. Raises UsageError if a marker could not be
    read.
    """
    if marks.missing:
        raise UsageError(
            f"the marker {marks.missing[0][0]} is not fetched: nothing can be admitted before it is"
        )
    found = sorted((each for each in entries if by.mine(each.entry.agent)), key=lambda each: each.sha)
    gone = forgotten_scopes(state.entries, (op for each in found for op in each.entry.ops))
    pending = pending_ops(found, marks, by.rights, by.now_ms, by.mine, gone)
    work = _Admission(state, by, marks)
    accepted = {
        each.op.mark
        for each in pending.waiting
        if each.op.mark in by.accepted and each.op.op.scope not in PROTECTED
    }
    ready = [*pending.ready, *(each.op for each in pending.waiting if each.op.mark in accepted)]
    for placed in sorted(ready, key=lambda each: each.order):
        if op_token(placed.mark) not in work.tokens and placed.mark not in by.discarded:
            work.admit(placed)
    work.merge_lines()
    every = (*pending.ready, *(each.op for each in pending.waiting))
    work.discard(each for each in every if each.mark in by.discarded)
    decided = accepted | by.discarded
    work.write_markers(found)
    return AdmittedOps(
        State(work.ctx, work.entries),
        tuple(sorted(work.changed)),
        work.texts,
        tuple(work.events),
        (*(each for each in pending.waiting if each.op.mark not in decided), *work.waiting),
    )


def replaced_dots(entry: Entry, op: MailboxOp) -> set[str]:
    """Return the dots of `entry` that an op removes: those that the op's writer was shown, and the dots under which
    the ops that it was shown have been admitted since. A value with a later clock than the op was not shown to its
    writer."""
    if not (op.dots or op.sees):
        return set()
    seen = {(h, each.body or None) for each in op.sees for h in (each.h, without_time(each.h))}
    return {
        dot
        for dot, value in entry.items()
        if value.h <= op.h and (dot in op.dots or (value.h, value.body) in seen)
    }


def superseded_marks(placed: PlacedOp) -> list[str]:
    """Return the marks of the ops that this op replaces, whether or not those have arrived."""
    return [op_mark(each.agent, placed.op.e, each.id) for each in placed.op.sees]


def is_admitted(entry: Entry, op: MailboxOp, body: str | None) -> bool:
    """Tell whether a device already admitted this op. Equal text is not enough, since an old text can be written
    again."""
    clocks = (op.h, without_time(op.h))
    return any(v.kind == op.kind and v.body == body and v.h in clocks for v in entry.values())


def without_time(h: str) -> str:
    """Return the clock value with zero time and the same counter: used for an op whose clock is too far ahead."""
    return ZERO[:12] + h[12:]


def is_ahead(h: str, now_ms: int) -> bool:
    """Tell whether a clock value is more than MAX_AHEAD_MS ahead of `now_ms`."""
    return hlc_ms(h) > now_ms + MAX_AHEAD_MS


class _Admission:
    """The working state of one admission."""

    def __init__(self, state: State, by: Admitting, marks: Marks) -> None:
        self.by = by
        self.ctx = dict(state.ctx)
        self.entries = dict(state.entries)
        self.tokens = set(marks.tokens)
        self.forever: set[str] = set()
        self.new: set[str] = set()
        self.changed: set[str] = set()
        self.texts: dict[str, bytes] = {}
        self.events: list[AdmittedEvent] = []
        self.waiting: list[Waiting] = []
        self.parts: dict[tuple[str, str], list[PlacedOp]] = {}

    def admit(self, placed: PlacedOp) -> None:
        op = placed.op
        if op.kind == EVENT:
            self.events.append(AdmittedEvent(op.scope, (op.text or "").encode()))
        elif op.kind == LINES:
            self.parts.setdefault((op.e, self._author(placed)), []).append(placed)
            return
        elif not self._admit_memory(placed):
            self.waiting.append(Waiting(placed, "the device has no free dot for it"))
            return
        self._mark_done(placed)

    def _mark_done(self, placed: PlacedOp) -> None:
        op = placed.op
        ahead = is_ahead(max([op.h, *(each.h for each in op.sees)]), self.by.now_ms)
        for mark in [placed.mark, *superseded_marks(placed)]:
            self._mark(op_token(mark), ahead)

    def discard(self, ops: Iterable[PlacedOp]) -> None:
        """Mark ops that a person discards."""
        for placed in ops:
            self._mark(op_token(placed.mark), is_ahead(placed.op.h, self.by.now_ms))

    def _mark(self, token: str, forever: bool) -> None:
        if token not in self.tokens:
            self.tokens.add(token)
            self.new.add(token)
            if forever:
                self.forever.add(token)

    def _admit_memory(self, placed: PlacedOp) -> bool:
        op = placed.op
        entry = self.entries.get(op.e, {})
        gone = replaced_dots(entry, op)
        rest = {dot: value for dot, value in entry.items() if dot not in gone}
        h = without_time(op.h) if is_ahead(op.h, self.by.now_ms) else op.h
        body = op.body
        if is_admitted(rest, op, body):
            if gone:
                self._set_entry(op.e, rest)
            return True
        value = Value(b=op.b, body=body, h=h, kind=op.kind)
        value = msgspec.structs.replace(value, author=self._author(placed))
        if self._has_room(entry, rest, op.kind):
            self._write(op.e, gone, value)
            if body is not None and op.text is not None:
                self.texts[body] = op.text.encode()
            return True
        if body is None or op.text is None:
            return False
        return self._write_under_derived_key(op, body, value)

    def _write_under_derived_key(self, op: MailboxOp, body: str, value: Value) -> bool:
        """Write a text under a key derived from its hash, since the device has no free dot under the op's key.

        Returns False if there is no free dot under the derived key either.
        """
        name = parse_entry(op.e)
        if not isinstance(name, MemoryName):
            return False
        there = memory_entry(f"{name.key[:40]}-{body[:16]}", name.scope)
        entry = self.entries.get(there, {})
        if any(held.body == body for held in entry.values()):
            return True
        if self._count_own(entry) >= MAX_DOTS:
            return False
        self._write(there, (), msgspec.structs.replace(value, b=(), h=ZERO))
        self.texts[body] = (op.text or "").encode()
        return True

    def _has_room(self, entry: Entry, rest: Entry, kind: str) -> bool:
        """Tell whether the device may add a value to `rest`; a text must leave one dot free for the device's person."""
        before, after = self._count_own(entry), self._count_own(rest) + 1
        return after <= max(MAX_DOTS - (kind == LIVE), before)

    def _count_own(self, entry: Entry) -> int:
        return sum(dot[:16] == self.by.dev for dot in entry)

    def _author(self, placed: PlacedOp) -> str:
        if placed.op.kind == FORGOTTEN:
            return ""
        as_theirs = Value(b=(), body="", h=ZERO, kind=LIVE, author=placed.op.author)
        return author_of_copy(make_dot(placed.agent, 1), as_theirs, self.by.mine)

    def merge_lines(self) -> None:
        """Merge the lines of ops into the parts that they name; a line whose numbers are already used goes to a
        separate part."""
        for (e, author), ops in self.parts.items():
            name = parse_entry(e)
            if not isinstance(name, MemoryName):
                continue
            stem, _, number = name.key.rpartition("-")
            new = [_NewLine(each, line) for each in ops for line in _lines_in(_parse_part(each))]
            moved, unfit = self._put_lines(name.scope, stem, int(number), new, author)
            for each in ops:
                if own := [line for line in moved if line.op is each]:
                    token = session_token(_parse_part(each).session)
                    there = f"{PART_PREFIX}{token}-{each.mark[:16]}"
                    unfit += self._put_lines(name.scope, there, 0, own, author)[1]
            waits = {line.op.mark for line in unfit}
            for each in ops:
                if each.mark in waits:
                    self.waiting.append(Waiting(each, "one of its lines does not fit into a part"))
                else:
                    self._mark_done(each)

    def _put_lines(
        self, scope: str, stem: str, i: int, new: list[_NewLine], author: str
    ) -> tuple[list[_NewLine], list[_NewLine]]:
        """Write lines into part `i` and the following parts.

        Returns the lines whose numbers another line already has, and the lines that fit into no part.
        """
        moved: list[_NewLine] = []
        while new:
            name = memory_entry(f"{stem}-{i}", scope)
            entry = self.entries.get(name, {})
            until = max(
                (
                    hlc_ms(value.h)
                    for dot, value in entry.items()
                    if value.kind == FORGOTTEN and is_own(dot, value.author, self.by.mine)
                ),
                default=-1,
            )
            held, files = self._parts_of_author(name, entry, author)
            there = {line for file in files for line in _lines_in(file)}
            numbers = {_numbers(line) for line in there} - {None}
            kept = {line for line in there if line_numbers(line).at > until}
            header = files[0] if files else _parse_part(new[0].op)
            size = len(render_memory(header.with_fields({}, "x"))) - 1 + sum(len(line) + 1 for line in kept)
            rest = {dot: value for dot, value in entry.items() if dot not in held}
            room = self._has_room(entry, rest, LIVE)
            clocks = [entry[dot].h for dot in held]
            added: set[bytes] = set()
            left: list[_NewLine] = []
            for each in new:
                line = each.line
                if line in there or line in added or line_numbers(line).at <= until:
                    continue
                if _numbers(line) in numbers:
                    moved.append(each)
                elif left or not room or size + len(line) > MAX_PART:
                    left.append(each)
                else:
                    numbers.add(_numbers(line))
                    added.add(line)
                    size += len(line) + 1
                    h = each.op.op.h
                    clocks.append(without_time(h) if is_ahead(h, self.by.now_ms) else h)
            if added:
                text = render_memory(header.with_fields({}, _join_lines(kept | added)))
                body = sha256(text).hexdigest()
                self._write(name, held, Value(b=(), body=body, h=max(clocks), kind=LIVE, author=author))
                self.texts[body] = text
            elif left and not entry:
                return moved, left
            new = left
            i += 1
        return moved, []

    def _parts_of_author(self, name: str, entry: Entry, author: str) -> tuple[list[str], list[MemoryFile]]:
        """Return the dots of an entry that hold session parts of this author, and the parsed parts."""
        dots: list[str] = []
        files: list[MemoryFile] = []
        key = name.rpartition("/")[2]
        for dot, value in sorted(entry.items()):
            if value.body is None or author_of_copy(dot, value, self.by.mine) != author:
                continue
            data = self.texts.get(value.body) or self.by.bodies(value.body)
            try:
                file = parse_memory(data or b"")
            except FormatError:
                continue
            if is_part(key, file) and all(_numbers(line) != UNREADABLE for line in _lines_in(file)):
                dots.append(dot)
                files.append(file)
        return dots, files

    def _write(self, name: str, replaces: Iterable[str], value: Value) -> None:
        n = self.ctx.get(self.by.dev, 0) + 1
        self._set_entry(name, write(self.entries.get(name, {}), replaces, make_dot(self.by.dev, n), value))
        self.ctx[self.by.dev] = n

    def _set_entry(self, name: str, entry: Entry) -> None:
        self.changed.add(name)
        if entry:
            self.entries[name] = entry
        else:
            self.entries.pop(name, None)

    def write_markers(self, entries: Iterable[StoredEntry]) -> None:
        """Write the markers. If all new ops of an entry are marked, the entry's token replaces the tokens of its ops."""
        for stored in entries:
            done = entry_token(stored.entry.agent, stored.entry.start, stored.sha)
            ops = [op_token(placed.mark) for placed in ops_of(stored) if placed.op.first is None]
            if done not in self.tokens and self.tokens.issuperset(ops):
                self._mark(done, not self.forever.isdisjoint(ops))
                self.new.difference_update(ops)
        self._put_marker(self.by.now_ms // WEEK_MS, self.new - self.forever)
        self._put_marker(FOREVER, self.new & self.forever)

    def _put_marker(self, week: int, tokens: set[str]) -> None:
        left, i = sorted(tokens), 0
        while left:
            name = MarkerName(self.by.dev, week, i).entry
            i += 1
            entry = self.entries.get(name, {})
            held = {dot: data for dot, value in entry.items() if (data := self._text(value)) is not None}
            known = set().union(*map(tokens_of, held.values()))
            space = max(0, FULL_TOKENS - len(known))
            rest = {dot: value for dot, value in entry.items() if dot not in held}
            if not space or not self._has_room(entry, rest, LIVE):
                continue
            text = marker_text(known.union(left[:space]))
            left = left[space:]
            body = sha256(text).hexdigest()
            self._write(name, held, marker_value(body))
            self.texts[body] = text

    def _text(self, value: Value) -> bytes | None:
        return None if value.body is None else self.texts.get(value.body) or self.by.bodies(value.body)


class _NewLine(NamedTuple):
    """A line of a session, with the op that adds the line."""

    op: PlacedOp
    line: bytes


def _parse_part(placed: PlacedOp) -> MemoryFile:
    return parse_memory((placed.op.text or "").encode())


#: Stands for the numbers of a line that violates section 5.1; a part with such a line is not changed.
UNREADABLE: Final = (-1, -1, -1)


def _lines_in(file: MemoryFile) -> list[bytes]:
    return [line for line in file.body.encode().split(b"\n") if line]


def _numbers(line: bytes) -> tuple[int, int, int] | None:
    """Return the numbers that identify an item or piece; None for a line that removes an item."""
    try:
        numbers = line_numbers(line)
    except (msgspec.DecodeError, RecursionError, FormatError):
        return UNREADABLE
    if numbers.gone is not None:
        return None
    return (numbers.at, numbers.n, numbers.piece[0] if numbers.piece else -1)


def _join_lines(lines: Iterable[bytes]) -> str:
    ordered = sorted(lines, key=lambda line: (line_numbers(line).at, line_numbers(line).n, line))
    return b"\n".join(ordered).decode()
