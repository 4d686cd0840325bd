"""The class behind `langgraph.store`: the interface of a store of the package `langgraph`, over the memories of one scope.

It subclasses a class of that package, so only this module imports it at the top; it is imported when a store is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from ipfsmem.adapters.store_items import (
    StoredItem,
    fits,
    item_of,
    matches,
    memory_key,
    render_item,
    share_found,
    value_of,
    words,
)
from ipfsmem.errors import UsageError
from ipfsmem.in_thread import in_thread
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memory import Memory


class LangGraphStore(BaseStore):
    """Items are the memories of one scope that have the header line of an item."""

    supports_ttl = False

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: all reads see the state before; then each item is written by its last `PutOp`, none if one cannot be
        written."""
        given = list(ops)
        puts: dict[str, PutOp] = {}
        for op in given:
            if isinstance(op, PutOp):
                _refuse_time_to_live(op)
                puts[memory_key(op.namespace, op.key)] = op
        results = [self._answer(op) for op in given]
        for write in [self._prepared(where, op) for where, op in puts.items()]:
            write()
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations as `batch`, in a thread."""
        return await in_thread(partial(self.batch, list(ops)))

    def _answer(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return list(self._search(op))
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _own(
        self, where: str, *, counts: bool = True
    ) -> tuple[MemoryRecord, StoredItem, dict[str, Any]] | None:
        """Return the item of a memory, with its value; None if it is not an item, or of others and not approved."""
        found = self._memory.read(where, counts=counts)
        item = item_of(where, found.file) if found is not None and found.own else None
        value = value_of(found.data) if found is not None and item is not None else None
        return None if found is None or item is None or value is None else (found, item, value)

    def _get(self, op: GetOp) -> Item | None:
        found = self._own(memory_key(op.namespace, op.key))
        if found is None:
            return None
        _, item, value = found
        return Item(
            value=value,
            key=item.key,
            namespace=item.namespace,
            created_at=item.created,
            updated_at=item.updated,
        )

    def _prepared(self, where: str, op: PutOp) -> Callable[[], object]:
        """Return the function that writes an item. Raises as `render_item`, before anything is written."""
        before = self._memory.read(where, counts=False)
        if op.value is None:
            if before is None or not before.own:
                return lambda: None
            return partial(self._memory.forget, where, seen=before)
        now = datetime.now(UTC)
        known = item_of(where, before.file) if before is not None and before.own else None
        text = render_item(op.namespace, op.key, op.value, known.created if known else now, now)
        return partial(self._memory.write_text, where, text, seen=before if known else None)

    def _items(self) -> list[tuple[str, StoredItem]]:
        """Return all items, last changed first."""
        listed = ((one.key, item_of(one.key, one.file)) for one in self._memory.list() if one.own)
        found = [(where, item) for where, item in listed if item is not None]
        found.sort(key=lambda one: one[0])
        return sorted(found, key=lambda one: one[1].updated, reverse=True)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        wanted = words(op.query)
        inside = [where for where, item in self._items() if item.namespace[: len(prefix)] == prefix]
        if not op.filter and not wanted:
            inside = inside[op.offset : op.offset + op.limit]
        found = []
        for where in inside:
            one = self._own(where, counts=False)
            if one is None:
                continue
            _, item, value = one
            if all(fits(value.get(name), want) for name, want in (op.filter or {}).items()):
                score = share_found(wanted, value)
                found.append(
                    SearchItem(item.namespace, item.key, value, item.created, item.updated, score or None)
                )
        if not op.filter and not wanted:
            return found
        found.sort(key=lambda one: one.score or 0.0, reverse=True)
        return found[op.offset : op.offset + op.limit]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = {item.namespace for _, item in self._items()}
        fitting = {
            name for name in found if all(matches(name, one.path, one.match_type) for one in conditions)
        }
        if op.max_depth is not None:
            fitting = {name[: op.max_depth] for name in fitting}
        return sorted(fitting)[op.offset : op.offset + op.limit]


def _refuse_time_to_live(op: PutOp) -> None:
    if op.ttl is not None:
        raise UsageError(
            "this store has no time to live (supports_ttl is False)",
            hint="Leave `ttl` out, or delete the item when its time is over.",
        )
