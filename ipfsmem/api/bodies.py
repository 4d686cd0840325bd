"""Request bodies of the HTTP API, and the answers that no other interface has: pages of lists, and a problem.

The OpenAPI document is made from these types and those of `results.py`, which the handlers use.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ipfsmem.memories.importing import Imported
from ipfsmem.results import (
    OperationLine,
    ProviderInfo,
)
from ipfsmem.sync.report import SyncReport

#: Default and maximum memories of a page.
PAGE: Final = 100
MAX_PAGE: Final = 1_000

#: The rights of a token; each includes those before it.
Right = Literal["read", "write", "admin"]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller sends; a field that is not known is refused."""


class Operations(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, the newest first."""

    operations: list[OperationLine]


class ExportBody(Body, frozen=True, kw_only=True):
    """As what it is to be written. Only a `zip` and a `car` hold all scopes and conflict copies; `partial` agrees to what is left out."""

    format: Literal["blob", "zip", "car"] = "zip"
    partial: bool = False


class ScopeBody(Body, frozen=True, kw_only=True):
    """What people call a scope, and of a new one what it is for."""

    title: str | None = None
    kind: Literal["user", "workspace", "agent"] = "workspace"


class CodeBody(Body, frozen=True, kw_only=True):
    """The one-time code of `ipfsmem ui`."""

    code: str


class Providers(msgspec.Struct, frozen=True, kw_only=True):
    """Where the memory is published."""

    providers: list[ProviderInfo]


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync did. `exit_code`: what the command ends with for the same; 0 when all that was asked was done."""

    report: SyncReport
    exit_code: int


class TakenIn(Imported, frozen=True, kw_only=True):
    """What an import did. `exit_code`: what the command ends with for the same; 0 when nothing was left out."""

    exit_code: int


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of this server. `locked`: its keys are, so nothing of it can be asked; `until`: when they will be, in milliseconds."""

    namespace: str
    locked: bool
    until: int | None


class Namespaces(msgspec.Struct, frozen=True, kw_only=True):
    """The memories of this server that the caller may ask, and what the caller may do; `scopes` None: in all of them."""

    namespaces: list[Served]
    right: Right
    scopes: list[str] | None
    version: str


class SessionToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token for as long as this server runs, and the memory that it opens."""

    token: str
    namespace: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error, by RFC 9457. `kind` is a name of docs/ERRORS.md or docs/HTTP.md, `hint` what to do next, `exit_code` a command's for the same."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    hint: str
    exit_code: int
