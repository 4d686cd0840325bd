"""Writes the memories of one scope on one device: write, forget, resolve, approve, restore.

`MemoryStore` reads too, by `memory_reader`. Every write goes through `writing` and replaces what its writer was shown. Nothing
here touches a network.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.bundle.keys import check_key
from ipfsmem.bundle.memory_file import MAX_FILE, MemoryFile, parse_memory
from ipfsmem.causal.entries import memory_entry
from ipfsmem.causal.value import FORGOTTEN, Entry
from ipfsmem.causal.view import KeyView, siblings
from ipfsmem.device.replica import Replica
from ipfsmem.device.texts_of_others import with_retained_own
from ipfsmem.errors import ChangedError, FormatError, IpfsmemError, LimitError, NotFoundError, UsageError
from ipfsmem.memories.memory_reader import MemoryReader, text_not_fetched
from ipfsmem.memories.memory_records import (
    SEEN_LEAST,
    Conflict,
    MemoryRecord,
    Seen,
    Token,
    first_own,
    place_of,
    token_hash,
)

if TYPE_CHECKING:
    from ipfsmem.device.writing import Writing
    from ipfsmem.sessions.compaction import Place

#: Minimum bytes of a text that is checked before the transaction begins: a shorter text is checked in less than a millisecond.
LONG = 64 * 1024


class WriteBasis(msgspec.Struct, frozen=True):
    """The basis of a write: the text that its caller was shown (None: no text), and the dots that the write replaces."""

    data: bytes | None
    dots: Token


class EntryContext:
    """One memory within a transaction: its entry, siblings and view, each computed once. Outdated after a write."""

    def __init__(self, store: MemoryStore, change: Writing, key: str) -> None:
        self.store = store
        self.change = change
        self.key = key
        self.name = memory_entry(key, store.scope)
        #: The entry in the state, including the writes of this transaction.
        self.entry: Entry = change.entry(self.name)
        #: The entry, with the last own text if others replaced all own texts.
        self.siblings: Entry = with_retained_own(store.replica, self.name, self.entry)
        self._view: KeyView | None = None

    @property
    def view(self) -> KeyView:
        """The view that a reader is shown."""
        if self._view is None:
            self._view = self.store._view_of(self.key, self.siblings, self.change.body)
        return self._view

    @property
    def shown(self) -> MemoryRecord | None:
        """The shown text, or None."""
        return self.store._reading(self.view, self.siblings)


class MemoryStore(MemoryReader):
    """Reads and writes the memory files of one scope of a replica."""

    def __init__(self, replica: Replica, scope: str = "", sibling: MemoryReader | None = None) -> None:
        """`sibling`: the memories of another scope of the same replica, whose caches are shared."""
        super().__init__(replica, scope, sibling)
        replica.watch_part = _watch_part

    def write(
        self,
        key: str,
        data: bytes | Callable[[bytes | None], bytes],
        *,
        seen: Seen | None = None,
        if_match: str | None = None,
        long: bool = False,
    ) -> MemoryRecord:
        """Write the text of a memory, durable on return; returns the text that is shown afterwards. Writing the same text changes
        nothing.

        The text replaces what `seen` refers to; without `seen`, it replaces the shown own text, and becomes a sibling of a text of
        others. `data` may be a function that is called with the text that the caller was shown (None: no text) and returns the new
        text. `if_match`: the SHA-256 that the current text must have, "" for no text. `long`: the result of a function may be long,
        so it is checked before the transaction begins.

        Raises ChangedError if the current text does not match `if_match`, if `seen` is the hash of a text that is not shown, if a
        text of a token `seen` was replaced, and if the memory was forgotten meanwhile, because the forget would hide the text.
        Raises NotFoundError if a function needs a text that is not fetched.
        """
        if long or (isinstance(data, bytes) and len(data) > LONG):
            self._look_ahead(key, data, seen)
        with self.changing("write", key) as change:
            return self._write(EntryContext(self, change, key), data, seen, if_match)

    def _look_ahead(
        self, key: str, data: bytes | Callable[[bytes | None], bytes] | None, seen: Seen | None
    ) -> None:
        """Check a long text while other processes may write. The transaction checks it again if it changed meanwhile. Errors are
        raised by the write."""
        if not isinstance(data, bytes):
            from ipfsmem.device.writing import Writing

            with contextlib.suppress(IpfsmemError), self.replica.reading():
                shown = self.before(EntryContext(self, Writing(self.replica), key), seen).data
                data = shown if data is None else data(shown)
        if isinstance(data, bytes) and LONG < len(data) <= MAX_FILE:
            self.replica.codec.look_ahead(data)

    @contextlib.contextmanager
    def changing(self, operation: str, key: str) -> Iterator[Writing]:
        """Run one transaction that changes one memory, and can be undone. Raises KeyNameError."""
        from ipfsmem.device.last_change import note_change
        from ipfsmem.device.writing import writing

        name = self.checked_name(key)
        if operation in ("write", "forget"):
            self.check_replaceable(key)
        with writing(self.replica) as change:
            before = change.entry(name)
            yield change
            note_change(change, operation, name, before)

    def check_replaceable(self, key: str) -> None:
        """Raise UsageError for a part of a session that marks messages as pending: replacing it would approve them."""
        if not key.startswith("session-"):
            return
        from ipfsmem.memories.session_reader import SessionReader

        session = SessionReader(self).pending_by(key)
        if session is not None:
            raise UsageError(
                f"{key} says which messages of the session {session[:60]!a} are pending; without it agents are given them. "
                "Forget the session as a whole"
            )

    def shown_in(self, change: Writing, key: str) -> MemoryRecord | None:
        """Return the shown text of a key, including the writes of this transaction; None if no text is shown."""
        return EntryContext(self, change, key).shown

    def shown_in_stack(self, change: Writing, key: str) -> MemoryRecord | None:
        """Return the shown text of a key in this scope and the scopes redirected to it, including the writes of this
        transaction."""
        return first_own(part.shown_in(change, key) for part in self.stack())

    def write_over(self, change: Writing, key: str, data: bytes, shown: MemoryRecord | None) -> MemoryRecord:
        """Write a text over the result of `shown_in_stack`. A text of another scope stays there; the new text takes precedence."""
        seen = shown if shown is not None and shown.scope == self.scope else None
        return self.write_in(change, key, data, seen=seen)

    def write_in(
        self,
        change: Writing,
        key: str,
        data: bytes | Callable[[bytes | None], bytes],
        *,
        seen: Seen | None = None,
        if_match: str | None = None,
    ) -> MemoryRecord:
        """Write as `write`, in the caller's transaction."""
        return self._write(EntryContext(self, change, check_key(key)), data, seen, if_match)

    def _write(
        self,
        here: EntryContext,
        data: bytes | Callable[[bytes | None], bytes],
        seen: Seen | None,
        if_match: str | None,
    ) -> MemoryRecord:
        if if_match is not None:
            _check_match(here.key, here.view, if_match)
        if isinstance(data, bytes):
            dots = self._dots(here, seen)
        else:
            before = self.before(here, seen)
            data, dots = data(before.data), before.dots
        file = check_body(here.key, data)
        new = self._put(here, data, dots)
        if new is not None:
            here = EntryContext(self, here.change, here.key)
        shown = self._reading(here.view, here.siblings, file if here.view.data is data else None)
        if shown is not None or new is None:
            return shown or MemoryRecord.of(here.key, data, tuple(here.siblings), scope=self.scope)
        # A text with a greater clock is known but not fetched: return the written text.
        hlc = here.siblings[new].h
        return MemoryRecord.of(here.key, data, (new,), device=new[:16], hlc=hlc, scope=self.scope)

    def before(self, here: EntryContext, seen: Seen | None) -> WriteBasis:
        """Return the text that `seen` refers to, and the dots that a write with `seen` replaces."""
        dots = self._dots(here, seen)
        if isinstance(seen, MemoryRecord):
            return WriteBasis(seen.data, dots)
        if isinstance(seen, Conflict):
            if seen.shown is None and not seen.forgotten:
                raise text_not_fetched(self.replica, here.key)
            return WriteBasis(seen.shown.data if seen.shown is not None else None, dots)
        if seen is None:
            view = here.view
            if not view.own:
                return WriteBasis(None, ())
        else:
            if not set(dots) <= here.siblings.keys():
                raise ChangedError(f"the text of {here.key} that was read was replaced meanwhile")
            view = self.view(here.key, {dot: here.siblings[dot] for dot in dots}, here.change.body)
        if view.data is None and view.not_fetched:
            raise text_not_fetched(self.replica, here.key, view.not_fetched)
        return WriteBasis(view.data, dots)

    def _dots(self, here: EntryContext, seen: Seen | None) -> Token:
        """Return the dots that a write replaces."""
        if isinstance(seen, MemoryRecord | Conflict):
            if (seen.scope, seen.key) != (self.scope, here.key):
                raise UsageError(
                    f"seen is of the memory {place_of(seen.scope, seen.key)}, not {place_of(self.scope, here.key)}"
                )
            return seen.token
        if isinstance(seen, tuple):
            return seen
        view = here.view
        if seen is None:
            return view.dots if view.own else ()
        if len(seen) < SEEN_LEAST:
            raise UsageError(f"seen must have at least {SEEN_LEAST} hex digits")
        for token in (view.dots, self.conflict_of(view, here.siblings).token):
            if token_hash(token).startswith(seen.lower()):
                return token
        raise ChangedError(f"{here.key} changed since it was read", hint="Read it again.")

    def _put(self, here: EntryContext, data: bytes, dots: Token) -> str | None:
        """Write a text; returns the new dot, None if the memory has this text already."""
        entry = here.entry
        if len(entry) == 1 and set(dots) >= entry.keys():
            (value,) = entry.values()
            if value.body == sha256(data).hexdigest():
                return None
        self._check_not_hidden(here.key, entry, dots)
        return here.change.put(here.name, data, dots)

    def _check_not_hidden(self, key: str, entry: Entry, dots: Token) -> None:
        """Refuse a text that would be hidden by a forget which its writer has not seen."""
        for dot, value in entry.items():
            if value.kind == FORGOTTEN and dot not in dots and self.is_own(dot, ""):
                raise ChangedError(
                    f"{key} was forgotten meanwhile, so nothing was written",
                    hint="To create it again, write without seen.",
                )

    def forget(self, key: str, *, seen: Seen | None = None, if_match: str | None = None) -> bool:
        """Forget a memory; returns False if there was nothing to forget.

        All texts that this device knows are removed. With `seen`, only the texts that `seen` refers to are removed; the others are
        hidden by the forget and listed as conflicts.
        """
        name = self.checked_name(key)
        with self.changing("forget", key) as change:
            entry = change.entry(name)
            view = self.view(key, entry)
            if if_match is not None:
                _check_match(key, view, if_match)
            if view.forgotten or not entry:
                return False
            dots = tuple(dot for sibling in siblings(entry) for dot in sibling.dots)
            change.forget(name, dots if seen is None else self._dots(EntryContext(self, change, key), seen))
            from ipfsmem.device.dreams import forget_in_dreams  # needed only to forget

            forget_in_dreams(self.replica, self.scope, key)
            return True

    def resolve(self, key: str, data: bytes | None, seen: Seen) -> MemoryRecord | None:
        """Resolve a conflict: `data` replaces the texts in `seen` and no others; returns the text that is shown afterwards.

        `data` None keeps the shown text, or the forget of the memory or its scope (then returns None). Raises NotFoundError, also
        for a text in a forgotten scope, and ChangedError.
        """
        name = self.checked_name(key)
        self._look_ahead(key, data, seen)
        with self.changing("resolve", key) as change:
            here = EntryContext(self, change, key)
            if not here.entry:
                raise NotFoundError(f"there is no memory {key}")
            forgotten = self.forgotten()
            if data is not None and forgotten:
                change.check_scope(self.scope)
            dots = self._dots(here, seen)
            if data is None:
                shown = {dot: here.siblings[dot] for dot in dots if dot in here.siblings}
                if forgotten or self.view(key, shown, change.body).forgotten:
                    change.forget(name, dots)
                    return None
                data = self.before(here, seen).data
                if data is None:
                    raise NotFoundError(f"{key} has no text to keep", hint=f"Look: ipfsmem conflicts {key}")
            return self._write(here, data, dots, None)

    def promote(self, key: str, file: str | None = None) -> MemoryRecord:
        """Approve a text of others, which becomes an own text: the conflict copy `file`, or the only pending text.

        The approved text replaces the shown text and the pending one. Never call this for a model, an API token, an adapter or a
        folder (format section 5.2). Raises NotFoundError, and UsageError if several texts are pending.
        """
        with self.changing("promote", key) as change:
            return self.promote_in(change, key, file)

    def promote_in(self, change: Writing, key: str, file: str | None = None) -> MemoryRecord:
        """Approve as `promote`, in the caller's transaction."""
        name = self.name(key)
        entry = self.entry(key, change.entry(name))
        view = self.view(key, entry)
        if view.own and file is None and len(view.others) > 1:
            raise UsageError(
                f"{key} has {len(view.others)} pending texts: choose one",
                hint=f"List them: ipfsmem conflicts {key}",
            )
        if view.own and file is None and view.others:
            file = view.others[0].file
        copy = next((one for one in view.others if one.file == file), None)
        if file is not None and copy is None:
            raise NotFoundError(
                f"{key} has no pending text {file}", hint="List them with: ipfsmem conflicts."
            )
        data = self.replica.store.body(name, entry[copy.dot]) if copy is not None else view.data
        if data is None:
            if copy is None and not view.not_fetched:
                raise NotFoundError(f"there is no memory {key}")
            raise text_not_fetched(self.replica, key, copy.dots if copy is not None else view.not_fetched)
        if copy is not None or not view.own:
            dots = (*view.dots, *(copy.dots if copy is not None else ()))
            change.put(name, data, tuple(dict.fromkeys(dots)), promoted=True)
        return self.shown_in(change, key) or MemoryRecord.of(
            key, data, tuple(change.entry(name)), scope=self.scope
        )

    def restore(
        self,
        key: str,
        data: bytes,
        of: str = "",
        *,
        seen: Seen | None = None,
        pending: frozenset[Place] | None = frozenset(),
    ) -> MemoryRecord:
        """Write an earlier text with its author `of`: it replaces what `seen` refers to ("": no text), by default the current text
        or the forget. `pending`: for a part of a session, as in `part_guard.check_restored`. Raises ChangedError, UsageError."""
        check_body(key, data)
        with self.changing("restore", key) as change:
            here = EntryContext(self, change, key)
            if seen == "":
                _check_match(key, here.view, "")
            dots = self._dots(here, None if seen == "" else seen)
            self._check_not_hidden(key, here.entry, dots)
            if not of and key.startswith("session-"):
                from ipfsmem.memories.part_guard import check_restored  # as in `_watch_part`

                check_restored(self, change, key, data, pending)
            new = change.put(self.name(key), data, dots, of=of, promoted=not of)
            return self.shown_in(change, key) or MemoryRecord.of(key, data, (new,), scope=self.scope)


