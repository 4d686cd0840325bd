"""`memory.values`: values under free keys, each a memory file."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.bundle.value_file import LEVEL, LEVELS, check_name, value_of
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.config import settings
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.fact_history import earlier
from ipfsmem.memories.facts import Facts, keep_removed
from ipfsmem.memories.values import Value, Values, check_level
from ipfsmem.parts.forgetting import forget_removed
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.texts import MemoryTexts
from ipfsmem.parts.vault_handle import VaultHandle
from ipfsmem.wording import count


class EarlierValue(msgspec.Struct, frozen=True):
    """A value that a key had. `number`: what `restore` takes, 1 is the newest; `until`: when it went, in milliseconds since 1970 UTC;
    `why`: `updated`, `deleted`, or replaced when another was `restored`. One that another device wrote at the same time is `conflict`, with
    number 0 and the moment at which it was written: `resolve` settles it."""

    number: int
    key: str
    value: Any
    until: int
    why: str


class MemoryValues(MemoryPart):
    """The values of one scope. A key is 1 to 256 bytes of any characters; a value is a text, or anything that JSON can say."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    def set(
        self,
        key: str,
        value: Any,
        *,
        level: str | None = None,
        ttl: float | None = None,
        seen: str | None = None,
    ) -> Value:
        """Give a key a value, durable when this returns; the value before goes into its history.

        `level`: user, session or agent, "" for none; `ttl`: seconds until it expires, 0 for never. What is None stays. `seen`: only in
        the place of the value that has it, "" for none. Raises UsageError, ChangedError, LimitError.
        """
        check_name(key)
        fields: dict[str, str] = {}
        if level is not None:
            fields[LEVEL] = check_level(level, LEVELS)
        if ttl is not None:
            fields["expires"] = self._ends(ttl)
        self._open.ingest_edits()
        made = self._values().set(key, value, fields, seen)
        self._open.render_file(made.memory, self._target())
        return made

    def get(self, key: str) -> Value | None:
        """The value of a key; None where there is none, or it expired. Raises UsageError."""
        self._open.ingest_edits()
        return self._values().get(key)

    def list(
        self, prefix: str = "", *, level: str | None = None, expired: bool = False
    ) -> builtins.list[Value]:
        """The values whose keys begin with `prefix`, by key; `expired`: those that expired and were not swept yet. Raises UsageError for
        an unknown level."""
        if level is not None:
            check_level(level, LEVELS)
        self._open.ingest_edits()
        return self._values().list(prefix, level, expired=expired)

    def delete(self, key: str, *, seen: str | None = None) -> Value:
        """Delete the value of a key, on every device, so that `restore` brings it back. Raises NotFoundError, ChangedError."""
        found = self.get(key)
        if found is None:
            raise NotFoundError(
                f"no value for the key {key[:80]!a}", hint="List the keys: ipfsmem value list"
            )
        self._delete(found, seen)
        return found

    def clear(
        self, *, prefix: str | None = None, level: str | None = None, keys: builtins.list[str] | None = None
    ) -> builtins.list[str]:
        """Delete the values whose keys begin with `prefix`, of a level, or of these keys; what is given together must all be true. The
        keys that had one. Raises UsageError where nothing is given; ChangedError, once all others are deleted, for what somebody
        changed meanwhile."""
        if prefix is None and level is None and keys is None:
            raise UsageError("no values selected: give keys, a prefix or a level")
        if level is not None:
            check_level(level, LEVELS)
        wanted = None if keys is None else {check_name(key) for key in keys}
        found = [
            one
            for one in self.list(prefix or "", level=level)
            if one.own and (wanted is None or one.key in wanted)
        ]
        gone, changed = self._delete_each(found)
        if changed:
            raise ChangedError(
                f"{count(len(changed), 'value')} changed meanwhile and stay: {', '.join(name[:80] for name in changed[:5])}; "
                f"deleted: {len(gone)}"
            )
        return gone

    def sweep(self) -> builtins.list[str]:
        """Delete the values that expired; their keys. One that is set anew meanwhile stays."""
        return self._delete_each([one for one in self.list(expired=True) if one.own])[0]

    def _delete_each(self, found: Iterable[Value]) -> tuple[builtins.list[str], builtins.list[str]]:
        """Delete these; the keys of those that are gone, and of those that changed since they were read."""
        gone, changed = list[str](), list[str]()
        for one in found:
            try:
                self._delete(one, one.seen)
            except ChangedError:
                changed.append(one.key)
            except NotFoundError:  # somebody else deleted it
                continue
            else:
                gone.append(one.key)
        return gone, changed

    def history(self, key: str) -> builtins.list[EarlierValue]:
        """The earlier values of a key, the newest first; before them its conflicts."""
        self._open.ingest_edits()
        memory = self._values().place(key)
        beside = [
            EarlierValue(0, key, value_of(one.readable), hlc_ms(one.hlc) if one.hlc else 0, "conflict")
            for one in self._values().copies(key)
        ]
        return beside + [
            EarlierValue(number, key, value_of(parse_memory(one.data)), one.until, one.why)
            for number, one in enumerate(earlier(self._texts().memories, memory), 1)
        ]

    def restore(self, key: str, number: int = 1, *, seen: str | None = None) -> Value:
        """Bring an earlier value of a key back, counted from the newest; the present one goes into the history. Raises NotFoundError,
        ChangedError."""
        memory = self._values().place(key)
        if not earlier(self._texts().memories, memory):
            raise NotFoundError(f"no earlier value of the key {key[:80]!a}")
        self._open.ingest_file(memory, self._target())
        reading = Facts(self._open.memories.in_scope(self._target()), settings().facts).restore(
            memory, number, seen
        )
        self._open.render_file(memory, self._target())
        return self._values().value(reading)

    def _delete(self, one: Value, seen: str | None) -> None:
        self._open.ingest_file(one.memory, self._target())
        removed = keep_removed(self._texts().memories, one.memory, seen)
        forget_removed(self._open, removed, "value deleted; it can be restored")

    def _ends(self, ttl: float) -> str:
        if not ttl:
            return ""
        if not ttl >= 0:  # also refuses NaN
            raise UsageError(f"ttl is 0 or more seconds (got {ttl:g})")
        try:
            ends = datetime.fromtimestamp(self._replica.world.now() / 1000, UTC) + timedelta(seconds=ttl)
        except OverflowError:
            raise UsageError(f"ttl ends after the year 9999 (got {ttl:g} seconds)") from None
        return ends.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _target(self) -> str:
        return self._open.scopes.target(self._scope) if self._scope else ""

    def _texts(self) -> MemoryTexts:
        return MemoryTexts(self._open, self._target())

    def _values(self) -> Values:
        return Values(self._open.memories.in_scope(self._target()))
