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
        operations = list(ops)
        puts: dict[str, PutOp] = {}
        for op in operations:
            if isinstance(op, PutOp):
                _refuse_time_to_live(op)
                puts[memory_key(op.namespace, op.key)] = op
        results = [self._answer(op) for op in operations]
        for write in [self._prepared(key, op) for key, op in puts.items()]:
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
        self, key: str, *, counts: bool = True
    ) -> tuple[MemoryRecord, StoredItem, dict[str, Any]] | None:
        """Return the item of a memory, with its value; None if it is not an item, or of others and not approved."""
        record = self._memory.read(key, counts=counts)
        item = item_of(key, record.file) if record is not None and record.own else None
        value = value_of(record.data) if record is not None and item is not None else None
        return None if record is None or item is None or value is None else (record, item, value)

    def _get(self, op: GetOp) -> Item | None:
        own = self._own(memory_key(op.namespace, op.key))
        if own is None:
            return None
        _, item, value = own
        return Item(
            value=value,
            key=item.key,
            namespace=item.namespace,
            created_at=item.created,
            updated_at=item.updated,
        )

    def _prepared(self, key: str, op: PutOp) -> Callable[[], object]:
        """Return the function that writes an item. Raises as `render_item`, before anything is written."""
        before = self._memory.read(key, counts=False)
        if op.value is None:
            if before is None or not before.own:
                return lambda: None
            return partial(self._memory.forget, key, seen=before)
        now = datetime.now(UTC)
        item = item_of(key, before.file) if before is not None and before.own else None
        text = render_item(op.namespace, op.key, op.value, item.created if item else now, now)
        return partial(self._memory.write_text, key, text, seen=before if item else None)

    def _items(self) -> list[tuple[str, StoredItem]]:
        """Return all items, last changed first."""
        listed = ((one.key, item_of(one.key, one.file)) for one in self._memory.list() if one.own)
        items = [(key, item) for key, item in listed if item is not None]
        items.sort(key=lambda one: one[0])
        return sorted(items, key=lambda one: one[1].updated, reverse=True)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        query_words = words(op.query)
        inside = [key for key, item in self._items() if item.namespace[: len(prefix)] == prefix]
        if not op.filter and not query_words:
            inside = inside[op.offset : op.offset + op.limit]
        results = []
        for key in inside:
            one = self._own(key, counts=False)
            if one is None:
                continue
            _, item, value = one
            if all(fits(value.get(name), want) for name, want in (op.filter or {}).items()):
                score = share_found(query_words, value)
                results.append(
                    SearchItem(item.namespace, item.key, value, item.created, item.updated, score or None)
                )
        if not op.filter and not query_words:
            return results
        results.sort(key=lambda one: one.score or 0.0, reverse=True)
        return results[op.offset : op.offset + op.limit]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        namespaces = {item.namespace for _, item in self._items()}
        fitting = {
            name for name in namespaces if all(matches(name, one.path, one.match_type) for one in conditions)
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
