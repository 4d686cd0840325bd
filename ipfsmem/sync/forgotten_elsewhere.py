"""Remove local data about what another device forgot: local sessions of a forgotten scope, and dreams'
proposals and undo data for a forgotten memory or scope.

A local forget does the same at once (`memories/`). All local data is checked, not only what a join changed,
so leftovers of an earlier version are removed too.
"""

from __future__ import annotations

from ipfsmem.causal.entries import memory_entry
from ipfsmem.causal.value import FORGOTTEN
from ipfsmem.device.dreams import forget_in_dreams, spoken_of
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.memories.sessions_here import forget_sessions_here, scopes_with_sessions_here


def let_go_of_forgotten(replica: Replica) -> bool:
    """Remove it (inside a transaction); tell whether there was anything."""
    store, found = replica.store, False
    for scope in scopes_with_sessions_here(replica):
        if scope_forgotten(store, scope):
            forget_sessions_here(replica, scope)
            found = True
    for scope, keys in spoken_of(replica).items():
        if scope_forgotten(store, scope):
            forget_in_dreams(replica, scope)
            found = True
            continue
        for key in keys:
            if any(value.kind == FORGOTTEN for value in store.entry(memory_entry(key, scope)).values()):
                forget_in_dreams(replica, scope, key)
                found = True
    return found
