"""The routes about memories: listed, read, written, forgotten, found, given to a model, settled, and their older texts."""

from __future__ import annotations

from typing import Final

from ipfsmem.api.bodies import (
    ContextBody,
    PastText,
    PromoteBody,
    RestoreBody,
)
from ipfsmem.api.calls import Call, Refused, Reply
from ipfsmem.api.problems import said
from ipfsmem.api.routes import Route
from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.errors import UsageError
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.results import (
    ContextText,
    Written,
    shown_text,
)


def _shown(reading: MemoryRecord, status: int = 200) -> Reply:
    return Reply(reading, status, reading.seen)


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
        asked.query, max_tokens=asked.max_tokens, layout=asked.layout, exclude=frozenset(asked.exclude)
    )
    if not asked.preview:
        return ContextText.of(block)
    from ipfsmem.bundle.secrets import find_secrets

    return ContextText.of(block, tuple(map(str, find_secrets(block.text))))


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
    "a write requires If-Match with the ETag of a read, or If-None-Match: * for a new memory",
)
NO_SEEN: Final = said(
    428,
    "UsageError",
    'a restore requires seen, from a read, or "" if nothing is shown',
)
_ONE: Final = "/v1/memories/{key}"

ROUTES: Final = (
    Route("get", _ONE + "/history/{sha256}", "past", "Read a revision of a memory", _past, PastText),
    Route(
        "post",
        _ONE + "/promote",
        "promote",
        "Move your own text from one scope to another",
        _promote,
        MemoryRecord,
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
        "Restore a revision",
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
        "Return the context for a model, fenced",
        _context,
        ContextText,
        body=ContextBody,
        query=("stack",),
        everybody=True,
    ),
)
