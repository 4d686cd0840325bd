"""The routes about values under free keys. The key is a parameter of the query, as a path cannot hold every text."""

from __future__ import annotations

from typing import Final

from ipfsmem.api.bodies import PAGE
from ipfsmem.api.calls import Call, Reply
from ipfsmem.api.life_bodies import (
    ClearValuesBody,
    EarlierValues,
    RestoreValueBody,
    ValueBody,
    ValueKeys,
    ValuePage,
)
from ipfsmem.api.routes import Route
from ipfsmem.errors import NotFoundError
from ipfsmem.memories.values import Value


def _values(call: Call) -> ValuePage:
    query = call.query
    found = call.memory.values.list(
        query.get("prefix", ""), level=query.get("level") or None, expired=query.get("expired", False)
    )
    after, limit = query.get("cursor", ""), query.get("limit") or PAGE
    rest = [one for one in found if one.key > after]
    shown = rest[:limit]
    return ValuePage(values=shown, next=shown[-1].key if len(rest) > len(shown) else None)


def _value(call: Call) -> Reply:
    found = call.memory.values.get(call.query["name"])
    if found is None:
        raise NotFoundError("no value for this key")
    return Reply(found, seen=found.seen)


def _set(call: Call) -> Reply:
    given: ValueBody = call.body
    made = call.memory.values.set(
        call.query["name"], given.value, level=given.level, ttl=given.ttl, seen=given.seen
    )
    return Reply(made, seen=made.seen)


def _delete(call: Call) -> Value:
    return call.memory.values.delete(call.query["name"])


def _clear(call: Call) -> ValueKeys:
    given: ClearValuesBody = call.body
    return ValueKeys(keys=call.memory.values.clear(prefix=given.prefix, level=given.level, keys=given.keys))


def _sweep(call: Call) -> ValueKeys:
    return ValueKeys(keys=call.memory.values.sweep())


def _history(call: Call) -> EarlierValues:
    return EarlierValues(values=call.memory.values.history(call.query["name"]))


def _restore(call: Call) -> Reply:
    given: RestoreValueBody = call.body
    made = call.memory.values.restore(call.query["name"], given.number, seen=given.seen)
    return Reply(made, seen=made.seen)


_ONE: Final = "/v1/value"

ROUTES: Final = (
    Route(
        "get",
        "/v1/values",
        "values",
        "List values by key",
        _values,
        ValuePage,
        query=("prefix", "level", "expired", "cursor", "limit"),
        led=True,
    ),
    Route(
        "get",
        _ONE,
        "value",
        "The value of a key",
        _value,
        Value,
        query=("name",),
        needs=("name",),
        led=True,
        tagged=True,
    ),
    Route(
        "put",
        _ONE,
        "set_value",
        "Set the value of a key; the replaced value stays in its history",
        _set,
        Value,
        right="write",
        writes=True,
        query=("name",),
        needs=("name",),
        body=ValueBody,
        tagged=True,
    ),
    Route(
        "delete",
        _ONE,
        "delete_value",
        "Delete the value of a key; it can be restored",
        _delete,
        Value,
        right="write",
        writes=True,
        query=("name",),
        needs=("name",),
    ),
    Route(
        "get",
        _ONE + "/history",
        "value_history",
        "List the earlier values of a key",
        _history,
        EarlierValues,
        query=("name",),
        needs=("name",),
        led=True,
    ),
    Route(
        "post",
        _ONE + "/restore",
        "restore_value",
        "Restore an earlier value of a key",
        _restore,
        Value,
        right="write",
        writes=True,
        query=("name",),
        needs=("name",),
        body=RestoreValueBody,
        tagged=True,
    ),
    Route(
        "post",
        "/v1/values/clear",
        "clear_values",
        "Delete several values",
        _clear,
        ValueKeys,
        right="write",
        writes=True,
        body=ClearValuesBody,
    ),
    Route(
        "post",
        "/v1/values/sweep",
        "sweep_values",
        "Delete expired values",
        _sweep,
        ValueKeys,
        right="write",
        writes=True,
    ),
)
