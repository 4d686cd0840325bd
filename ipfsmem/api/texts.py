"""The routes about memories: listed, read, written, forgotten, found, given to a model, settled, and their older texts."""

from __future__ import annotations

from typing import Final

from ipfsmem.api.bodies import (
    Conflicts,
    ContextBody,
    PastText,
    PromoteBody,
    ResolveBody,
    RestoreBody,
)
from ipfsmem.api.calls import Call, Refused, Reply, there
from ipfsmem.api.problems import said
from ipfsmem.api.routes import Route
from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.readings import Reading
from ipfsmem.memories.writers import member_names
from ipfsmem.results import (
    Conflict,
    ContextText,
    Resolved,
    TextHistory,
    Written,
    shown_text,
)


def _shown(reading: Reading, status: int = 200) -> Reply:
    return Reply(reading, status, reading.seen)


def _history(call: Call) -> TextHistory:
    return call.memory.versions.of(call.key)


def _past(call: Call) -> PastText:
    sha256 = call.query["sha256"]
    data = call.memory.versions.text(call.key, sha256)
    return PastText(key=call.key, sha256=sha256, text=shown_text(data) or "")


def _restore(call: Call) -> Written:
    given: RestoreBody = call.body
    if (given.root is None) == (given.sha256 is None):
        raise UsageError("say which text, by the version that has it or by its SHA-256: one of both")
    if given.seen is None:
        raise Refused(NO_SEEN)
    key = check_key(given.key)
    return Written.of(call.memory.versions.restore(given.root, key, text=given.sha256, seen=given.seen))


def _context(call: Call) -> ContextText:
    asked: ContextBody = call.body
    read = call.whole.stack(*call.stack) if call.stack else call.memory
    block = read.context(
        asked.query, max_tokens=asked.max_tokens, layout=asked.layout, without=frozenset(asked.without)
    )
    if not asked.preview:
        return ContextText.of(block)
    from ipfsmem.bundle.secrets import find_secrets

    return ContextText.of(block, tuple(map(str, find_secrets(block.text))))


def _conflicts(call: Call) -> Conflicts:
    everywhere = call.query.get("everywhere", False)
    if everywhere:
        call.caller.require_all_scopes()
    found = call.memory.conflicts(everywhere=everywhere)
    names = member_names(call.whole.members.list())
    names.setdefault(call.whole.device, call.whole.replica.config.label)
    late = call.whole.members.late_writes() if everywhere else []
    return Conflicts(conflicts=[Conflict.of(item, names) for item in found], late=late)


def _resolve(call: Call) -> Resolved:
    given: ResolveBody = call.body
    if sum((given.keep, given.take is not None, given.text is not None)) != 1:
        raise UsageError("choose one: keep, take or text")
    item = next((one for one in call.memory.conflicts() if one.key == call.key), None)
    if item is None:
        raise NotFoundError(f"{call.key} has no conflict")
    if call.seen != item.seen:
        raise ChangedError(f"{call.key} is not what you looked at; nothing was replaced")
    data = None
    if given.take is not None:
        data = there(call.key, call.memory.read(call.key, conflict=given.take)).data
    elif given.text is not None:
        data = given.text.encode()
        if not data.strip():
            raise UsageError("the text is empty, so nothing was replaced")
    written = call.memory.resolve(call.key, data, seen=item)
    sha256 = written.sha256 if written is not None else None
    return Resolved(key=call.key, sha256=sha256, replaced=item.files)


def _promote(call: Call) -> Reply:
    given: PromoteBody = call.body
    to = check_scope(given.to) if given.to else ""
    call.caller.require_scopes([to, call.whole.scopes.target(to) if to else ""])
    shown = call.still_shown()
    made = call.memory.promote(call.key, to=to, seen=shown, if_match=given.if_match, keep=given.keep)
    return _shown(made)


#: What a write without a precondition is told.
NO_PRECONDITION: Final = said(
    428,
    "UsageError",
    "a write says what it replaces: If-Match with the ETag of a read, or If-None-Match: * for a new memory",
)
NO_SEEN: Final = said(
    428,
    "UsageError",
    'a restore says what it replaces: seen, as a read shows it, or "" where nothing is shown',
)
_ONE: Final = "/v1/memories/{key}"

ROUTES: Final = (
    Route("get", _ONE + "/history", "history", "The texts that a memory has had", _history, TextHistory),
    Route("get", _ONE + "/history/{sha256}", "past", "An older text of a memory", _past, PastText),
    Route(
        "post",
        _ONE + "/resolve",
        "resolve",
        "Settle a conflict",
        _resolve,
        Resolved,
        right="write",
        writes=True,
        body=ResolveBody,
        seen=True,
    ),
    Route(
        "post",
        _ONE + "/promote",
        "promote",
        "Put an own text of one scope into another",
        _promote,
        Reading,
        right="write",
        writes=True,
        body=PromoteBody,
        seen=True,
        tagged=True,
    ),
    Route(
        "post",
        "/v1/restore",
        "restore",
        "Bring an older text back",
        _restore,
        Written,
        right="write",
        writes=True,
        body=RestoreBody,
    ),
    Route(
        "post",
        "/v1/context",
        "context",
        "What a model is given, fenced",
        _context,
        ContextText,
        body=ContextBody,
        query=("stack",),
        everybody=True,
    ),
    Route(
        "get",
        "/v1/conflicts",
        "conflicts",
        "Texts that were written at the same time",
        _conflicts,
        Conflicts,
        query=("everywhere",),
    ),
)
