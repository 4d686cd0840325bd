"""The operation `usage.csv`: recorded uses of models, for spreadsheets."""

from __future__ import annotations

from typing import Literal

from ipfsmem.memories.usage import as_csv
from ipfsmem.operation import Document, View, operation
from ipfsmem.operations.usage.uses import Since, Until, Zone, uses_of


class UsageTable(Document, frozen=True, kw_only=True):
    """A row for each use, as CSV."""

    format: Literal["csv"] = "csv"


@operation(
    summary="Export every use of a model as CSV",
    right="read",
    about="scope",
    raises=("UsageError: an argument is not a day or time zone.",),
    command="",
    http="GET /v1/usage/csv",
)
def csv(view: View, *, since: Since = None, until: Until = None, tz: Zone = None) -> UsageTable:
    """Return a row for each use of a model, for spreadsheets."""
    return UsageTable(text=as_csv(uses_of(view, since, until, tz)))
