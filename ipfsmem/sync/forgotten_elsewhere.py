"""What this device keeps beside the state goes with what another device forgot: sessions that stay here, of a forgotten scope, and what
dreams proposed or could take back of a forgotten memory or scope.

Whoever forgets something on this device does the same at once (`memories/`). This looks at what is kept, not at what a join changed, so
it also lets go of what an earlier version left.
"""

from __future__ import annotations

from ipfsmem.causal.entries import memory_entry
from ipfsmem.causal.value import FORGOTTEN
from ipfsmem.device.dreams import forget_in_dreams, spoken_of
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import scope_forgotten
from ipfsmem.memories.sessions_here import forget_sessions_here, scopes_with_sessions_here


def let_go_of_forgotten(replica: Replica) -> bool:
    """Let go of it (inside a transaction); whether there was anything."""
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
