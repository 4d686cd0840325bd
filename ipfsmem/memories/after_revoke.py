"""Values that a revoked member wrote after the cutoff of its revocation: a list for a person to review.

Format section 4. Such a value is not hidden or removed: once merged, it stays until somebody overwrites it.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec

from ipfsmem.causal.entries import entry_display_name, scope_of
from ipfsmem.device.replica import Replica


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a revoked member wrote after the cutoff of its revocation. `key`: a memory's key or `timeline/<day>`, with `<scope>/` before
    it in a scope. `revoked`: the id of the member. `dot`: the value."""

    place: str = msgspec.field(name="key")
    scope: str
    member: str = msgspec.field(name="revoked")
    dot: str


def late_writes(replica: Replica) -> list[Late]:
    """Return the current values that a revoked member wrote with a counter greater than its cutoff, in order."""
    ring = replica.ring
    if ring is None or not ring.view.cutoffs:
        return []
    cutoffs = ring.view.cutoffs
    with replica.reading():
        store = replica.store
        # The state records the greatest counter of each id: if it is not greater than the cutoff, no entry is read.
        if all(store.frame.ctx.get(member, 0) <= n for member, n in cutoffs.items()):
            return []
        late = [
            Late(place=entry_display_name(name), scope=scope_of(name), member=dot[:16], dot=dot)
            for name, entry in store.entries()
            for dot in entry
            if int(dot[17:]) > cutoffs.get(dot[:16], 1 << 62)
        ]
    return sorted(late, key=attrgetter("place", "member", "dot"))
