"""Model usage: recorded on any device, grouped by model, agent, provider
and day, unaffected by malformed events, compared with a budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.errors import UsageError
from ipfsmem.memories.usage import Used, as_csv, dollars, totals, used
from ipfsmem.memory import Memory
from tests.support.cli_lab import Cli
from tests.support.device_lab import Lab


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def test_usage_is_grouped_by_model_agent_provider_and_day(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    try:
        a = lab.create("a")
        a.usage.add(provider="p", model="m1", agent="coder", input_tokens=10, output_tokens=2, cost_usd=0.1)
        lab.sync(a)
        b = lab.restore("b")
        b.usage.add(provider="p", model="m2", agent="coder", input_tokens=1, cost_usd=0.25)
        lab.sync(b)
        lab.sync(a)
        by_model = [
            (one.name, one.uses, one.input_tokens, one.output_tokens, one.cost) for one in a.usage.totals()
        ]
        assert by_model == [("m2", 1, 1, 0, 250_000), ("m1", 1, 10, 2, 100_000)]
        for by in ("agent", "provider", "day"):
            (one,) = a.usage.totals(by)  # type: ignore[arg-type]
            assert (one.uses, one.input_tokens, one.cost) == (2, 11, 350_000)
        assert a.usage.csv() == b.usage.csv() and a.usage.csv().text.count("\n") == 3
    finally:
        lab.close()


def test_malformed_usage_events_do_not_distort_totals() -> None:
    found = used(
        [
            {
                "ts": "2026-04-14T10:00:00Z",
                "type": "usage",
                "model": 7,
                "input_tokens": "x",
                "cost_micros": True,
            },
            {
                "ts": "2026-04-14T10:00:00Z",
                "type": "usage",
                "agent": "=cmd|x",
                "input_tokens": -5,
                "cost_micros": 10**30,
            },
            {"ts": "2026-04-14T10:00:00Z", "type": "other", "cost_micros": 5},
        ]
    )
    (one,) = totals(found, "day")
    assert (one.name, one.uses, one.input_tokens, one.cost) == ("2026-04-14", 2, 0, 0)
    assert "\n2026-04-14T10:00:00Z,'=cmd|x,,,0,0,0.00\n" in as_csv(found)


@pytest.mark.parametrize(("micros", "text"), [(0, "0.00"), (1, "0.000001"), (12_300, "0.0123"), (1_500_000, "1.50"), (20_000_000, "20.00")])  # fmt: skip
def test_costs_are_printed_exactly(micros: int, text: str) -> None:
    assert dollars(micros) == text


def test_invalid_usage_is_refused_and_not_recorded(memory: Memory) -> None:
    for wrong in ({}, {"model": "m", "cost_usd": -1.0}, {"model": "m", "cost_usd": float("nan")}, {"model": "m", "input_tokens": -1}, {"model": "x" * 201}, {"model": "a\nb"}):  # fmt: skip
        with pytest.raises(UsageError):
            memory.usage.add(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        memory.usage.totals("week")  # type: ignore[arg-type]
    assert not memory.usage.list()
    assert (
        memory.usage.add(model="m")
        == memory.usage.list()[0]
        == Used(
            at=memory.usage.list()[0].at,
            agent="",
            provider="",
            model="m",
            input_tokens=0,
            output_tokens=0,
            cost=0,
        )
    )


def test_usage_over_the_budget_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = Cli(tmp_path / "home", monkeypatch)
    cli.ok("init", "--mode", "local")
    file = tmp_path / "config.toml"
    file.write_text("[usage]\nday_usd = 0.5\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(file))
    cli.ok("usage", "add", "--model", "m", "--cost", "0.4")
    assert cli.ok("usage", "budget").out.splitlines() == ["day\t0.40\t0.50\t", "month\t0.40\tnone\t"]
    cli.ok("usage", "add", "--model", "m", "--cost", "0.2")
    assert "day\t0.60\t0.50\tover" in cli.ok("usage", "budget").out
