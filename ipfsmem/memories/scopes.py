"""Creates, renames, finds, forgets and restores the scopes of one vault (format section 5.1).

A scope is created by its first write or by `make`. No text is moved from one scope to another: `into` redirects later reads and
writes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.bundle.keys import check_scope
from ipfsmem.bundle.session_parts import is_part_key, parts_with_unknown_marks
from ipfsmem.bundle.timeline import segment_lines
from ipfsmem.causal.authorship import author_of_copy
from ipfsmem.causal.cards import (
    Card,
    Kind,
    ProjectId,
    find_project,
    is_forgotten,
    read_order,
    redirects,
    write_card,
    write_target,
)
from ipfsmem.causal.entries import (
    MemoryName,
    SegmentName,
    card_entry,
    memory_entry,
    parse_entry,
)
from ipfsmem.causal.value import FORGOTTEN, Entry, decode_entry
from ipfsmem.causal.view import siblings
from ipfsmem.device.events import Timeline
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import check_room, known_scopes, put_card, read_card
from ipfsmem.device.writing import Writing, writing
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memories.memories import MemoryStore


class Scope(msgspec.Struct, frozen=True):
    """One scope of a vault. `card` None: it is forgotten, or its card is missing or not fetched."""

    token: str
    card: Card | None
    forgotten: bool = False

    @property
    def title(self) -> str:
        """Its displayed name."""
        return self.card.title if self.card is not None else self.token


class Restored(msgspec.Struct, frozen=True):
    """The restored content of a scope. `not_fetched`: number of texts that are not on this device and were not restored."""

    texts: int = 0
    events: int = 0
    not_fetched: int = 0


class Scopes:
    """The scopes of one replica. The default scope always exists and has no card."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        #: Cards that were read, each with the JSON of its entry.
        self._cards_read: dict[str, tuple[bytes, Card | None]] = {}
        #: The redirections of scopes, and the version of the cards from which they were read.
        self._leads: tuple[int, dict[str, str]] | None = None

    # -- reading -----------------------------------------------------------------------------------------------

    def listing(self, *, forgotten: bool = False) -> list[Scope]:
        """Return the scopes by token, without forgotten ones; with `forgotten` only forgotten ones."""
        with self.replica.reading():
            store = self.replica.store
            scopes = [
                Scope(token, read_card(store, token, entry), is_forgotten(entry))
                for token, entry in self._known_here().items()
            ]
        return [scope for scope in scopes if scope.forgotten == forgotten]

    def get(self, token: str) -> Scope | None:
        """Return one scope, also a forgotten one; None if it does not exist. Raises KeyNameError."""
        with self.replica.reading():
            store = self.replica.store
            entry = store.entry(card_entry(token))
            if entry or token in self._known_here():
                return Scope(token, read_card(store, token, entry), is_forgotten(entry))
        return None

    def _known_here(self) -> dict[str, Entry]:
        """Return every scope with an entry or with a session that stays on this device, as token -> siblings of its card."""
        from ipfsmem.memories.sessions_here import scopes_with_sessions_here

        here: dict[str, Entry] = {one: {} for one in scopes_with_sessions_here(self.replica) if one}
        return dict(sorted({**here, **known_scopes(self.replica.store)}.items()))

    def cards(self) -> dict[str, Card]:
        """Return the cards of the scopes that are not forgotten, by token. Unchanged cards are not read again."""
        with self.replica.reading():
            store = self.replica.store
            cards_read: dict[str, tuple[bytes, Card | None]] = {}
            for token, text in store.cards().items():
                card_read = self._cards_read.get(token)
                if card_read is None or card_read[0] != text or card_read[1] is None:
                    card_read = text, read_card(store, token, decode_entry(card_entry(token), text))
                cards_read[token] = card_read
        self._cards_read = cards_read
        return {token: card for token, (_, card) in cards_read.items() if card is not None}

    def _onward(self) -> dict[str, str]:
        """Return the redirections of scopes."""
        with self.replica.reading():
            version = self.replica.store.cards_version
            if self._leads is not None and self._leads[0] == version:
                return self._leads[1]
            cards = self.cards()
            leads = redirects(cards)
            absent = [card_read for token, card_read in self._cards_read.items() if token not in cards]
            # A card that is not fetched may arrive without a change of its entry.
            waits = any(FORGOTTEN.encode() not in text for text, _ in absent)
            self._leads = None if waits else (version, leads)
        return leads

    def stack(self, token: str) -> list[str]:
        """Return the scopes that are read for this scope, in order of precedence."""
        return read_order(token, self._onward()) if token else [""]

    def target(self, token: str) -> str:
        """Return the scope to which a write to this scope is redirected."""
        return write_target(token, self._onward()) if token else ""

    def find(self, idents: Iterable[ProjectId]) -> list[str]:
        """Return the scopes whose card has one of these ids or remotes."""
        return find_project(self.cards(), idents)

    # -- changing ----------------------------------------------------------------------------------------------

    def make(
        self, token: str, *, title: str | None = None, kind: Kind = "workspace", ids: Iterable[ProjectId] = ()
    ) -> Scope:
        """Create a scope. Raises KeyNameError, UsageError if it exists, NotFoundError if it is forgotten, LimitError."""
        check_scope(token)
        with writing(self.replica) as change:
            entry = change.entry(card_entry(token))
            if is_forgotten(entry):
                raise _forgotten(token)
            if entry:
                raise UsageError(f"there is a scope {token} already")
            check_room(change, token)
            card = Card(title=token if title is None else title, kind=kind, ids=tuple(ids))
            _put(change, token, card)
        return Scope(token, card)

    def change(
        self,
        token: str,
        *,
        title: str | None = None,
        kind: Kind | None = None,
        add: Iterable[ProjectId] = (),
        drop: Iterable[ProjectId] = (),
        into: str | None = None,
        stay: bool = False,
    ) -> Scope:
        """Change a card. `into`: redirect the scope to another one; `stay` removes the redirection.

        Raises NotFoundError if the scope does not exist or is forgotten, UsageError, FormatError, LimitError.
        """
        if into is not None:
            check_scope(into)
        if into is not None and (stay or into == token):
            raise UsageError(
                f"{token} cannot both go into another scope and stay"
                if stay
                else f"{token} cannot redirect to itself"
            )
        with writing(self.replica) as change:
            store = self.replica.store
            entry = change.entry(card_entry(token))
            if is_forgotten(entry):
                raise _forgotten(token)
            cards = known_scopes(store)
            if token not in cards:
                raise NotFoundError(f"there is no scope {token}", hint="List them with: ipfsmem scope list")
            if into is not None and (not cards.get(into) or is_forgotten(cards[into])):
                raise NotFoundError(f"there is no scope {into}", hint="List them with: ipfsmem scope list")
            others = {scope: card for scope, card in self.cards().items() if scope != token}
            if (
                into is not None
                and write_target(into, redirects({**others, token: Card(title=token)})) == token
            ):
                raise UsageError(
                    f"{into} already redirects to {token}, so {token} cannot redirect to {into}",
                    hint=f"Remove that redirection first: ipfsmem scope into {into} --remove",
                )
            card = read_card(store, token, entry) or Card(title=token)
            card = msgspec.structs.replace(
                card,
                title=card.title if title is None else title,
                kind=card.kind if kind is None else kind,
                ids=tuple(sorted({*card.ids, *add} - set(drop))),
                into=None if stay else card.into if into is None else into,
            )
            _put(change, token, card)
        return Scope(token, card)

    def forget(self, token: str, *, reason: str = "") -> int:
        """Forget a scope on every device: its memories, its timeline, its card. Returns the number of memories.

        Raises NotFoundError if it does not exist or is forgotten already.
        """
        # Needed only to forget.
        from ipfsmem.device.dreams import forget_in_dreams
        from ipfsmem.memories.sessions_here import forget_sessions_here

        name = card_entry(token)
        with writing(self.replica) as change:
            store = self.replica.store
            entry = change.entry(name)
            if is_forgotten(entry):
                raise _forgotten(token)
            if not entry and token not in self._known_here():
                raise NotFoundError(f"there is no scope {token}", hint="List them with: ipfsmem scope list")
            gone = 0
            for key, stored in list(store.memories(token)):
                live = tuple(dot for dot, value in stored.items() if value.kind != FORGOTTEN)
                if live:
                    with change.by_session():  # each session is forgotten as a whole
                        change.forget(memory_entry(key, token), live)
                    gone += 1
            for segment, stored in list(store.segments(token)):
                change.remove(segment.entry, tuple(stored))
            change.forget(name, tuple(entry))
            data = {"scope": token, **({"reason": reason} if reason else {})}
            Timeline(self.replica).note_in(change, "forgot", data)
            forget_in_dreams(self.replica, token)
            forget_sessions_here(self.replica, token)
            note_irrevocable(self.replica, f"the scope {token} was forgotten (ipfsmem scope restore {token})")
        if not self.replica.config.mode.sealed:
            self.replica.db.empty_log()  # sessions on this device were stored as plaintext
        from ipfsmem.memories.kept_vectors import erase_forgotten  # most calls remove no session

        erase_forgotten(MemoryStore(self.replica))
        return gone

    def restore(self, token: str, past: Iterable[tuple[str, Entry]] | None = None) -> Restored:
        """Make a forgotten scope writable again, empty or with the texts and events of an older root. This device writes them again
        with their original authors. The texts and events of a root can also be restored into an empty scope.

        Raises NotFoundError if the scope is not forgotten, and if the root has no text and no event of it.
        """
        name = card_entry(token)
        with writing(self.replica) as change:
            store = self.replica.store
            entry = change.entry(name)
            if not is_forgotten(entry) and (past is None or not entry or not self._is_empty(token)):
                raise NotFoundError(f"the scope {token} is not forgotten")
            check_room(change, token)
            then = [
                (parsed, one, stored)
                for one, stored in past or ()
                if (parsed := parse_entry(one)).scope == token
            ]
            card = next(
                (c for _, one, stored in then if one == name and (c := read_card(store, token, stored))), None
            )
            change.put(name, write_card(card or Card(title=token)), tuple(entry))
            texts = missing = 0
            lines: list[bytes] = []
            parts = {
                parsed.key: (one, stored)
                for parsed, one, stored in then
                if isinstance(parsed, MemoryName) and is_part_key(parsed.key)
            }
            unsure = parts_with_unknown_marks(
                parts,
                (
                    key
                    for key, (one, stored) in parts.items()
                    if any(store.body(one, stored[text.dots[0]]) is None for text in siblings(stored))
                ),
            )
            for parsed, one, stored in then:
                if isinstance(parsed, MemoryName) and parsed.key in unsure:
                    missing += len(siblings(stored))
                elif isinstance(parsed, MemoryName):
                    back, absent = self._write_back(change, one, stored)
                    texts, missing = texts + back, missing + absent
                elif isinstance(parsed, SegmentName):
                    for value in stored.values():
                        data = store.body(one, value)
                        missing += data is None
                        lines += segment_lines(data or b"")
            events = Timeline(self.replica, token).add_back(change, lines)
            if past is not None and card is None and not (texts or events or missing):
                raise NotFoundError(
                    f"that version has nothing of the scope {token}", hint="See: ipfsmem vault log."
                )
            note_irrevocable(self.replica, f"the scope {token} was brought back")
        return Restored(texts, events, missing)

    def _is_empty(self, token: str) -> bool:
        store = self.replica.store
        memories = (entry for _, entry in store.memories(token))
        return not any(store.segments(token)) and all(
            value.kind == FORGOTTEN for entry in memories for value in entry.values()
        )

    def _write_back(self, change: Writing, name: str, entry: Entry) -> tuple[int, int]:
        """Write the missing earlier texts of one memory; returns the number of written texts, and of texts that are not on this
        device."""
        now = change.entry(name)
        replaces = tuple(dot for dot, value in now.items() if value.kind == FORGOTTEN)
        here = {value.body for value in now.values()}
        texts = missing = 0
        for sibling in reversed(siblings(entry)):
            if sibling.body in here:
                continue
            words = {author_of_copy(dot, entry[dot], self.replica.is_mine) for dot in sibling.dots}
            data = self.replica.store.body(name, entry[sibling.dots[0]])
            if data is None:
                missing += 1
                continue
            own = "" in words
            change.put(name, data, replaces, of="" if own else min(words), promoted=own)
            replaces, texts = (), texts + 1
        return texts, missing


def _put(change: Writing, token: str, card: Card) -> None:
    if card.ids and change.public:
        # The message omits names because it may be shared.
        raise UsageError(
            "in mode ipfs everything is published, so a card says nothing of repositories: which folder belongs to a scope is kept "
            "on this device only"
        )
    put_card(change, token, card)


def _forgotten(token: str) -> NotFoundError:
    return NotFoundError(
        f"the scope {token} is forgotten", hint=f"Restore it with: ipfsmem scope restore {token}"
    )
