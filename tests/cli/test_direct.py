"""A read or a write without click parses, runs and reports as click's command does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.cli import app
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, Steps
from ipfsmem.cli.direct import direct_call, run_direct
from tests.support.cli_lab import Cli

DIRECT = [
    "read tone",
    "read --body tone",
    "read tone --json --json --scope work --home /somewhere --vault other",
    "write tone --body short",
    "write --json --description one --name two tone --type user --new --body a=b",
    "write tone --scope work",
]
#: Calls that click parses differently, refuses or has further work for.
LEFT = [
    "read",
    "read tone more",
    "read -- tone",
    "read -h",
    "read tone --help",
    "read tone --scope",
    "read tone --home=/somewhere",
    "read tone -n other",
    "read tone --home a --home b",
    "read tone --stack work",
    "read tone --passphrase-fd 3",
    "read tone --verbose",
    "--json read tone",
    "write tone -",
    "write tone --body -short",
    "write tone --type thing",
    "write tone --tag one",
    "write tone --file path",
    "write tone --body a --body b",
    "list",
    "",
]
WORDS = sorted({word for line in [*DIRECT, *LEFT] for word in line.split()} | {" ", "", "-", "a-b", "\udc80"})


def calls_of(words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """Return the context and arguments of a command, without click and with it."""
    runs: list[Any] = []

    def work(steps: Steps, context: CommandContext, arguments: Arguments) -> None:
        state = {name: one for name, one in vars(context).items() if name != "options"}
        named = {
            name: context.options.get(name) for name in ("vault_name", "home", "scope", "reads", "as_json")
        }
        runs.append((steps.op.name, state, named, arguments))

    with monkeypatch.context() as patch:
        patch.setattr(Steps, "work", work)
        call = direct_call(words, {})
        if call is not None:
            assert run_direct(call, words, ends=False) == 0
        direct = runs[:]
        runs.clear()
        if call is not None:
            assert app.run(words) == 0, words
        return direct, runs


@pytest.mark.parametrize("line", DIRECT)
def test_call_without_click_has_the_arguments_of_click(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    direct, by_click = calls_of(line.split(), monkeypatch)
    assert direct == by_click and len(direct) == 1


@pytest.mark.parametrize("line", LEFT)
def test_other_calls_are_left_to_click(line: str) -> None:
    assert direct_call(line.split(), {}) is None


@pytest.mark.parametrize("value", ["", " ", "-", "--json"])
@pytest.mark.parametrize("option", ["--body", "--home", "--scope"])
def test_values_that_click_may_refuse_are_left_to_it(option: str, value: str) -> None:
    assert direct_call(["write", "tone", option, value], {}) is None


@pytest.mark.parametrize("name", ["IPFSMEM_DEBUG", "IPFSMEM_LOG", "_IPFSMEM_COMPLETE"])
def test_calls_with_work_for_click_or_the_log_are_left(name: str) -> None:
    assert direct_call(["read", "tone"], {name: "1"}) is None


@settings(max_examples=150)
@given(st.sampled_from(["read", "write"]), st.lists(st.sampled_from(WORDS), max_size=6))
def test_call_parsed_without_click_equals_that_of_click(command: str, words: list[str]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        direct, by_click = calls_of([command, *words], monkeypatch)
    assert direct == by_click


@pytest.mark.parametrize(
    "line",
    [
        "read tone",
        "read tone --json",
        "read tone --body",
        "read tonne",
        "read tonne --json",
        "read A",
        "read tone --scope work",
        "read tone --vault none",
        "read tone --home {home}/else",
        "read tone --home {home} --scope work",
        "write tone --new --body again",
        "write new --body text --scope work",
        "write tone --body same",
        "write tone",
        "write A --body text",
    ],
)
def test_outcome_without_click_is_that_of_click(line: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("write", "tone", "--body", "direct")
    cli.ok("write", "tone", "--body", "same")
    words = [word.format(home=cli.home) for word in line.split()]
    assert direct_call(words, {}) is not None
    direct = cli(*words)
    with monkeypatch.context() as patch:
        patch.setattr("ipfsmem.cli.direct.direct_call", lambda words: None)
        by_click = cli(*words)
    assert vars(by_click) == vars(direct)


@pytest.mark.parametrize("option", ["", "--json"])
def test_interrupted_call_without_click_prints_what_click_prints(
    option: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ipfsmem.memory.Memory.load", interrupted)
    words = ["write", "tone", "--body", "x", *option.split()]
    direct = cli(*words)
    monkeypatch.setattr("ipfsmem.cli.direct.direct_call", lambda words: None)
    by_click = cli(*words)
    assert (direct.code, direct.err.strip()) == (by_click.code, by_click.err.strip()) and direct.code == 130
    assert option or (direct.err == by_click.err and direct.err.startswith("\n"))
