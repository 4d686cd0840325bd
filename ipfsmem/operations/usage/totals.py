"""The operation `usage.totals`: recorded uses of models, added up."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.memories.usage import By, UsageTotal
from ipfsmem.memories.usage import totals as sums
from ipfsmem.operation import Cli, ForModels, Items, View, operation
from ipfsmem.operations.usage.uses import Since, Until, Zone, uses_of, zone_from


class UsageTotals(Items[UsageTotal], frozen=True, kw_only=True):
    """What was used, added up `by` agent, provider, model or day. It is a sequence of its `totals`."""

    totals: tuple[UsageTotal, ...]
    by: By


@operation(
    summary="Show totals of model usage",
    right="read",
    about="scope",
    raises=("UsageError: a day or the time zone is invalid.",),
    command="usage show",
    http="GET /v1/usage",
    tool="usage",
    title="Model usage",
    for_models="Show the recorded use of models and its cost, by agent, provider, model or day.",
)
def totals(
    view: View,
    by: Annotated[
        By,
        Meta(description="Property to group by."),
        Cli(option=True),
        ForModels("Group by this; default: model."),
    ] = "model",
    *,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
) -> UsageTotals:
    """Show totals of model usage: name, uses, input tokens, output tokens and cost.

    By default days are UTC days. Totals by day are in order, others by cost. Costs are in millionths of a
    US dollar.
    """
    return UsageTotals(totals=tuple(sums(uses_of(view, since, until, tz), by, zone_from(tz))), by=by)
