"""Request bodies of the HTTP API, and the answers that no other interface has: pages of lists, and a problem.

The OpenAPI document is made from these types and those of `results.py`, which the handlers use.
"""

from __future__ import annotations

from typing import Literal

import msgspec

#: The rights of a token; each includes those before it.
Right = Literal["read", "write", "admin"]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request; unknown fields are refused."""


class CodeBody(Body, frozen=True, kw_only=True):
    """The one-time code of `ipfsmem ui`."""

    code: str


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A vault of this server. `locked`: its keys are locked, so nothing can be read; `until`: when they lock, in milliseconds
    since 1970 UTC."""

    namespace: str
    locked: bool
    until: int | None


class Namespaces(msgspec.Struct, frozen=True, kw_only=True):
    """The vaults of this server that the caller can use, and the caller's right and scopes; `scopes` None: all scopes."""

    namespaces: list[Served]
    right: Right
    scopes: list[str] | None
    version: str


class SessionToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that is valid until this server ends, and the vault that it opens."""

    token: str
    namespace: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error, as in RFC 9457. `kind`: its name in docs/reference/errors.md or docs/reference/http.md, `hint`: the next step, `exit_code`: that of
    the command."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    hint: str
    exit_code: int
