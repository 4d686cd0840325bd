"""Stores sessions that stay on this device: item by item in the database, encrypted if the vault is, never published.

`AllSessions` combines local and published sessions of a scope and the scopes redirected to it. Sessions of the same name are shown
as one, ordered by the times at which their items were added. If any items of a session are local, additions stay local too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

import msgspec

from ipfsmem.bundle.session_parts import session_token
from ipfsmem.canonical import MAX_INT
from ipfsmem.causal.entries import MemoryName
from ipfsmem.device.connection import blob
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.device.tables import sessions_here as table
from ipfsmem.errors import ChangedError, LimitError, OpenError, StorageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.part_lines import item_text
from ipfsmem.memories.session_reader import NOTHING_SEEN, SessionFacts
from ipfsmem.memories.sessions import Sessions
from ipfsmem.sessions.compaction import Place, PlacedItem, is_mark


class _Item(msgspec.Struct, frozen=True, array_like=True):
    """An item: its session, the time of its addition (milliseconds since 1970 UTC), its number among the items added together, and
    its JSON."""

    scope: str
    session: str
    at: int
    n: int
    text: str


class Forgotten(NamedTuple):
    """The keys of the parts of a forgotten session, and whether the session existed."""

    parts: list[MemoryName]
    any: bool


_decode = msgspec.msgpack.Decoder(_Item).decode
_encode = msgspec.msgpack.Encoder().encode


def scopes_with_sessions_here(replica: Replica) -> set[str]:
    """Return the scopes with a local session (inside `reading` or a transaction); they may have no other content."""
    return {one.scope for _, one in _newest_of_each(replica)}


def named_sessions_here(replica: Replica, scope: str | None = None) -> list[tuple[str, str]]:
    """Return sorted (scope, name) of each local session, of one scope or all, without forgotten scopes (inside `reading` or a
    transaction)."""
    places = {(one.scope, one.session) for _, one in _newest_of_each(replica) if scope in (None, one.scope)}
    return sorted(one for one in places if not scope_forgotten(replica.store, one[0]))


def _newest_of_each(replica: Replica) -> list[tuple[bytes, _Item]]:
    """Return the mark and the last undamaged item of each session, also of a session with damaged rows."""
    db, rows = replica.db.connection, []
    for mark, row in list(table.last_of_each(db)):
        one = _opened_if_valid(replica, row)
        if one is None:
            sound = (_opened_if_valid(replica, other) for _, other in reversed([*table.rows(db, mark)]))
            one = next((other for other in sound if other is not None), None)
        if one is not None:
            rows.append((mark, one))
    return rows


def _opened_if_valid(replica: Replica, row: object) -> _Item | None:
    """Decode a row; None if it is damaged."""
    try:
        one = _decode(replica.codec.open_row(blob(row) or b""))
        json.loads(one.text)
    except (OpenError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return one


def forget_sessions_here(replica: Replica, scope: str) -> None:
    """Delete all local sessions of a scope (inside a transaction)."""
    for mark, one in _newest_of_each(replica):
        if one.scope == scope:
            table.delete(replica.db.connection, mark)


class AllSessions:
    """The local and published sessions of one scope and of the scopes redirected to it."""

    def __init__(
        self, memories: MemoryStore, below: Iterable[MemoryStore] = (), *, here_only: bool = False
    ) -> None:
        """`below`: the scopes redirected to this one. `here_only`: whether a new session is local."""
        self._replica = memories.replica
        self._scopes = [_ScopeSessions(one) for one in (memories, *below)]
        self._here_only = here_only

    def listing(self) -> list[SessionFacts]:
        """Return all sessions, last written first. Raises NotFoundError if one is not fetched."""
        first, *below = [scope.listing() for scope in self._scopes]
        if not any(below):
            return first
        facts_of = {one.session: one for one in first}
        for one in (one for listed in below for one in listed):
            other = facts_of.get(one.session)
            facts_of[one.session] = (
                one
                if other is None
                else SessionFacts(
                    one.session,
                    other.scope,
                    other.parts + one.parts,
                    max(other.changed, one.changed),
                    here=other.here or one.here,
                )
            )
        return sorted(facts_of.values(), key=lambda one: -one.changed)

    def is_here(self, session: str) -> bool:
        """Return whether any items of a session are local."""
        with self._replica.reading():
            return any(scope.is_here(session) for scope in self._scopes)

    def entries(self, session: str) -> list[PlacedItem]:
        """Return all items of a session in order, including marks. Raises NotFoundError if a part is not fetched."""
        with self._replica.reading():
            first, *below = [scope.entries(session) for scope in self._scopes]
        entries_found = [*first, *(entry for entries in below for entry in entries)]
        return sorted(entries_found, key=lambda one: one.place) if any(below) else first

    def seen(self, session: str) -> str:
        """Return a hash of the whole session."""
        with self._replica.reading():
            seen = [scope.seen(session) for scope in self._scopes]
        marks = [one for one in seen if one != NOTHING_SEEN] or seen[:1]
        return marks[0] if len(marks) == 1 else sha256("".join(marks).encode()).hexdigest()[: len(marks[0])]

    def add(self, session: str, items: Iterable[Mapping[str, Any]]) -> list[str]:
        """Add items at the end, durable together on return; returns the keys of the changed parts, none if the items are local.

        Raises UsageError for an item that is not a JSON object, LimitError for one that is too long.
        """
        session_token(session)
        first, *below = self._scopes
        stays_here = self.is_here(session) or (
            self._here_only and not any(scope.everywhere.has(session) for scope in self._scopes)
        )
        after = max((one.place[0] for scope in below for one in scope.entries(session)), default=0)
        return first.add(session, items, stays_here=stays_here, after=after)

    def pop(self, session: str) -> tuple[dict[str, Any] | None, list[MemoryName]]:
        """Remove the last item that is not a mark; returns the item or None, and the keys of the changed parts."""
        with self._replica.transaction():
            last = max(self._scopes, key=lambda scope: scope.last_message(session))
            item, keys, was_here = last.pop(session)
        if was_here:
            self._erase_deleted()
        return item, [MemoryName(last.scope, key) for key in keys]

    def forget(self, session: str, reason: str = "", seen: str | None = None) -> Forgotten:
        """Forget a session. Raises ChangedError if it differs from `seen`."""
        with self._replica.transaction():
            if seen is not None and self.seen(session) not in (seen, NOTHING_SEEN):
                raise ChangedError(f"the session {session} changed since it was read", hint="Read it again.")
            here = self.is_here(session)
            parts = [
                MemoryName(scope.scope, key)
                for scope in self._scopes
                for key in scope.forget(session, reason)
            ]
        if here:
            self._erase_deleted()
        return Forgotten(parts, here or bool(parts))

    def _erase_deleted(self) -> None:
        """Erase deleted rows from the disk immediately if they were not encrypted (outside a transaction)."""
        if not self._replica.config.mode.sealed:
            self._replica.db.empty_log()


class _ScopeSessions:
    """The local and published sessions of exactly one scope."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories
        self._replica = memories.replica
        self.scope = memories.scope
        self.everywhere = Sessions(memories)

    def listing(self) -> list[SessionFacts]:
        """Return all sessions, last written first. Raises NotFoundError if one is not fetched."""
        facts_of = {one.session: one for one in self.everywhere.listing()}
        with self._replica.reading():
            here = self._last_of_each()
            for one in here:
                other = facts_of.get(one.session)
                facts_of[one.session] = SessionFacts(
                    one.session,
                    one.scope,
                    other.parts if other is not None else 0,
                    max(one.at, other.changed if other is not None else 0),
                    here=True,
                )
        return sorted(facts_of.values(), key=lambda one: -one.changed) if here else list(facts_of.values())

    def is_here(self, session: str) -> bool:
        """Return whether any items of a session are local."""
        with self._replica.reading():
            return table.last(self._replica.db.connection, self._mark(session)) is not None

    def entries(self, session: str) -> list[PlacedItem]:
        """Return all items of a session in order, including marks. Raises NotFoundError if a part is not fetched."""
        with self._replica.reading():
            entries_found = self.everywhere.entries(session)
            here = [
                PlacedItem((one.at, self._replica.device.id, one.n), json.loads(one.text))
                for _, one in self._items(session)
            ]
        return sorted([*entries_found, *here], key=lambda one: one.place) if here else entries_found

    def seen(self, session: str) -> str:
        """Return a hash of the whole session."""
        with self._replica.reading():
            everywhere = self.everywhere.seen(session)
            rows = list(table.rows(self._replica.db.connection, self._mark(session)))
        if not rows:
            return everywhere
        row_bytes = b"".join(blob(row) or b"" for _, row in rows)
        return sha256(everywhere.encode() + row_bytes).hexdigest()[: len(everywhere)]

    def add(
        self, session: str, items: Iterable[Mapping[str, Any]], *, stays_here: bool, after: int
    ) -> list[str]:
        """Add items at the end, later than `after`; returns the keys of the changed parts."""
        if not stays_here or self._memories.forgotten():  # the published session reports the damage
            return self.everywhere.add(session, items, after)
        texts = [item_text(item) for item in items]
        if texts:
            with self._replica.transaction():
                self._put(session, texts, after)
        return []

    def _put(self, session: str, texts: list[str], after: int) -> None:
        db, mark = self._replica.db.connection, self._mark(session)
        last = table.last(db, mark)
        before = max([after, *(one.place[0] for one in self.everywhere.entries(session))])
        newest = None if last is None else _opened_if_valid(self._replica, last[1])
        if newest is not None:
            before = max(before, newest.at)
        at = max(self._replica.environment.now(), before + 1)
        if at > MAX_INT:
            raise LimitError("cannot add to this session: its last timestamp is the maximum")
        first = 0 if last is None else last[0] + 1
        seal = self._replica.codec.seal_row
        rows = [
            (first + n, seal(_encode(_Item(self._memories.scope, session, at, n, text))))
            for n, text in enumerate(texts)
        ]
        table.add(db, mark, rows)

    def last_message(self, session: str) -> Place:
        """Return the place of the last item that is not a mark; without one, a place before every other."""
        places = (one.place for one in reversed(self.entries(session)) if not is_mark(one.item))
        return next(places, (-1, "", -1))

    def pop(self, session: str) -> tuple[dict[str, Any] | None, list[str], bool]:
        """Remove the last item that is not a mark (inside a transaction); returns the item or None, the keys of the
        changed parts, and whether the item was local."""
        entries = [one for one in self.entries(session) if not is_mark(one.item)]
        for number, one in reversed(self._items(session)) if entries else ():
            if (one.at, self._replica.device.id, one.n) == entries[-1].place:
                table.delete(self._replica.db.connection, self._mark(session), number)
                return entries[-1].item, [], True
        return *self.everywhere.pop(session), False

    def forget(self, session: str, reason: str) -> list[str]:
        """Forget a session (inside a transaction); returns the keys of its parts."""
        keys = self.everywhere.forget(session, reason)
        table.delete(self._replica.db.connection, self._mark(session))
        return keys

    # -- rows ----------------------------------------------------------------------------------------------------

    def _mark(self, session: str) -> bytes:
        text = f"{self._memories.scope}\0{session}".encode("utf-8", "surrogatepass")
        return blake2b(
            text, digest_size=16, key=self._replica.device.row_key, person=b"ipfsmem/session"
        ).digest()

    def _items(self, session: str) -> list[tuple[int, _Item]]:
        """Return all items of a local session, by number. Raises StorageError for a damaged row, because an item would be
        missing."""
        if self._memories.forgotten():
            return []
        rows = []
        for number, row in table.rows(self._replica.db.connection, self._mark(session)):
            one = _opened_if_valid(self._replica, row)
            if one is None:
                raise StorageError(
                    f"{self._replica.db.path} is damaged: a message of the session {session[:60]!r} differs from the written one",
                    hint="Forget that session: ipfsmem session delete SESSION.",
                )
            rows.append((number, one))
        return rows

    def _last_of_each(self) -> list[_Item]:
        """Return the last undamaged item of each session of this scope."""
        if self._memories.forgotten():
            return []
        return [one for _, one in _newest_of_each(self._replica) if one.scope == self._memories.scope]
