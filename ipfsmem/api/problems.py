"""Errors as problem details (RFC 9457): pure, from an error to a status and a body. The text of an unexpected error is hidden."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from ipfsmem import errors

CONTENT_TYPE: Final = "application/problem+json"
#: The most specific class first.
_STATUS: Final[tuple[tuple[type[errors.IpfsmemError], int], ...]] = (
    (errors.ChangedError, 412),
    (errors.LockedError, 503),
    (errors.ConcurrencyError, 409),
    (errors.LimitError, 413),
    (errors.BlockError, 500),
    (errors.DamagedError, 500),
    (errors.FormatError, 400),
    (errors.PassphraseError, 423),
    (errors.MembershipError, 403),
    (errors.UsageError, 400),
    (errors.NotFoundError, 404),
    (errors.IncompleteError, 409),
    (errors.PublicError, 409),
    (errors.ConfigError, 409),  # missing settings of this device
    (errors.StorageError, 507),
    (errors.ProviderUnavailable, 503),
    (errors.ProviderError, 502),
)


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


def of_error(error: Exception) -> Problem:
    """Return the problem of an error. An unexpected error is a bug, and its text, which may quote a memory, is hidden."""
    if not isinstance(error, errors.IpfsmemError):
        return said(500, "Unexpected", "a fault of this program", exit_code=70)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return said(status, error.kind, str(error), hint=error.hint, exit_code=error.exit_code)


def said(status: int, kind: str, detail: str, *, hint: str = "", exit_code: int = 2) -> Problem:
    """Return a problem with these fields."""
    return Problem(
        type=f"urn:ipfsmem:error:{kind}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        kind=kind,
        hint=hint,
        exit_code=exit_code,
    )
