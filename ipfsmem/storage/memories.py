"""Memories of one scope as people and agents see them: read, list, write, forget, delete, on one device.

Everything is a view of the state (format section 5); every write goes through `writing` and replaces what its writer
was shown. A text that is not at hand is said to be "not fetched", never absent. Nothing here touches a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256

import msgspec

from ipfsmem.bundle.index import IndexItem, assemble_index, index_line
from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.bundle.memory_file import MAX_FILE, MemoryFile, parse_memory
from ipfsmem.causal.entries import memory_entry, memory_name
from ipfsmem.causal.value import Entry, Value, hash32
from ipfsmem.causal.view import KeyView, siblings, view_entry
from ipfsmem.errors import ChangedError, FormatError, LimitError, NotFoundError, UsageError
from ipfsmem.replica.many import blocks_here
from ipfsmem.replica.replica import Replica
from ipfsmem.replica.writing import Writing, writing
from ipfsmem.storage.shown import Overview, head_of


class Reading(msgspec.Struct, frozen=True):
    """One memory as it was shown: its bytes, and the token that a write which has seen it hands back."""

    key: str
    data: bytes
    #: The dots rendered in `data`; give it to `write` or `forget` as `seen`.
    token: tuple[str, ...]
    merged: bool = False
    conflicts: tuple[str, ...] = ()
    #: The device that wrote it, and its clock.
    device: str = ""
    hlc: str = ""

    @property
    def file(self) -> MemoryFile:
        """Header and body."""
        return parse_memory(self.data)

    @property
    def sha256(self) -> str:
        """What `if_match` compares."""
        return sha256(self.data).hexdigest()


class Listed(msgspec.Struct, frozen=True):
    """One line of a list: the header of a memory, and what a person should know about it."""

    key: str
    file: MemoryFile
    body: str | None
    merged: bool = False
    conflicts: int = 0
    fetched: bool = True


class Memories:
    """Reads and writes the memory files of one scope of a replica, the nameless one unless said otherwise."""

    def __init__(self, replica: Replica, scope: str = "", overview: Overview | None = None) -> None:
        """`overview`: that of another scope of the same replica, to share what it remembers."""
        self.replica = replica
        self.scope = check_scope(scope) if scope else ""
        #: What the memories of all scopes show, remembered by what they are.
        self.overview = overview or Overview(replica)
        self._heads: dict[str, MemoryFile] = {}

    def in_scope(self, scope: str) -> Memories:
        """The memories of another scope of this replica. Raises KeyNameError."""
        return self if scope == self.scope else Memories(self.replica, scope, self.overview)

    def name(self, key: str) -> str:
        """The name of a memory's entry; the key is not checked."""
        return memory_entry(key, self.scope)

    def checked_name(self, key: str) -> str:
        """The same for a key that somebody gave. Raises KeyNameError."""
        return self.name(check_key(key))

    # -- reading -----------------------------------------------------------------------------------------------

    def view(
        self,
        key: str,
        entry: Entry | None = None,
        body: Callable[[str, Value], bytes | None] | None = None,
    ) -> KeyView:
        """The view of one key. `body` finds texts that a transaction in progress has written, too."""
        store = self.replica.store
        name = self.name(key)
        entry = store.entry(name) if entry is None else entry
        if not entry:
            return KeyView(key)
        find = body or store.body

        def bodies(wanted: str) -> bytes | None:
            for value in entry.values():
                if value.body == wanted and (data := find(name, value)) is not None:
                    return data
            return None

        def bases(wanted: str) -> bytes | None:
            for value in entry.values():
                if value.b and value.b[0] == wanted and (data := store.base(name, value)) is not None:
                    return data
                if value.body is not None and hash32(value.body) == wanted:
                    return bodies(value.body)
            return None

        return view_entry(key, entry, bodies, bases)

    def read(self, key: str) -> Reading | None:
        """One memory, None when there is none (or it is forgotten). Raises NotFoundError when not fetched."""
        with self.replica.reading():
            entry = self.replica.store.entry(self.checked_name(key))
            return self._reading(self.view(key, entry), entry)

    def read_conflict(self, key: str, file: str) -> Reading:
        """A conflict copy by its file name, `<key>.conflict-<8 hex>.md`. Raises NotFoundError."""
        name = self.checked_name(key)
        with self.replica.reading():
            entry = self.replica.store.entry(name)
            view = self.view(key, entry)
            for copy in (*view.conflicts, *view.hidden):
                if copy.file == file:
                    value = entry[copy.dot]
                    data = self.replica.store.body(name, value)
                    if data is None:
                        raise _not_fetched(key, (copy.dot,))
                    return Reading(key, data, copy.dots, device=copy.dot[:16], hlc=value.h)
        raise NotFoundError(f"{key} has no conflict copy {file}", hint="List them with: ipfsmem conflicts.")

    def _reading(self, view: KeyView, entry: Entry) -> Reading | None:
        if view.data is None:
            if view.not_fetched:
                raise _not_fetched(view.key, view.not_fetched)
            return None
        assert view.dot is not None
        return Reading(
            view.key,
            view.data,
            view.dots,
            view.merged,
            tuple(copy.file for copy in view.conflicts),
            view.dot[:16],
            entry[view.dot].h,
        )

    def views(self) -> Iterator[tuple[Entry, KeyView]]:
        """All entries of memories with their views (inside `reading`)."""
        for key, entry in self.replica.store.memories(self.scope):
            yield entry, self.view(key, entry)

    def counts(self) -> tuple[int, int]:
        """How many memories `listing` would show, and how many of them are not fetched; opens no text to find out,
        except where there are several.
        """
        shown = not_fetched = 0
        single: list[bytes] = []
        with self.replica.reading():
            for key, entry in self.replica.store.memories(self.scope):
                if len(entry) == 1:
                    (value,) = entry.values()
                    if value.body is not None:
                        shown += 1
                        if value.loc is not None:
                            single.append(bytes.fromhex(value.loc.sha))
                        else:
                            not_fetched += 1
                else:
                    view = self.view(key, entry)
                    absent = view.data is None and bool(view.not_fetched)
                    shown += absent or view.data is not None
                    not_fetched += absent
            here = blocks_here(self.replica.db, single)
        return shown, not_fetched + sum(digest not in here for digest in single)

    def listing(self) -> list[Listed]:
        """All memories that are shown, ordered by key, headers only."""
        heads: dict[str, MemoryFile] = {}
        with self.replica.reading():
            found = [
                self._listed(key, entry, heads) for key, entry in self.replica.store.memories(self.scope)
            ]
        self._heads = heads
        return sorted((item for item in found if item is not None), key=lambda item: item.key)

    def _listed(self, key: str, entry: Entry, heads: dict[str, MemoryFile]) -> Listed | None:
        """The line of one entry. `heads` collects the headers met."""
        if len(entry) == 1:
            # The usual case: one text. Its header is kept by the hash of the body.
            (value,) = entry.values()
            if value.body is None:
                return None
            file = self._heads.get(value.body)
            if file is None:
                data = self.replica.store.body(self.name(key), value)
                file = head_of(data) if data is not None else None
            if file is not None:
                heads[value.body] = file
                return Listed(key, file, value.body)
        view = self.view(key, entry)
        if view.data is not None:
            return Listed(key, head_of(view.data), view.body, view.merged, len(view.conflicts))
        if view.not_fetched:
            return Listed(key, MemoryFile({"description": "not fetched"}, ""), view.body, fetched=False)
        return None

    def conflicts(self) -> list[tuple[KeyView, Entry]]:
        """Every key whose view hides or sets apart a sibling."""
        with self.replica.reading():
            found = []
            for name, entry in self.replica.store.crowded():
                parsed = memory_name(name)
                if parsed is not None and parsed.scope == self.scope:
                    view = self.view(parsed.key, entry)
                    if view.conflicts or view.hidden:
                        found.append((view, entry))
        return sorted(found, key=lambda item: item[0].key)

    def index(self, *, keep: bool = False) -> str:
        """The text of MEMORY.md. `keep`: see `Overview.look`."""
        with self.replica.reading():
            shown, others = self.overview.look(self.scope, keep=keep)
            lines = [(one.key, one.section, one.line) for one in shown]
            for name, entry in others.items():
                parsed = memory_name(name)
                if parsed is None:
                    continue
                line = self.overview.line(name, *entry.values()) if len(entry) == 1 else None
                if line is None and (item := self._listed(parsed.key, entry, {})) is not None:
                    line = index_line(_index_item(item.key, item.file))
                if line is not None:
                    lines.append((parsed.key, *line))
            attention = []
            for view, _ in self.conflicts():
                for copy in view.conflicts:
                    file = head_of(self.read_conflict(view.key, copy.file).data)
                    attention.append(_index_item(view.key, file, copy.file))
        return assemble_index(lines, attention)

    # -- writing -----------------------------------------------------------------------------------------------

    def write(
        self,
        key: str,
        data: bytes,
        *,
        seen: tuple[str, ...] | None = None,
        if_match: str | None = None,
    ) -> str | None:
        """Make `data` the text of a memory, durable when this returns. Returns the new dot, None when it is no news.

        It replaces the dots in `seen` (a Reading's token); without one, what is shown under the key now. `if_match`
        is the SHA-256 of the shown text ("" for none): raises ChangedError when it is another.
        """
        check_body(key, data)
        with writing(self.replica) as change:
            return self.write_in(change, key, data, seen=seen, if_match=if_match)

    def write_in(
        self,
        change: Writing,
        key: str,
        data: bytes,
        *,
        seen: tuple[str, ...] | None = None,
        if_match: str | None = None,
    ) -> str | None:
        """`write` inside a transaction that holds more."""
        name = self.name(key)
        entry = change.entry(name)
        view = self.view(key, entry)
        if if_match is not None:
            _check_match(key, view, if_match)
        replaces = view.dots if seen is None else seen
        if set(replaces) >= entry.keys() and len(entry) == 1:
            (value,) = entry.values()
            if value.body == sha256(data).hexdigest():
                return None
        return change.put(name, data, replaces)

    def forget(self, key: str, *, seen: tuple[str, ...] | None = None, if_match: str | None = None) -> bool:
        """Write the user's wish to forget. False when there was nothing to forget."""
        name = self.checked_name(key)
        with writing(self.replica) as change:
            entry = change.entry(name)
            view = self.view(key, entry)
            if if_match is not None:
                _check_match(key, view, if_match)
            if view.forgotten or not entry:
                return False
            # The wish is about the memory, not about one of its texts: what this device can see goes.
            known = tuple(dot for sibling in siblings(entry) for dot in sibling.dots)
            change.forget(name, known if seen is None else seen)
            return True

    def delete(self, key: str, *, seen: tuple[str, ...] | None = None) -> bool:
        """Delete what is shown (or `seen`), leaving nothing; other siblings stay."""
        name = self.checked_name(key)
        with writing(self.replica) as change:
            entry = change.entry(name)
            view = self.view(key, entry)
            replaces = view.dots if seen is None else seen
            if not entry or not set(replaces) & entry.keys():
                return False
            change.remove(name, replaces)
            return True

    def resolve(self, key: str, data: bytes | None, copies: list[str]) -> str | None:
        """Settle a conflict: `data` (None: the text shown now) replaces the shown text and these copies."""
        name = self.checked_name(key)
        with writing(self.replica) as change:
            entry = change.entry(name)
            view = self.view(key, entry)
            text = view.data if data is None else data
            if text is None:
                raise NotFoundError(f"{key} has no text to keep")
            check_body(key, text)
            return change.put(name, text, view.rendered(*copies))