def _watch_part(change: Writing, name: str) -> Callable[[], None] | None:
    from ipfsmem.memories.part_guard import watch_part  # needed only for a change of a part of a session

    return watch_part(change, name)


def check_body(key: str, data: bytes) -> MemoryFile:
    """Parse a text. Raises an error for an invalid memory: a bad key, not UTF-8, too long, a header over 4 KiB."""
    check_key(key)
    if len(data) > MAX_FILE:
        raise LimitError(
            f"{key} would have {len(data)} bytes, at most {MAX_FILE} are allowed",
            hint="Split it into two memories.",
        )
    try:
        return parse_memory(data)
    except FormatError as error:
        raise type(error)(f"{key}: {error}") from None


def _check_match(key: str, view: KeyView, if_match: str) -> None:
    now = "" if view.data is None else sha256(view.data).hexdigest()
    if if_match and len(if_match) < 8:
        raise UsageError("if-match must be a SHA-256 of at least 8 hex digits, or empty for a new memory")
    if not if_match and now:
        raise ChangedError(
            f"there is a memory {key} already, so nothing was changed",
            hint="Read it first, or choose another key.",
        )
    if not now.startswith(if_match.lower()):
        there = f"it has SHA-256 {now}" if now else "there is no memory of that key"
        raise ChangedError(f"{key} changed since it was read: {there}")
