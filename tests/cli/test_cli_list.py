"""`ipfsmem list`."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from ipfsmem.cli import printing
from tests.support.cli_lab import Cli


def test_list_prints_one_tab_separated_line_per_memory(cli: Cli) -> None:
    cli.ok("write", "b", "--body", "x", "--name", "Bee", "--type", "user", "--description", "a\tb")
    cli.ok("write", "a", "--body", "x")
    lines = [line.split("\t") for line in cli.ok("list").out.splitlines()]
    assert [(line[0], line[1], line[4], line[5]) for line in lines] == [
        ("a", "", "", ""),
        ("b", "user", "Bee", "a b"),
    ]


def test_list_filters_by_type_and_tag(cli: Cli) -> None:
    cli.ok("write", "a", "--body", "x", "--type", "user", "--tag", "home")
    cli.ok("write", "b", "--body", "x", "--type", "feedback", "--tag", "home", "--tag", "work")
    keys = lambda *options: [item["key"] for item in cli.ok("list", "--json", *options).json["memories"]]  # noqa: E731
    assert keys() == ["a", "b"]
    assert keys("--type", "user") == ["a"]
    assert keys("--tag", "work") == ["b"]
    assert keys("--tag", "wor") == []
    assert cli("list", "--tag", "").code == 2


def test_list_of_an_empty_vault_prints_nothing(cli: Cli) -> None:
    assert cli.ok("list").out == ""
    assert cli.ok("list", "--json").json["memories"] == []


def test_list_marks_conflicts_and_merges(clash: tuple[Cli, Cli]) -> None:
    first, second = clash
    assert "\t!\t" in first.ok("list").out
    first.ok("write", "poem", "--body", "one\n\ntwo\n\nthree")
    first.ok("sync")
    second.ok("sync")
    first.ok("write", "poem", "--body", "ONE\n\ntwo\n\nthree")
    second.ok("write", "poem", "--body", "one\n\ntwo\n\nTHREE")
    for device in (first, second, first):
        device.ok("sync")
    listed = {item["key"]: item for item in first.ok("list", "--json").json["memories"]}
    assert listed["poem"]["merged"] and not listed["poem"]["conflicts"] and listed["tone"]["conflicts"] == 1
    assert first.ok("read", "poem", "--body").out == "ONE\n\ntwo\n\nTHREE\n"


def test_list_table_keeps_its_columns_at_any_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(printing, "is_terminal", lambda stream=None: True)
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [
        ("key_one", "feedback", "", "日本語の名前がここにあります", "a long description " * 6),
        ("k" * 64, "user", "!", "short", "short"),
    ]
    for window in (60, 80, 100, 240):
        monkeypatch.setenv("COLUMNS", str(window))
        printing.table(("key", "type", "", "name", "description"), rows, shrink=(3, 4))
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 3 and max(map(cell_len, lines)) <= window
        assert lines[0].split()[:3] == ["key", "type", "name"]
        assert "feedback" in lines[1] and lines[1].startswith("key_one ") and "  !  " in lines[2]
    assert rows[0][4].strip() in lines[1] and rows[1][0] in lines[2]  # wide enough: nothing is cut
    assert {line.index("feedback") for line in lines[1:2]} == {lines[0].index("type")}