def check_body(key: str, data: bytes) -> None:
    """Refuse what cannot be a memory: a bad key, not UTF-8, too long, a header over 4 KiB."""
    check_key(key)
    if len(data) > MAX_FILE:
        raise LimitError(
            f"{key} would have {len(data)} bytes, at most {MAX_FILE} are allowed",
            hint="Split it into two memories.",
        )
    try:
        parse_memory(data)
    except FormatError as error:
        raise type(error)(f"{key}: {error}") from None


def _check_match(key: str, view: KeyView, if_match: str) -> None:
    now = "" if view.data is None else sha256(view.data).hexdigest()
    if if_match and len(if_match) < 8:
        raise UsageError(
            "if-match takes a SHA-256 of at least 8 hex digits, or nothing for a memory that must be new"
        )
    if (not if_match and now) or not now.startswith(if_match.lower()):
        raise ChangedError(f"{key} is not what was read: it has SHA-256 {now or '(there is none)'}")


def _not_fetched(key: str, dots: tuple[str, ...]) -> NotFoundError:
    return NotFoundError(
        f"{key} is known but its text is not fetched yet (written by device {dots[0][:16]})",
        hint="Try again after: ipfsmem sync.",
    )


def _index_item(key: str, file: MemoryFile, name: str | None = None) -> IndexItem:
    return IndexItem(key, file.name, file.description, file.type, name)
