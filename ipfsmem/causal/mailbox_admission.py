"""Admit mailbox entries: a full device writes their ops under its own dots (format section 5.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

from ipfsmem.bundle.session_parts import PART_PREFIX, is_part_key
from ipfsmem.causal.authorship import IsMine, author_of_copy, author_of_replacement, is_own
from ipfsmem.causal.clock import MAX_AHEAD_MS, ZERO, hlc_ms
from ipfsmem.causal.entries import card_entry, memory_entry, memory_name
from ipfsmem.causal.mailbox_entry import EVENT, AgentOp, StoredEntry, op_mark, ops_of
from ipfsmem.causal.mailbox_markers import (
    MAILBOX,
    MAX_OP_AGE_MS,
    WEEK_MS,
    Marks,
    entry_token,
    marker_writes,
)
from ipfsmem.causal.value import FORGOTTEN, LIVE, MAX_DOTS, Entry, Loc, Value, hash32
from ipfsmem.causal.value import dot as make_dot
from ipfsmem.errors import IpfsmemError, UsageError

#: Roles of an agent key.
WRITER: Final = "writer"
APPEND: Final = "append"
#: Scopes that agents cannot write to: they hold agents' rights, mounts, providers and the markers.
PROTECTED: Final = frozenset({"agents", MAILBOX, "mounts", "places"})


class AgentRights(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's rights to write. `scopes`: None allows all scopes; "" is the default scope. `until_ms`: when the
    agent's key expires, in milliseconds since 1970; None for never. `revoked`: the agent is no longer a member."""

    role: str
    scopes: frozenset[str] | None = None
    until_ms: int | None = None
    revoked: bool = False


class Waiting(msgspec.Struct, frozen=True):
    """An op that is not admitted until a person accepts it, and the reason. Readers do not show it."""

    op: AgentOp
    reason: str


class OpWrite(msgspec.Struct, frozen=True):
    """A write to execute: the value replaces the dots `replaces` of the entry `name`.

    The value has neither signature nor location. `text`: None for FORGOTTEN.
    """

    name: str
    replaces: tuple[str, ...]
    value: Value
    text: bytes | None


class AdmissionStore(Protocol):
    """The store that an admission reads and writes, in one transaction. If `write` or `append` refuses a write, it
    raises an IpfsmemError and changes nothing."""

    def entry(self, name: str) -> Entry:
        """Return an entry, including the writes of this transaction."""

    def body(self, name: str, value: Value) -> bytes | None:
        """Return the text of a value; None if it is not on this device."""

    def write(self, write: OpWrite) -> None:
        """Write a value under a new dot of this device."""

    def append(self, scope: str, line: bytes) -> None:
        """Append the line of an event to the timeline of a scope, unless it contains an event with the same id and
        line."""


