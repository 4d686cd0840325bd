"""Sessions that stay on this device: stored item by item in its database, sealed if the vault is, and never published.

`AllSessions` has both kinds of a scope. A session of one name that exists both here and everywhere is shown as one, ordered by
the times at which its items were added; additions stay here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

import msgspec

from ipfsmem.bundle.session_parts import session_token
from ipfsmem.canonical import MAX_INT
from ipfsmem.device.connection import blob
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.device.tables import sessions_here as table
from ipfsmem.errors import ChangedError, LimitError, OpenError, StorageError
from ipfsmem.memories.memories import Memories
from ipfsmem.memories.sessions import SessionFacts, Sessions, item_text
from ipfsmem.sessions.compaction import Entry, is_mark


class _Item(msgspec.Struct, frozen=True, array_like=True):
    """An item: its session, when it was added (milliseconds since 1970 UTC), its number among those added together, its JSON."""

    scope: str
    session: str
    at: int
    n: int
    text: str


class Forgotten(NamedTuple):
    """The keys of the parts of a forgotten session, and whether anything of it existed."""

    keys: list[str]
    any: bool


_decode = msgspec.msgpack.Decoder(_Item).decode
_encode = msgspec.msgpack.Encoder().encode


def scopes_with_sessions_here(replica: Replica) -> set[str]:
    """Return the scopes with a session kept here (inside `reading` or a transaction); they may be empty otherwise."""
    return {one.scope for _, one in _newest_of_each(replica)}


def named_sessions_here(replica: Replica, scope: str | None = None) -> list[tuple[str, str]]:
    """Return scope and name of each session that is kept here, of one scope or all (inside `reading` or a transaction), sorted;
    without those of forgotten scopes."""
    found = {(one.scope, one.session) for _, one in _newest_of_each(replica) if scope in (None, one.scope)}
    return sorted(one for one in found if not scope_forgotten(replica.store, one[0]))


def _newest_of_each(replica: Replica) -> list[tuple[bytes, _Item]]:
    """Return mark and last undamaged item of each session, also of one with a damaged row."""
    db, found = replica.db.connection, []
    for mark, row in list(table.last_of_each(db)):
        one = _opened_if_sound(replica, row)
        if one is None:
            sound = (_opened_if_sound(replica, other) for _, other in reversed([*table.rows(db, mark)]))
            one = next((other for other in sound if other is not None), None)
        if one is not None:
            found.append((mark, one))
    return found


def _opened_if_sound(replica: Replica, row: object) -> _Item | None:
    """Return a row; None if it is damaged."""
    try:
        one = _decode(replica.codec.open_row(blob(row) or b""))
        json.loads(one.text)
    except (OpenError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return one


def forget_sessions_here(replica: Replica, scope: str) -> None:
    """Delete all sessions of a scope that are kept here (inside a transaction)."""
    for mark, one in _newest_of_each(replica):
        if one.scope == scope:
            table.delete(replica.db.connection, mark)


class AllSessions:
    """The sessions of one scope, here and everywhere. `here_only`: a new one stays here."""

    def __init__(self, memories: Memories, *, here_only: bool = False) -> None:
        self._memories = memories
        self._replica = memories.replica
        self._everywhere = Sessions(memories)
        self._here_only = here_only

    def listing(self) -> list[SessionFacts]:
        """Return all, last written first. Raises NotFoundError if one is not fetched."""
        found = {one.session: one for one in self._everywhere.listing()}
        with self._replica.reading():
            here = self._last_of_each()
            for one in here:
                other = found.get(one.session)
                found[one.session] = SessionFacts(
                    one.session,
                    one.scope,
                    other.parts if other is not None else 0,
                    max(one.at, other.changed if other is not None else 0),
                    here=True,
                )
        return sorted(found.values(), key=lambda one: -one.changed) if here else list(found.values())

    def is_here(self, session: str) -> bool:
        """Return whether some of it is kept here only."""
        with self._replica.reading():
            return table.last(self._replica.db.connection, self._mark(session)) is not None

    def entries(self, session: str) -> list[Entry]:
        """Return all items in order, also marks. Raises NotFoundError if a part is not fetched."""
        with self._replica.reading():
            found = self._everywhere.entries(session)
            here = [
                Entry((one.at, self._replica.device.id, one.n), json.loads(one.text))
                for _, one in self._items(session)
            ]
        return sorted([*found, *here], key=lambda one: one.place) if here else found

    def seen(self, session: str) -> str:
        """Return a hash that stands for all of it."""
        with self._replica.reading():
            everywhere = self._everywhere.seen(session)
            rows = list(table.rows(self._replica.db.connection, self._mark(session)))
        if not rows:
            return everywhere
        told = b"".join(blob(row) or b"" for _, row in rows)
        return sha256(everywhere.encode() + told).hexdigest()[: len(everywhere)]

    def add(self, session: str, items: Iterable[Mapping[str, Any]]) -> list[str]:
        """Add items at the end, durable together on return; returns the keys of the parts that changed: none if they stay here.

        Raises UsageError for an item that is not a JSON object, LimitError for one that is too long.
        """
        session_token(session)
        if not self._stays_here(session):
            return self._everywhere.add(session, items)
        texts = [item_text(item) for item in items]
        if texts:
            with self._replica.transaction():
                self._put(session, texts)
        return []

    def _stays_here(self, session: str) -> bool:
        if self._memories.forgotten():
            return False  # the other kind reports it
        return self.is_here(session) or (self._here_only and not self._everywhere.has(session))

    def _put(self, session: str, texts: list[str]) -> None:
        db, mark = self._replica.db.connection, self._mark(session)
        last = table.last(db, mark)
        before = max((one.place[0] for one in self._everywhere.entries(session)), default=0)
        newest = None if last is None else _opened_if_sound(self._replica, last[1])
        if newest is not None:
            before = max(before, newest.at)
        at = max(self._replica.world.now(), before + 1)
        if at > MAX_INT:
            raise LimitError("an item of this session has the last moment that there is")
        first = 0 if last is None else last[0] + 1
        seal = self._replica.codec.seal_row
        rows = [
            (first + n, seal(_encode(_Item(self._memories.scope, session, at, n, text))))
            for n, text in enumerate(texts)
        ]
        table.add(db, mark, rows)

    def pop(self, session: str) -> tuple[dict[str, Any] | None, list[str]]:
        """Remove the last item that is not a mark; returns the item, None if there is none, and the keys of the parts that
        changed."""
        with self._replica.transaction():
            entries = [one for one in self.entries(session) if not is_mark(one.item)]
            if not entries or not self.is_here(session):
                return self._everywhere.pop(session)
            for number, one in reversed(self._items(session)):
                if (one.at, self._replica.device.id, one.n) == entries[-1].place:
                    table.delete(self._replica.db.connection, self._mark(session), number)
                    break
            else:
                return self._everywhere.pop(session)
        self._off_the_disk()
        return entries[-1].item, []

    def forget(self, session: str, reason: str = "", seen: str | None = None) -> Forgotten:
        """Forget all of it. Raises ChangedError if it differs from `seen`."""
        with self._replica.transaction():
            here = self.is_here(session)
            if here and seen is not None and self.seen(session) != seen:
                raise ChangedError(f"the session {session} is not what was read", hint="Read it again.")
            keys = self._everywhere.forget(session, reason, None if here else seen)
            if here:
                table.delete(self._replica.db.connection, self._mark(session))
        if here:
            self._off_the_disk()
        return Forgotten(keys, here or bool(keys))

    def _off_the_disk(self) -> None:
        """Erase deleted rows from the disk at once if they were in the clear (outside a transaction)."""
        if not self._replica.config.mode.sealed:
            self._replica.db.empty_log()

    # -- rows ----------------------------------------------------------------------------------------------------

    def _mark(self, session: str) -> bytes:
        text = f"{self._memories.scope}\0{session}".encode("utf-8", "surrogatepass")
        return blake2b(
            text, digest_size=16, key=self._replica.device.row_key, person=b"ipfsmem/session"
        ).digest()

    def _items(self, session: str) -> list[tuple[int, _Item]]:
        """Return all of a session, by number. Raises StorageError for a damaged row: an item would be missing in between."""
        if self._memories.forgotten():
            return []
        found = []
        for number, row in table.rows(self._replica.db.connection, self._mark(session)):
            one = _opened_if_sound(self._replica, row)
            if one is None:
                raise StorageError(
                    f"{self._replica.db.path} is damaged: a message of the session {session[:60]!r} is not what was written",
                    hint="Forget that session: ipfsmem session delete SESSION.",
                )
            found.append((number, one))
        return found

    def _last_of_each(self) -> list[_Item]:
        """Return the last undamaged item of each session of this scope."""
        if self._memories.forgotten():
            return []
        return [one for _, one in _newest_of_each(self._replica) if one.scope == self._memories.scope]
