"""The routes about memories: listed, read, written, forgotten, found, given to a model, settled, and their older texts."""

from __future__ import annotations

from typing import Final

from ipfsmem.api.bodies import (
    PastText,
    RestoreBody,
)
from ipfsmem.api.calls import Call, Refused
from ipfsmem.api.problems import said
from ipfsmem.api.routes import Route
from ipfsmem.bundle.keys import check_key
from ipfsmem.errors import UsageError
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.results import (
    shown_text,
)


def _past(call: Call) -> PastText:
    sha256 = call.query["sha256"]
    data = call.memory.versions.text(call.key, sha256)
    return PastText(key=call.key, sha256=sha256, text=shown_text(data) or "")


def _restore(call: Call) -> MemoryRecord:
    given: RestoreBody = call.body
    if (given.root is None) == (given.sha256 is None):
        raise UsageError("say which text, by the version that has it or by its SHA-256: one of both")
    if given.seen is None:
        raise Refused(NO_SEEN)
    key = check_key(given.key)
    return call.memory.versions.restore(given.root, key, text=given.sha256, seen=given.seen)


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
        "/v1/restore",
        "restore",
        "Restore a revision",
        _restore,
        MemoryRecord,
        right="write",
        writes=True,
        body=RestoreBody,
    ),
)