class Admitting(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of an admission, in addition to the entries.

    `dev`: the device that writes. `now_ms`: its time, in milliseconds since 1970. `mine`: tells whether an id is a
    device or agent of the device's person. `rights`: the rights of each agent with a card of this person; ops of
    other agents are admitted by the devices of their person. `accepted`, `discarded`: marks of waiting ops that a
    person accepted or discarded; an op that writes to a protected scope cannot be accepted.
    """

    dev: str
    now_ms: int
    mine: IsMine
    rights: Mapping[str, AgentRights]
    accepted: frozenset[str] = frozenset()
    discarded: frozenset[str] = frozenset()


class PendingOps(NamedTuple):
    """Ops that no marker names: `ready` are admitted in this order, `waiting` need a person's decision."""

    ready: list[AgentOp]
    waiting: list[Waiting]


def pending_ops(
    entries: Iterable[StoredEntry],
    marks: Marks,
    rights: Mapping[str, AgentRights],
    now_ms: int,
    mine: IsMine,
    forgotten: frozenset[str] = frozenset(),
) -> PendingOps:
    """Return the ops of the agents in `rights` that no marker names, each once, in the order of admission.

    `forgotten`: the forgotten scopes.
    """
    found: dict[str, AgentOp] = {}
    for stored in entries:
        if stored.entry.agent not in rights or marks.has_entry(stored.sha):
            continue
        for each in ops_of(stored):
            if each.mark not in marks.tokens:
                found.setdefault(each.mark, each)
    ready: list[AgentOp] = []
    waiting: list[Waiting] = []
    for each in sorted(found.values(), key=lambda one: one.order):
        reason = _refusal(each, rights[each.agent], now_ms, mine, forgotten)
        if reason is None:
            ready.append(each)
        else:
            waiting.append(Waiting(each, reason))
    return PendingOps(ready, waiting)


def _refusal(
    each: AgentOp, rights: AgentRights, now_ms: int, mine: IsMine, forgotten: frozenset[str]
) -> str | None:
    op = each.op
    if op.scope in PROTECTED:
        return "no agent writes to this scope"
    if rights.revoked:
        return "its agent key is not a member"
    if rights.until_ms is not None and now_ms >= rights.until_ms:
        return "its agent key has expired"
    if rights.role not in (WRITER, APPEND):
        return "its agent key may not write"
    if rights.role == APPEND and (op.b or op.dots or op.sees or op.kind == FORGOTTEN):
        return "its agent key may only add"
    if op.kind != LIVE and not mine(each.agent):
        return "only texts of this agent key can be pending"
    if rights.scopes is not None and op.scope not in rights.scopes:
        return "its agent key may not write to this scope"
    if op.scope in forgotten:
        return "the scope is forgotten"
    if hlc_ms(op.h) < now_ms - MAX_OP_AGE_MS:
        return "it is older than 90 days"
    if is_ahead(op.h, now_ms):
        return "its clock is ahead"
    return None


def is_ahead(h: str, now_ms: int) -> bool:
    """Tell whether a clock value is more than MAX_AHEAD_MS ahead of `now_ms`."""
    return hlc_ms(h) > now_ms + MAX_AHEAD_MS


def admit(
    entries: Iterable[StoredEntry], marks: Marks, by: Admitting, store: AdmissionStore
) -> tuple[Waiting, ...]:
    """Write all ops that no marker names, and their markers. Return the ops that wait.

    The order of the entries does not change the result, and admission is idempotent. An op that the store refuses
    waits, without an effect on the others. Raises UsageError if a marker could not be read.
    """
    if marks.missing:
        raise UsageError(
            f"the marker {marks.missing[0][0]} is not fetched: nothing can be admitted before it is"
        )
    found = [each for each in entries if each.entry.agent in by.rights]
    scopes = {op.scope for each in found for op in each.entry.ops} - {""}
    gone = frozenset(scope for scope in scopes if is_forgotten_scope(store.entry(card_entry(scope))))
    pending = pending_ops(found, marks, by.rights, by.now_ms, by.mine, gone)
    waiting: list[Waiting] = []
    ready = list(pending.ready)
    for one in pending.waiting:
        if one.op.mark in by.accepted and one.op.op.scope not in PROTECTED:
            ready.append(one.op)
        elif one.op.mark not in by.discarded:
            waiting.append(one)
    every = (*pending.ready, *(one.op for one in pending.waiting))
    new = {each.mark for each in every if each.mark in by.discarded}
    for each in sorted(ready, key=lambda one: one.order):
        if each.mark in new:
            continue
        if reason := _execute(each, by, store):
            waiting.append(Waiting(each, reason))
        else:
            new |= {each.mark, *superseded_marks(each, by.mine)} - marks.tokens
    done = marks.tokens | new
    for stored in found:
        token = entry_token(stored.sha)
        if token not in done and all(each.mark in done for each in ops_of(stored)):
            new.add(token)
    for write in marker_writes(new, by.dev, by.now_ms // WEEK_MS, store.entry, store.body):
        store.write(OpWrite(*write))
    return tuple(one for one in waiting if one.op.mark not in new)


def is_forgotten_scope(card: Entry) -> bool:
    """Tell whether the entry of its card marks a scope as forgotten."""
    return any(value.kind == FORGOTTEN for value in card.values())


def _execute(each: AgentOp, by: Admitting, store: AdmissionStore) -> str | None:
    """Write an op. Return the reason if it cannot be written, else None."""
    try:
        if each.op.kind == EVENT:
            store.append(each.op.scope, (each.op.text or "").encode())
            return None
        write = op_write(each, store.entry(each.op.e), by)
        if write is None:
            return "the device has no free dot for it"
        store.write(write)
    except IpfsmemError as error:
        return str(error)
    return None


def op_write(each: AgentOp, entry: Entry, by: Admitting) -> OpWrite | None:
    """Return the write that admits an op of a memory; None if the device has no free dot. `entry`: the entry that it
    writes."""
    op = each.op
    ahead = is_ahead(op.h, by.now_ms)
    gone = set[str]() if ahead else replaced_dots(entry, each, by.mine)
    rest = {dot: value for dot, value in entry.items() if dot not in gone}
    value = Value(
        b=op.b,
        base=_location(entry, op.b),
        body=op.body,
        h=ZERO if ahead else op.h,
        kind=op.kind,
        author=_author(each, entry, gone, by.mine),
    )
    text = None if op.text is None else op.text.encode()
    before, after = _of_device(entry, by.dev), _of_device(rest, by.dev) + 1
    # A text leaves one dot free for the device's person.
    if after <= max(MAX_DOTS - (op.kind == LIVE), before):
        return OpWrite(op.e, tuple(sorted(gone)), value, text)
    there = _other_key(each)
    if text is None or there is None:
        return None
    return OpWrite(there, (), msgspec.structs.replace(value, b=(), base=None, h=ZERO), text)


def _other_key(each: AgentOp) -> str | None:
    """Return the name of the entry that receives a text if its own entry has no free dot."""
    name = memory_name(each.op.e)
    if name is None:
        return None
    if is_part_key(name.key):
        session = name.key.removeprefix(PART_PREFIX).rsplit("-", 2)[0]
        return memory_entry(f"{PART_PREFIX}{session}-{each.mark[:16]}-0", name.scope)
    return memory_entry(f"{name.key[:40]}-{(each.op.body or '')[:16]}", name.scope)


def _of_device(entry: Entry, dev: str) -> int:
    return sum(dot[:16] == dev for dot in entry)


def _location(entry: Entry, b: tuple[str, ...]) -> Loc | None:
    """Return the location of the first base if a value of the entry shows it, else None."""
    for value in entry.values():
        if b and value.body is not None and hash32(value.body) == b[0] and value.loc is not None:
            return value.loc
    for value in entry.values():
        if b and value.b[:1] == b[:1] and value.base is not None:
            return value.base
    return None


def _author(each: AgentOp, entry: Entry, gone: set[str], mine: IsMine) -> str:
    """Return the `author` field of an op's value: the author that it states, or that of a foreign text that it
    replaces.

    Equal bytes do not matter here: a member could copy a waiting op, and would then appear as its author.
    """
    op = each.op
    if op.kind == FORGOTTEN or op.body is None:
        return ""
    as_theirs = Value(b=(), body="", h=ZERO, kind=LIVE, author=op.author)
    return (
        author_of_copy(make_dot(each.agent, 1), as_theirs, mine)
        or next((seen.agent for seen in op.sees if not mine(seen.agent)), "")
        or author_of_replacement(entry, gone, op.body, mine)
    )


def replaced_dots(entry: Entry, each: AgentOp, mine: IsMine) -> set[str]:
    """Return the dots of `entry` that an op removes: those that its writer was shown, and the dots under which
    devices of the person have admitted the ops that it was shown.

    A dot that the op names with another clock value was not shown to its writer. An agent whose texts are pending
    cannot remove the person's own texts.
    """
    op = each.op
    seen = {(one.h, one.body or None) for one in op.sees}
    shown, own = set(op.dots), mine(each.agent)
    return {
        dot
        for dot, value in entry.items()
        if ((dot, value.h) in shown or ((value.h, value.body) in seen and mine(dot[:16])))
        and (own or not is_own(dot, value.author, mine))
    }


def superseded_marks(each: AgentOp, mine: IsMine) -> list[str]:
    """Return the marks of the ops that this op replaces, whether or not those have arrived. An agent whose texts are
    pending can replace only its own ops.
    """
    own = mine(each.agent)
    return [op_mark(one.agent, each.op.e, one.id) for one in each.op.sees if own or one.agent == each.agent]
