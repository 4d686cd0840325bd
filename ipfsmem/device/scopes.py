"""List and create scopes in the state of a replica, and delete what a forgotten scope deletes (format section 5.1).

A scope begins with its first write, which creates its card; forgetting is recorded there. The operations on scopes
are in `memories.scopes`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ipfsmem.causal.cards import (
    MAX_SCOPES,
    Card,
    is_forgotten,
    parse_card,
    plan_card_write,
    view_card,
    write_card,
)
from ipfsmem.causal.entries import card_entry, card_name, marker_parts, scope_of
from ipfsmem.causal.value import Entry, Value
from ipfsmem.device.state import StateStore
from ipfsmem.errors import FormatError, LimitError, NotFoundError

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica


class ScopeChange(Protocol):
    """The part of a transaction of writes (`device.writing`) that the functions of this module use."""

    @property
    def live_scopes(self) -> set[str]:
        """The scopes that are not forgotten."""
        ...

    @property
    def own_scopes(self) -> set[str]:
        """The live scopes on whose card this device wrote."""
        ...

    def entry(self, name: str) -> Entry:
        """Return an entry with the changes so far."""
        ...

    def body(self, name: str, value: Value) -> bytes | None:
        """Return the body of a value."""
        ...

    def put(self, name: str, body: bytes, replaces: Sequence[str]) -> str:
        """Write a text; `replaces` are the dots that its writer was shown."""
        ...

    def write_alternative(self, name: str, body: bytes) -> str:
        """Write a sibling of the existing values, with clock zero."""
        ...


def scope_forgotten(store: StateStore, scope: str) -> bool:
    """Return whether a scope is forgotten. The default scope never is."""
    return bool(scope) and is_forgotten(store.entry(card_entry(scope)))


def read_card(store: StateStore, scope: str, entry: Entry) -> Card | None:
    """Return the card of a scope, given its siblings; None if it is forgotten, or no sibling can be read."""
    name = card_entry(scope)

    def fetch(body: str) -> bytes | None:
        # Siblings with the same body may be stored in different locations.
        bodies = (store.body(name, value) for value in entry.values() if value.body == body)
        return next((data for data in bodies if data is not None), None)

    return view_card(entry, fetch)


def put_card(change: ScopeChange, token: str, card: Card) -> None:
    """Write the card of a scope. It replaces all siblings, except those that hold ids for which the new card has no room.
    Raises FormatError for a card that breaks a rule, LimitError if its ids do not fit at all."""
    name = card_entry(token)
    entry = change.entry(name)
    cards: dict[str, Card] = {}
    for dot, value in sorted(entry.items()):
        data = change.body(name, value) if value.body is not None else None
        if data is not None:
            with contextlib.suppress(FormatError, LimitError):
                cards[dot] = parse_card(data)
    new, staying = plan_card_write(card, cards)
    change.put(name, write_card(new), tuple(dot for dot in entry if dot not in staying))


def known_scopes(store: StateStore) -> dict[str, Entry]:
    """Return every scope that an entry names: token -> the siblings of its card, empty without a card. The scope of the
    mailbox's markers is not one that people see."""
    scopes: dict[str, Entry] = {}
    for name in store.names():
        scope = scope_of(name)
        if scope and (scope not in scopes or card_name(name) is not None) and marker_parts(name) is None:
            scopes[scope] = store.entry(name) if card_name(name) is not None else {}
    return dict(sorted(scopes.items()))


def open_scope(change: ScopeChange, scope: str) -> None:
    """Prepare a scope for a write: it must not be forgotten, and it gets a card unless it has one.

    Raises NotFoundError for a forgotten scope, LimitError beyond the number that a device may make.
    """
    name = card_entry(scope)
    check_writable(change, scope)
    if not change.entry(name):
        # With clock zero, so that a card that a person writes at the same time takes precedence.
        change.write_alternative(name, write_card(Card(title=scope)))


def check_writable(change: ScopeChange, scope: str) -> None:
    """Refuse a forgotten scope (NotFoundError), and a new one beyond the number that a device may make (LimitError, format
    section 8)."""
    entry = change.entry(card_entry(scope))
    if is_forgotten(entry):
        raise NotFoundError(
            f"the scope {scope} is forgotten, so nothing can be written there",
            hint=f"Restore it with: ipfsmem scope restore {scope}",
        )
    if not entry:
        check_room(change, scope)


def check_room(change: ScopeChange, scope: str) -> None:
    """Count a new scope, or refuse it if this device has reached its limit. Raises LimitError."""
    own = change.own_scopes
    if scope not in own and len(own) >= MAX_SCOPES:
        raise LimitError(
            f"scope {scope} not created: this device has the maximum of {MAX_SCOPES:,} scopes",
            hint="Forget an unneeded one: ipfsmem scope forget SCOPE",
        )
    own.add(scope)
    change.live_scopes.add(scope)


def drop_own_segments(replica: Replica, names: Iterable[str]) -> None:
    """Delete the segments that this device wrote in scopes which a join found to be forgotten (inside its transaction). `names`:
    the entries that the join changed."""
    store = replica.store
    gone = {
        card.scope
        for name in names
        if (card := card_name(name)) is not None and is_forgotten(store.entry(name))
    }
    mine = replica.device.id
    changes: dict[str, Entry] = {
        segment.entry: {}
        for segments in (store.segments_of(gone) if gone else {}).values()
        for segment, _ in segments
        if segment.dev == mine
    }
    if changes:
        store.apply(changes, store.frame)


def own_scopes(replica: Replica) -> set[str]:
    """Return the live scopes on whose card this device wrote, under any id that it has had. Only these count against its limit."""
    ring = replica.ring
    family = ring.view.family_of if ring is not None else str
    mine = family(replica.device.id)
    return {
        token
        for token, entry in known_scopes(replica.store).items()
        if not is_forgotten(entry) and any(family(dot[:16]) == mine for dot in entry)
    }


def live_scopes(store: StateStore) -> Iterator[str]:
    """Yield the tokens of the scopes that are not forgotten, sorted, without the default scope."""
    return (scope for scope, entry in known_scopes(store).items() if not is_forgotten(entry))
