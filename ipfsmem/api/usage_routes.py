"""The routes about usage: what models were used for and what it cost."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Final

from ipfsmem.api.calls import Call, Download, Reply
from ipfsmem.api.life_bodies import Budgets, UsageSums, UseBody, Uses
from ipfsmem.api.routes import Route
from ipfsmem.memories.usage import By, Used


def _days(call: Call) -> tuple[str, str] | None:
    since, until = call.query.get("since"), call.query.get("until")
    return (since or "0001-01-01", until or "9999-12-31") if since or until else None


def _zone(call: Call) -> tzinfo:
    return call.query.get("tz") or UTC


def _usage(call: Call) -> UsageSums:
    by: By = call.query.get("by", "model")
    return UsageSums(by=by, totals=call.memory.usage.totals(by, _days(call), _zone(call)))


def _uses(call: Call) -> Uses:
    return Uses(uses=call.memory.usage.list(_days(call), _zone(call)))


def _csv(call: Call) -> Download:
    return Download(call.memory.usage.csv(_days(call), _zone(call)).encode(), "text/csv", "usage.csv")


def _budgets(call: Call) -> Budgets:
    return Budgets(budgets=call.memory.usage.budgets())


def _add(call: Call) -> Reply:
    given: UseBody = call.body
    made = call.memory.usage.add(
        provider=given.provider,
        model=given.model,
        agent=given.agent,
        input_tokens=given.input_tokens,
        output_tokens=given.output_tokens,
        cost_usd=given.cost_usd,
    )
    return Reply(made, 201)


_DAYS: Final = ("since", "until", "tz")

ROUTES: Final = (
    Route(
        "get",
        "/v1/usage",
        "usage",
        "Return totals of model usage",
        _usage,
        UsageSums,
        query=("by", *_DAYS),
    ),
    Route(
        "post",
        "/v1/usage",
        "note_usage",
        "Record one use of a model",
        _add,
        Used,
        right="write",
        writes=True,
        body=UseBody,
        statuses=("201",),
    ),
    Route("get", "/v1/usage/list", "usage_list", "List every use", _uses, Uses, query=_DAYS),
    Route(
        "get",
        "/v1/usage/csv",
        "usage_csv",
        "Export every use as CSV",
        _csv,
        bytes,
        query=_DAYS,
        gives=("text/csv",),
    ),
    Route(
        "get",
        "/v1/usage/budgets",
        "budgets",
        "Show spending and limits of today and this month",
        _budgets,
        Budgets,
    ),
)
