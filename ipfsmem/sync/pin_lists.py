"""Decide when to read a pin list although names exist, and which of its roots to open (format sections 5, 7).

Keeps one row per list, and opens no root.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from hashlib import sha256
from typing import Final, Self

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import heads, meta, placed
from ipfsmem.errors import IpfsmemError, ProviderError
from ipfsmem.provider.contract import Pin, Provider
from ipfsmem.sync.times import HOUR_MS, passed

#: Interval between reads of a list: one request an hour, whatever is published.
AGAIN_MS: Final = HOUR_MS
#: Maximum number of roots opened per read, newest first; the rest at later reads.
AT_ONCE: Final = 128


async def readable_pins(provider: Provider, name: str) -> tuple[list[Pin], ProviderError | None]:
    """Return the pins under a name as far as they could be read, and why the rest could not."""
    try:
        return await provider.pins(name), None
    except ProviderError as error:
        return list(error.pins), error


async def lists_root(provider: Provider, name: str, roots: Container[CID]) -> bool:
    """Tell whether a provider lists one of `roots` under a name. Raises ProviderError if only an unread part could."""
    pins, unread = await readable_pins(provider, name)
    listed = any(pin.cid in roots for pin in pins)
    if unread is not None and not listed:
        raise unread
    return listed


class _Look(msgspec.Struct):
    """One provider's list: when it was read, and which of its roots were used or refused under which ring."""

    at: int = 0
    used: list[str] = []
    refused: list[str] = []
    ring: str = ""


class ListReads:
    """This device's reads of pin lists, by provider."""

    def __init__(self, replica: Replica, looks: dict[str, _Look], *, unlocked: bool) -> None:
        self._replica = replica
        self._looks = looks
        self._unlocked = unlocked
        self._changed = False
        #: The contents of the list being read, by text.
        self._listed: dict[str, CID] = {}

    @classmethod
    def of(cls, replica: Replica, *, unlocked: bool) -> Self:
        """Load the reads of this device. `unlocked`: a root is unlocked, so every list is due."""
        stored = replica.db.get_meta(meta.LISTS)
        looks = read_json(stored, type=dict[str, _Look]) if stored else {}
        return cls(replica, looks, unlocked=unlocked)

    def is_due(self, provider: str) -> bool:
        """Tell whether to read this provider's list now. A read in the future comes from a clock that was set back."""
        look, now = self._looks.get(provider), self._replica.environment.now()
        return self._unlocked or look is None or passed(look.at, now, AGAIN_MS)

    def unseen(self, provider: str, roots: Iterable[CID]) -> list[CID]:
        """Return those of `roots` to open now, in order: neither read before nor known otherwise.

        Refused ones are read again when the ring has changed: their maker may have been unknown.
        """
        look = self._looks.get(provider) or _Look()
        seen = {*look.used, *(look.refused if look.ring == self._ring() else ()), *self._known()}
        self._listed = {str(root): root for root in roots}
        return [root for text, root in self._listed.items() if text not in seen][:AT_ONCE]

    def note(self, provider: str, opened: Iterable[CID], failed: Mapping[CID, IpfsmemError]) -> None:
        """Record the outcome for the roots of `unseen`. Unreadable ones are retried at the next read."""
        there = self._listed.keys()
        look = self._looks.get(provider) or _Look()
        ring = self._ring()
        used = {str(root) for root in opened if root not in failed}
        refused = {str(root) for root, why in failed.items() if not isinstance(why, ProviderError)}
        before = set(look.refused) if look.ring == ring else set()
        self._looks[provider] = _Look(
            self._replica.environment.now(),
            sorted((used | set(look.used)) & there),
            sorted((refused | before) & there),
            ring,
        )
        self._changed = True

    def keep(self) -> None:
        """Store the reads if any was recorded (inside a transaction)."""
        if self._changed:
            self._replica.db.set_meta(meta.LISTS, msgspec.json.encode(self._looks))

    def _ring(self) -> str:
        ring = self._replica.ring
        hashes = "".join(sorted(statement.hash for statement in ring.statements)) if ring is not None else ""
        return sha256(hashes.encode()).hexdigest()[:16]

    def _known(self) -> set[str]:
        db = self._replica.db.connection
        return placed.all_answered(db).union(heads.roots(db))
