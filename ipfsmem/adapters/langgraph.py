"""A LangGraph `BaseStore` on an ipfsmem vault: long-term memory of graphs, sealed, synced and the same on every device.

    graph = builder.compile(store=store(memory))

Each item is one memory (`store_items`), so people, other agents and other devices can read, edit and forget it. There are no
vectors: a query is matched by its words. Extra: `langgraph`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.adapters.extras import extra
from ipfsmem.memory import Memory

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

__all__ = ["store"]


def store(memory: Memory) -> BaseStore:
    """Return a store for `compile(store=...)`. `memory`: a vault, or one scope of it (`memory.scope("x")`).

    It has no time to live: an item with one is refused, since a read would have to be a write on every device. Raises UsageError
    if the extra `langgraph` is not installed.
    """
    with extra("langgraph"):
        from ipfsmem.adapters.langgraph_store import LangGraphStore
    return LangGraphStore(memory)
