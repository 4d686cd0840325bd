"""When a pin list is looked at although names exist, and which of its roots: those that this device has not seen yet; and
which heads are held, and which could not be joined whole.

Format sections 5 and 7. It remembers, in a row each; it asks no provider and opens no root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, Self

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import heads, meta, placed
from ipfsmem.errors import IpfsmemError, ProviderError

#: A list is looked at again so long after the last look: one request an hour, whatever is published.
AGAIN_MS: Final = 3_600_000
#: Roots read at one look, newest first; on a device that has nothing yet only so many, the rest at later looks.
AT_ONCE: Final = 128
FRESH_AT_ONCE: Final = 8
#: Roots that are remembered as not whole: whoever may pin can list any number.
_MOST_STOOD: Final = 16
#: Heads of one device that are held: a device has no more copies than successors. One that signs more gets no more room.
HELD_AT_ONCE: Final = 8


class _Look(msgspec.Struct):
    """One provider's list: when it was looked at, and which of its roots were used or refused under which ring."""

    at: int = 0
    used: list[str] = []
    refused: list[str] = []
    ring: str = ""


class Looks:
    """What this device knows of the lists that it looked at."""

    def __init__(self, replica: Replica, looks: dict[str, _Look], *, unlocked: bool, fresh: bool) -> None:
        self._replica = replica
        self._looks = looks
        self._unlocked = unlocked
        self._most = FRESH_AT_ONCE if fresh else AT_ONCE
        self._changed = False
        #: What the list that is being looked at shows, by its text.
        self._listed: dict[str, CID] = {}

    @classmethod
    def of(cls, replica: Replica, *, unlocked: bool, fresh: bool) -> Self:
        """The looks of this device. `unlocked`: a root is at hand, so every list is due; `fresh`: it has no ring yet."""
        stored = replica.db.get_meta(meta.LISTS)
        looks = read_json(stored, type=dict[str, _Look]) if stored else {}
        return cls(replica, looks, unlocked=unlocked, fresh=fresh)

    def is_due(self, provider: str) -> bool:
        """Whether this provider's list is to be looked at now. A look in the future is of a clock that was set back."""
        look, now = self._looks.get(provider), self._replica.world.now()
        return self._unlocked or look is None or not now - AGAIN_MS < look.at <= now

    def unseen(self, provider: str, roots: Iterable[CID]) -> list[CID]:
        """Those of `roots` to be opened at this look, in their order: neither looked at before nor known otherwise. What
        was refused is read again when the ring has changed: it may be of a member that was not known."""
        look = self._looks.get(provider) or _Look()
        seen = {*look.used, *(look.refused if look.ring == self._ring() else ()), *self._known()}
        self._listed = {str(root): root for root in roots}
        return [root for text, root in self._listed.items() if text not in seen][: self._most]

    def note(self, provider: str, opened: Iterable[CID], failed: Mapping[CID, IpfsmemError]) -> None:
        """Remember the look that `unseen` was asked about. What nobody could give is read again at the next one."""
        there = self._listed.keys()
        look = self._looks.get(provider) or _Look()
        ring = self._ring()
        used = {str(root) for root in opened if root not in failed}
        refused = {str(root) for root, why in failed.items() if not isinstance(why, ProviderError)}
        before = set(look.refused) if look.ring == ring else set()
        self._looks[provider] = _Look(
            self._replica.world.now(),
            sorted((used | set(look.used)) & there),
            sorted((refused | before) & there),
            ring,
        )
        self._changed = True

    def keep(self) -> None:
        """Put it on the disk (inside a transaction)."""
        if self._changed:
            self._replica.db.set_meta(meta.LISTS, msgspec.json.encode(self._looks))

    def _ring(self) -> str:
        ring = self._replica.ring
        said = "".join(sorted(statement.hash for statement in ring.statements)) if ring is not None else ""
        return sha256(said.encode()).hexdigest()[:16]

    def _known(self) -> set[str]:
        db = self._replica.db.connection
        return placed.all_answered(db).union(heads.roots(db))


def named_before(replica: Replica) -> set[str]:
    """Digests of all commits that joined ones name as their past."""
    return heads.past(replica.db.connection)


def held_heads(replica: Replica) -> dict[CID, str]:
    """Verified heads that are held back because another copy of a device was joined, and which device that is."""
    stored = replica.db.get_meta(meta.HELD)
    rows = read_json(stored, type=dict[str, str]) if stored else {}
    return {parse_cid(root): device for root, device in rows.items()}


def hold(replica: Replica, root: CID, device: str) -> None:
    """Remember a held head (inside a transaction): of one device the first ones, and the last that came."""
    held = held_heads(replica)
    if root in held:
        return
    of_it = [one for one, whose in held.items() if whose == device]
    for one in of_it[HELD_AT_ONCE - 1 :]:
        del held[one]
    _keep_held(replica, {**held, root: device})


def not_whole(replica: Replica) -> list[CID]:
    """Roots that stood somewhere and could not be joined whole: a list is not looked at in every sync, and what is told of
    them, salvaged of them and not published because of them does not end with the next one."""
    stored = replica.db.get_meta(meta.NOT_WHOLE)
    return [parse_cid(root) for root in read_json(stored, type=list[str])] if stored else []


def keep_not_whole(replica: Replica, roots: Iterable[CID]) -> None:
    """Remember those that are not whole now (inside a transaction); they take the place of those before. The first count most."""
    kept = msgspec.json.encode(list(dict.fromkeys(str(root) for root in roots))[:_MOST_STOOD])
    if kept != (replica.db.get_meta(meta.NOT_WHOLE) or b"[]"):
        replica.db.set_meta(meta.NOT_WHOLE, kept)


def let_in(replica: Replica, root: CID) -> None:
    """A head is not held any more (inside a transaction)."""
    held = held_heads(replica)
    if held.pop(root, None) is not None:
        _keep_held(replica, held)


def _keep_held(replica: Replica, held: Mapping[CID, str]) -> None:
    replica.db.set_meta(meta.HELD, msgspec.json.encode({str(root): device for root, device in held.items()}))
