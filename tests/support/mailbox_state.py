"""Admission into a state in memory, as a device admits into its database."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.bundle.timeline import parse_line
from ipfsmem.causal import mailbox_admission
from ipfsmem.causal.mailbox_admission import Admitting, OpWrite, Waiting
from ipfsmem.causal.mailbox_entry import StoredEntry
from ipfsmem.causal.mailbox_markers import Marks
from ipfsmem.causal.state import State, write
from ipfsmem.causal.value import Entry, Value
from ipfsmem.causal.value import dot as make_dot
from ipfsmem.errors import LimitError


class AdmittedOps(msgspec.Struct, frozen=True):
    """What an admission made: the state, the names of changed entries, new texts by hash, events by scope, ops that wait."""

    state: State
    changed: tuple[str, ...]
    texts: dict[str, bytes]
    events: tuple[tuple[str, bytes], ...]
    waiting: tuple[Waiting, ...]


class HeldState:
    """An `AdmissionStore` in memory. `refused`: entries that accept no write."""

    def __init__(self, state: State, dev: str, texts: dict[str, bytes], refused: Iterable[str] = ()) -> None:
        self._ctx, self._entries, self._dev = dict(state.ctx), dict(state.entries), dev
        self._given, self._refused = texts, frozenset(refused)
        self.changed: set[str] = set()
        self.texts: dict[str, bytes] = {}
        self.events: list[tuple[str, bytes]] = []
        self.read: list[str] = []

    @property
    def state(self) -> State:
        """The state with all writes so far."""
        return State(self._ctx, self._entries)

    def entry(self, name: str) -> Entry:
        """Return an entry."""
        return self._entries.get(name, {})

    def body(self, name: str, value: Value) -> bytes | None:
        """Return the text of a value."""
        self.read.append(value.body or "")
        return self.texts.get(value.body or "") or self._given.get(value.body or "")

    def write(self, write_of: OpWrite) -> None:
        """Write under the next dot."""
        name = write_of.name
        if name in self._refused:
            raise LimitError(f"{name} accepts no write")
        n = self._ctx.get(self._dev, 0) + 1
        self._entries[name] = write(
            self.entry(name), write_of.replaces, make_dot(self._dev, n), write_of.value
        )
        self._ctx[self._dev] = n
        self.changed.add(name)
        if write_of.text is not None:
            self.texts[write_of.value.body or ""] = write_of.text

    def append(self, scope: str, line: bytes) -> None:
        """Note an event; a line without an id is refused."""
        if "t" in self._refused:
            raise LimitError("the timeline accepts no event")
        assert parse_line(line)["id"]
        self.events.append((scope, line))


def admit(
    state: State,
    entries: Iterable[StoredEntry],
    marks: Marks,
    by: Admitting,
    texts: dict[str, bytes],
    refused: Iterable[str] = (),
) -> AdmittedOps:
    """Admit into a copy of `state`; `texts` are its bodies by hash."""
    store = HeldState(state, by.dev, texts, refused)
    waiting = mailbox_admission.admit(entries, marks, by, store)
    return AdmittedOps(store.state, tuple(sorted(store.changed)), store.texts, tuple(store.events), waiting)
