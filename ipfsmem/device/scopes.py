"""Scopes in the state of one replica: which there are, which are forgotten, what a forgotten one takes along (format 5.1).

A scope comes to be with its first write, and with a card, so that forgetting has a place to stand. What people do with
scopes is in `memories.scopes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ipfsmem.causal.cards import MAX_SCOPES, Card, is_forgotten, view_card, write_card
from ipfsmem.causal.entries import card_entry, card_name, scope_of
from ipfsmem.causal.value import Entry
from ipfsmem.device.state import Store
from ipfsmem.errors import LimitError, NotFoundError

if TYPE_CHECKING:
    from ipfsmem.device.replica import Replica
    from ipfsmem.device.writing import Writing


def scope_forgotten(store: Store, scope: str) -> bool:
    """Whether a scope is forgotten; the nameless one never is."""
    return bool(scope) and is_forgotten(store.entry(card_entry(scope)))


def read_card(store: Store, scope: str, entry: Entry) -> Card | None:
    """The card that these siblings make; None when it is forgotten, or no sibling can be read."""
    name = card_entry(scope)
    bodies = {value.body: value for value in entry.values() if value.body is not None}
    return view_card(entry, lambda body: store.body(name, bodies[body]))


def known_scopes(store: Store) -> dict[str, Entry]:
    """Every scope that an entry names, with the siblings of its card (none: empty), by token."""
    found: dict[str, Entry] = {}
    for name in store.names():
        scope = scope_of(name)
        if scope and (scope not in found or card_name(name) is not None):
            found[scope] = store.entry(name) if card_name(name) is not None else {}
    return dict(sorted(found.items()))


def open_scope(change: Writing, scope: str) -> None:
    """What must hold before something is written into a scope: it is not forgotten, and it has a card (made here).

    Raises NotFoundError for a forgotten scope, LimitError when it would be one too many.
    """
    name = card_entry(scope)
    check_writable(change, scope)
    if not change.entry(name):
        # With clock zero: a card that a person made at the same time goes before it.
        change.keep_beside(name, write_card(Card(title=scope)))


def check_writable(change: Writing, scope: str) -> None:
    """Refuse a scope that is forgotten (NotFoundError), and one more than a device may make (format section 8, LimitError)."""
    entry = change.entry(card_entry(scope))
    if is_forgotten(entry):
        raise NotFoundError(
            f"the scope {scope} is forgotten, so nothing can be written there",
            hint=f"Bring it back with: ipfsmem scope restore {scope}",
        )
    if not entry:
        check_room(change, scope)


def check_room(change: Writing, scope: str) -> None:
    """Refuse one scope more than this device may make, else count it. Raises LimitError."""
    own = change.own_scopes
    if scope not in own and len(own) >= MAX_SCOPES:
        raise LimitError(
            f"there are {MAX_SCOPES:,} scopes of this device, so {scope} cannot be made",
            hint="Forget one that is not needed any more: ipfsmem scope forget SCOPE",
        )
    own.add(scope)
    change.live_scopes.add(scope)


def drop_own_segments(replica: Replica, names: Iterable[str]) -> None:
    """After a join (inside its transaction): of the scopes whose card is among these entries and forgotten now, the
    segments that this device wrote there go.
    """
    store = replica.store
    gone = {
        found.scope
        for name in names
        if (found := card_name(name)) is not None and is_forgotten(store.entry(name))
    }
    mine = replica.device.id
    changes: dict[str, Entry] = {
        segment.entry: {}
        for held in (store.segments_of(gone) if gone else {}).values()
        for segment, _ in held
        if segment.dev == mine
    }
    if changes:
        store.apply(changes, store.frame)


def own_scopes(replica: Replica) -> set[str]:
    """The scopes that are not forgotten and on whose card this device wrote, under any id that it has had: those of
    others do not keep it from making one."""
    ring = replica.ring
    family = ring.view.family_of if ring is not None else str
    mine = family(replica.device.id)
    return {
        token
        for token, entry in known_scopes(replica.store).items()
        if not is_forgotten(entry) and any(family(dot[:16]) == mine for dot in entry)
    }


def live_scopes(store: Store) -> Iterator[str]:
    """The tokens of the scopes that are not forgotten, in order; the nameless one is not among them."""
    return (scope for scope, entry in known_scopes(store).items() if not is_forgotten(entry))
