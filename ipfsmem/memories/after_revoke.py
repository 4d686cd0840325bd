"""Values that a revoked member wrote beyond what was accepted when it was revoked: a list for a person to look at.

Format section 4. Nothing is hidden or taken away: a value that somebody joined stays until somebody writes over it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ipfsmem.causal.entries import entry_place
from ipfsmem.device.state import Store


def late_values(store: Store, cutoffs: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """(place, member id, dot) of every value of a revoked id whose counter lies beyond its cutoff, in order.

    `place` is the entry in a person's words (`entry_place`). Inside of `reading`.
    """
    # What a state has seen of an id bounds what it can hold of it: mostly that settles it without a look at entries.
    if all(store.frame.ctx.get(member, 0) <= n for member, n in cutoffs.items()):
        return []
    found = []
    for name, entry in store.entries():
        for dot in entry:
            member = dot[:16]
            if int(dot[17:]) > cutoffs.get(member, 1 << 62):
                found.append((entry_place(name), member, dot))
    return sorted(found)
