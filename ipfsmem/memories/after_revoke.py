"""Values that a revoked member wrote after the cutoff of its revocation: a list for a person to review.

Format section 4. Nothing is hidden or removed: a joined value stays until somebody overwrites it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ipfsmem.causal.entries import entry_place
from ipfsmem.device.state import Store


def late_values(store: Store, cutoffs: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """Return (place, member id, dot) of every value of a revoked id whose counter lies beyond its cutoff, in order.

    `place` is the entry in a person's words (`entry_place`). Inside `reading`.
    """
    # The counter that a state has seen of an id is an upper bound, which mostly settles it without reading entries.
    if all(store.frame.ctx.get(member, 0) <= n for member, n in cutoffs.items()):
        return []
    found = []
    for name, entry in store.entries():
        for dot in entry:
            member = dot[:16]
            if int(dot[17:]) > cutoffs.get(member, 1 << 62):
                found.append((entry_place(name), member, dot))
    return sorted(found)
