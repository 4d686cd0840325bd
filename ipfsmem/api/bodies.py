"""What callers of the HTTP API send, and the two answers that no other face has: a page of a list, and a problem.

The OpenAPI document is made from these types and those of `results.py`, which are the ones that the handlers use.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ipfsmem.memories.layouts import Layout
from ipfsmem.memories.moment_kinds import Kind
from ipfsmem.results import MemoryLine

#: Memories of a page where nothing is said, and at most.
PAGE: Final = 100
MAX_PAGE: Final = 1_000


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller sends; a field that is not known is refused."""


class WriteBody(Body, frozen=True, kw_only=True):
    """A memory, or parts of it: what is not given stays as the caller was shown it."""

    body: str | None = None
    name: str | None = None
    description: str | None = None
    type: Literal["user", "feedback", "project", "reference"] | None = None
    tags: list[str] | None = None


class RecallBody(Body, frozen=True, kw_only=True):
    """A question. `since`: an ISO 8601 date or time. `kind`: what is looked through, memories where nothing is said."""

    query: str
    kind: Kind = "memory"
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 10
    type: str | None = None
    tag: str | None = None
    since: str | None = None
    why: bool = False


class ContextBody(Body, frozen=True, kw_only=True):
    """What a model is to be given. A token is counted as three bytes."""

    query: str | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=200, le=200_000)] | None = None
    layout: Layout = "index"


class MemoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list. `next` is the cursor of what follows; None at the end."""

    memories: list[MemoryLine]
    next: str | None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error, by RFC 9457. `kind` is a name of docs/ERRORS.md or docs/HTTP.md, `hint` what to do next, `exit_code` a command's for the same."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    hint: str
    exit_code: int
