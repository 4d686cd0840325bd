"""The routes about facts, procedures and episodes, about what is out of sight on this device, and about memories that say the same."""

from __future__ import annotations

from typing import Final

from ipfsmem.api.bodies import PAGE
from ipfsmem.api.calls import Call, Refused, Reply
from ipfsmem.api.life_bodies import (
    ChangedKeys,
    EarlierFacts,
    EditBody,
    FactBody,
    Hiddens,
    HiddenText,
    HideBody,
    RestoreFactBody,
)
from ipfsmem.api.routes import Route
from ipfsmem.api.texts import NO_SEEN
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memories.facts import Fact, Remembered
from ipfsmem.parts.facts import FactPage


def _facts(call: Call) -> FactPage:
    query = call.query
    return call.memory.facts.page(
        query.get("kind") or None,
        query.get("category") or None,
        limit=query.get("limit") or PAGE,
        cursor=query.get("cursor", ""),
        hidden=query.get("hidden", False),
    )


def _deleted(call: Call) -> EarlierFacts:
    return EarlierFacts(facts=call.memory.facts.deleted())


def _add(call: Call) -> Reply:
    given: FactBody = call.body
    made = call.memory.facts.add(
        given.text,
        given.category,
        kind=given.kind,
        confidence=given.confidence,
        important=given.important,
    )
    if made is None:
        raise UsageError("the text has only spaces and dashes, so nothing was written")
    return Reply(made, 201 if made.action == "added" else 200, made.fact.seen)


def _there(call: Call) -> Fact:
    found = call.memory.facts.get(call.key)
    if found is None:
        raise NotFoundError(f"there is no fact {call.key}")
    return found


def _fact(call: Call) -> Reply:
    found = _there(call)
    return Reply(found, seen=found.seen)


def _edit(call: Call) -> Reply:
    given: EditBody = call.body
    made = call.memory.facts.edit(call.key, given.text, seen=call.seen)
    return Reply(made, seen=made.seen)


def _delete(call: Call) -> Fact:
    return call.memory.facts.delete(call.key, reason=call.query.get("reason", ""), seen=call.seen)


def _history(call: Call) -> EarlierFacts:
    found = call.memory.facts.history(call.key)
    if not found:
        _there(call)
    return EarlierFacts(facts=found)


def _restore(call: Call) -> Reply:
    given: RestoreFactBody = call.body
    if given.seen is None:
        raise Refused(NO_SEEN)
    made = call.memory.facts.restore(call.key, given.number, seen=given.seen)
    return Reply(made, seen=made.seen)


def _hidden(call: Call) -> Hiddens:
    return Hiddens(hidden=[HiddenText.of(one) for one in call.memory.hidden.list()])


def _hide(call: Call) -> ChangedKeys:
    given: HideBody = call.body
    return ChangedKeys(keys=call.memory.hidden.add(given.keys))


def _bring_back(call: Call) -> ChangedKeys:
    given: HideBody = call.body
    return ChangedKeys(keys=call.memory.hidden.bring_back(given.keys))


_ONE: Final = "/v1/facts/{key}"

ROUTES: Final = (
    Route(
        "get",
        "/v1/facts",
        "facts",
        "List facts, procedures and episodes, newest first",
        _facts,
        FactPage,
        query=("kind", "category", "hidden", "cursor", "limit"),
        led=True,
    ),
    Route(
        "post",
        "/v1/facts",
        "add_fact",
        "Add a fact, and return the result",
        _add,
        Remembered,
        right="write",
        writes=True,
        body=FactBody,
        statuses=("200", "201"),
        tagged=True,
    ),
    Route(
        "get",
        "/v1/deleted",
        "deleted",
        "List deleted entries that can be restored",
        _deleted,
        EarlierFacts,
        led=True,
    ),
    Route("get", _ONE, "fact", "One entry", _fact, Fact, led=True, tagged=True),
    Route(
        "put",
        _ONE,
        "edit_fact",
        "Change the text of an entry",
        _edit,
        Fact,
        right="write",
        writes=True,
        body=EditBody,
        seen=True,
        tagged=True,
    ),
    Route(
        "delete",
        _ONE,
        "delete_fact",
        "Delete an entry; it can be restored",
        _delete,
        Fact,
        right="write",
        writes=True,
        query=("reason",),
        seen=True,
    ),
    Route(
        "get",
        _ONE + "/history",
        "fact_history",
        "List the earlier texts of an entry",
        _history,
        EarlierFacts,
        led=True,
    ),
    Route(
        "post",
        _ONE + "/restore",
        "restore_fact",
        "Restore an earlier text of an entry",
        _restore,
        Fact,
        right="write",
        writes=True,
        body=RestoreFactBody,
        tagged=True,
    ),
    Route(
        "get", "/v1/hidden", "hidden", "List the memories that are hidden on this device", _hidden, Hiddens
    ),
    Route(
        "post",
        "/v1/hidden",
        "hide",
        "Hide memories on this device",
        _hide,
        ChangedKeys,
        right="write",
        body=HideBody,
    ),
    Route(
        "post",
        "/v1/hidden/back",
        "bring_back",
        "Show hidden memories again",
        _bring_back,
        ChangedKeys,
        right="write",
        body=HideBody,
    ),
)
