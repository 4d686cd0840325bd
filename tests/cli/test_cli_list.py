"""`ipfsmem list`."""

from __future__ import annotations

from tests.cli_lab import Cli


def test_a_line_a_memory_with_tabs(cli: Cli) -> None:
    cli.ok("write", "b", "--body", "x", "--name", "Bee", "--type", "user", "--description", "a\tb")
    cli.ok("write", "a", "--body", "x")
    lines = [line.split("\t") for line in cli.ok("list").out.splitlines()]
    assert [(line[0], line[1], line[4], line[5]) for line in lines] == [
        ("a", "", "", ""),
        ("b", "user", "Bee", "a b"),
    ]


def test_filters(cli: Cli) -> None:
    cli.ok("write", "a", "--body", "x", "--type", "user", "--tag", "home")
    cli.ok("write", "b", "--body", "x", "--type", "feedback", "--tag", "home", "--tag", "work")
    keys = lambda *options: [item["key"] for item in cli.ok("list", "--json", *options).json]  # noqa: E731
    assert keys() == ["a", "b"]
    assert keys("--type", "user") == ["a"]
    assert keys("--tag", "work") == ["b"]
    assert keys("--tag", "wor") == []


def test_empty(cli: Cli) -> None:
    assert cli.ok("list").out == ""
    assert cli.ok("list", "--json").json == []


def test_marks(clash: tuple[Cli, Cli]) -> None:
    first, second = clash
    assert "\t!\t" in first.ok("list").out
    first.ok("write", "poem", "--body", "one\n\ntwo\n\nthree")
    first.ok("sync")
    second.ok("sync")
    first.ok("write", "poem", "--body", "ONE\n\ntwo\n\nthree")
    second.ok("write", "poem", "--body", "one\n\ntwo\n\nTHREE")
    for device in (first, second, first):
        device.ok("sync")
    listed = {item["key"]: item for item in first.ok("list", "--json").json}
    assert listed["poem"]["merged"] and not listed["poem"]["conflicts"] and listed["tone"]["conflicts"] == 1
    assert first.ok("read", "poem", "--body").out == "ONE\n\ntwo\n\nTHREE\n"
