"""Commands with an empty result print a true sentence and no headings."""

from __future__ import annotations

import pytest

from tests.support import cli_lab
from tests.support.cli_lab import Cli


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_lab._Stream, "isatty", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("list --type user", "There is no memory of type user."),
        ("list --tag home --type user", "There is no memory of type user with the tag home."),
        ("timeline show --type other", "No events of this type and time."),
        ("timeline show --since 2099-01-01", "No events of this type and time."),
        ("fact list --category other", "No facts of this kind and category."),
        ("graph list --kind ship", "No entities of the kind ship."),
    ],
)
def test_filtered_list_without_hits_names_the_filter(cli: Cli, command: str, told: str) -> None:
    cli.ok("fact", "add", "They like tea", "--category", "preference")
    cli.ok("graph", "add", "Acme")
    cli.ok("timeline", "add", "went")
    said = cli.ok(*command.split())
    assert (said.out, said.err) == ("", f"{told}\n")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    "command",
    [
        "list",
        "list --hidden",
        "timeline show",
        "scope list",
        "scope list --forgotten",
        "session list",
        "session status",
        "session search tea",
        "fact list",
        "value list",
        "value sweep",
        "fact history",
        "graph list",
        "graph relations",
        "graph search tea",
        "usage show",
        "dream list",
        "dream duplicates",
        "token list",
        "plugin list",
        "approve --list",
        "vault log",
        "vault log --operations --operation gc",
        "conflicts",
    ],
)
def test_empty_list_is_one_sentence_without_headings(cli: Cli, command: str) -> None:
    """Headings without rows would be printed otherwise."""
    said = cli.ok(*command.split())
    assert (said.out, said.err.count("\n")) == ("", 1), said
    assert said.err[0].isupper() and "  " not in said.err, said  # a sentence without columns


def test_empty_list_prints_nothing_to_a_pipe(cli: Cli) -> None:
    for command in (
        "list --type user",
        "timeline show",
        "scope list",
        "dream list",
        "token list",
        "graph list",
    ):
        said = cli.ok(*command.split())
        assert (said.out, said.err) == ("", "")
