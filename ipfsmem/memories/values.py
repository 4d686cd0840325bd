"""Reads and writes key-value pairs of one scope: memory files whose header has the key (`bundle/value_file`).

A replaced or deleted value is stored in the history of its memory in the same transaction, and can be restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ipfsmem.bundle.index import IndexItem, index_line
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.value_file import LEVEL, TAG, is_memory_key, memory_key, name_of, value_file, value_of
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.errors import ChangedError, NotFoundError
from ipfsmem.memories.fact_history import keep_in
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_reader import NotHereError
from ipfsmem.memories.memory_records import MemoryRecord, first_own
from ipfsmem.memories.search_index import index_of

#: The category of values that earlier versions imported.
_IMPORTED = "kv"


list_ = list  # `Values.list` shadows the builtin inside the class


class KeyValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value. `key`: the name that its writer chose; `memory`: the key of its memory; `changed`: the last write in milliseconds
    since 1970 UTC; `expires`: ISO 8601, "" for never; `seen`: for a write that replaces only this value; `conflicts`: the file
    names of alternatives that could not be merged."""

    key: str
    value: Any
    memory: str
    scope: str
    level: str
    created: str
    changed: int
    expires: str
    own: bool
    seen: str
    conflicts: tuple[str, ...] = ()


class Values:
    """The values of one scope and of the scopes redirected to it."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories
        self._parts = memories.stack()
        self._replica = memories.replica

    def get(self, name: str) -> KeyValue | None:
        """Return the value of a key; None if it has no value or the value expired."""
        value = self._value_in(self.place(name))
        return None if value is None or value.key != name or self._expired(value) else value

    def list(self, prefix: str = "", level: str | None = None, *, expired: bool = False) -> list_[KeyValue]:
        """Return the values with a key prefix, by key. `expired`: return expired values instead."""
        values = (self._value_in(key) for key in self._keys())
        chosen = {
            one.key: one
            for one in sorted(
                filter(None, values),
                key=lambda one: (one.own, one.memory == memory_key(one.key), one.changed),
            )
            if one.key.startswith(prefix) and level in (None, one.level) and self._expired(one) is expired
        }
        return [chosen[name] for name in sorted(chosen)]

    def set(self, name: str, value: Any, fields: Mapping[str, str], seen: str | None = None) -> KeyValue:
        """Set the value of a key, and store the earlier value in its history. `seen`: the hash that the current text must have, ""
        for no text. Raises UsageError, ChangedError."""
        key = self.place(name)
        now = self._replica.environment.now()
        with self._memories.changing("write", key) as change:
            shown = self._memories.shown_in_stack(change, key)
            _check_seen(name, shown.seen if shown is not None and shown.own else "", seen)
            old = parse_memory(shown.data) if shown is not None and shown.own else None
            if shown is not None and old is not None:
                if name_of(old, key) != name:
                    raise ChangedError(f"another memory is at {key}, so the value was not written")
                if value_file(name, value, fields, old) == shown.data:
                    return self.value(shown)
                keep_in(change, self._memories, key, shown.data, "updated")
            today = self._replica.environment.today().isoformat()
            dates = {"created": old.created if old and old.created else _instant(now), "updated": today}
            data = value_file(name, value, {**fields, **dates}, old)
            reading = self._memories.write_over(change, key, data, shown if old is not None else None)
        return self.value(reading)

    def place(self, name: str) -> str:
        """Return the key of the memory that has the value, or for a new value that of the memory to write."""
        key = memory_key(name)
        with self._replica.reading():
            shows = any(part.shows(key) for part in self._parts)
        if shows and ((value := self._value_in(key)) is None or value.key == name):
            return key
        title = index_line(IndexItem(key, name))[1].partition("](")[0]
        for one, line in self._lines().items():
            # Imported by an earlier version, or renamed by hand.
            elsewhere = not is_memory_key(one) or line.startswith(f"{title}](")
            if elsewhere and (value := self._value_in(one)) and value.key == name and value.own:
                return one
        return key

    def _keys(self) -> list_[str]:
        return list_(self._lines())

    def _lines(self) -> dict[str, str]:
        """Return the lines in MEMORY.md of memories that may hold a value, by key."""
        with self._replica.reading():
            entries = index_of(self._parts).held
        keys = (key for key, one in entries.items() if TAG in one.tags or one.category == _IMPORTED)
        return {key: entries[key].line for key in sorted(keys)}

    def _value_in(self, key: str) -> KeyValue | None:
        try:
            with self._replica.reading():
                reading = first_own(
                    part.reading_of(key, self._replica.store.entry(part.name(key)))
                    for part in self._parts
                    if not part.forgotten()
                )
        except NotHereError:
            return None
        if reading is None or (name := name_of(reading.readable, key)) is None:
            return None
        # A text of others is trusted only if its memory key is derived from its key.
        return self.value(reading) if reading.own or key == memory_key(name) else None

    def value(self, reading: MemoryRecord) -> KeyValue:
        file = reading.readable
        name = name_of(file, reading.key)
        if name is None:
            raise NotFoundError(f"{reading.key} shows the text of another device")
        return KeyValue(
            key=name,
            value=value_of(file),
            memory=reading.key,
            scope=reading.scope,
            level=file.fields.get(LEVEL, ""),
            created=file.created,
            changed=hlc_ms(reading.hlc) if reading.hlc else 0,
            expires=file.expires,
            own=reading.own,
            seen=reading.seen,
            conflicts=reading.conflicts,
        )

    def copies(self, name: str) -> list_[MemoryRecord]:
        """Return the alternatives of a key that could not be merged and are on this device."""
        key = self.place(name)
        with self._replica.reading():
            conflicts = [
                part.conflict_of(*part.view_and_siblings(key, self._replica.store.entry(part.name(key))))
                for part in self._parts
            ]
        return [copy.reading for one in conflicts for copy in one.copies if copy.reading is not None]

    def _expired(self, one: KeyValue) -> bool:
        return bool(one.expires) and is_past(one.expires, self._replica.environment.now())


def is_past(expires: str, now: int) -> bool:
    """Return whether an ISO 8601 instant, or the end of an ISO 8601 day in UTC, is past. False for any other text."""
    try:
        ends = datetime.fromisoformat(expires)
    except ValueError:
        return False
    if len(expires) <= len("2026-01-01"):
        ends = ends.replace(hour=23, minute=59, second=59, microsecond=999_000)
    ends = ends.replace(tzinfo=UTC) if ends.tzinfo is None else ends
    return ends.timestamp() * 1000 <= now


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _check_seen(name: str, shown: str, seen: str | None) -> None:
    if seen is not None and seen != shown:
        raise ChangedError(f"{name[:80]} changed since it was read, so nothing was changed")
