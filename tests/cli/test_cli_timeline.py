"""`ipfsmem timeline show` and `ipfsmem timeline add`."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli_lab import Cli, pipe


def test_timeline_shows_added_events_in_order(cli: Cli) -> None:
    first = cli.ok("timeline", "add", "waved", "style=quick", "count:=3", 'deep:={"a":[1]}').out.strip()
    cli.ok("timeline", "add", "slept", "--data", '{"hours": 7.5}')
    events = cli.ok("timeline", "show", "--json").json["events"]
    assert [(e["type"], e.get("style"), e.get("count"), e.get("deep"), e.get("hours")) for e in events] == [
        ("waved", "quick", 3, {"a": [1]}, None),
        ("slept", None, None, None, 7.5),
    ]
    assert events[0]["id"] == first
    lines = cli.ok("timeline", "show").out.splitlines()
    assert lines[0].split("\t")[1:] == ["waved", 'count=3  deep={"a":[1]}  style=quick']


def test_invalid_event_data_is_refused(cli: Cli) -> None:
    cli.fails(2, "timeline", "add", "waved", "no-equals")
    cli.fails(2, "timeline", "add", "waved", "a:=nonsense")
    cli.fails(2, "timeline", "add", "waved", "--data", "[1]")
    cli.fails(2, "timeline", "add", "waved", "--data", "{")
    cli.fails(2, "timeline", "add", "waved", "a=1", "--data", "{}")
    cli.fails(2, "timeline", "add", "waved", "id=mine")
    cli.fails(11, "timeline", "add", "waved", "big=" + "x" * 70_000)
    assert cli.ok("timeline", "show").out == ""


def test_timeline_filters_by_days_and_limit(cli: Cli) -> None:
    lines = [f'{{"ts":"2026-04-{day}T12:00:00.000Z","type":"day","n":{day}}}' for day in (10, 11, 12, 13)]
    blob = '{"version":"memory/0.1","files":{},"timeline":[' + ",".join(lines) + "]}"
    cli.ok("import", "-", stdin=blob.encode())
    days = lambda *options: [e["n"] for e in cli.ok("timeline", "show", "--json", *options).json["events"]]  # noqa: E731
    assert days() == [10, 11, 12, 13]
    assert days("--since", "2026-04-11", "--until", "2026-04-12") == [11, 12]
    assert days("--since", "2026-04-12") == [12, 13]
    assert days("--until", "2026-04-10") == [10]
    assert days("--limit", "2") == [12, 13]
    assert days("--type", "night") == []
    cli.fails(2, "timeline", "show", "--since", "soon")
    cli.fails(2, "timeline", "show", "--limit", "0")
    turned = cli.fails(2, "timeline", "show", "--since", "2026-04-13", "--until", "2026-04-12")
    assert "comes after" in turned.err
    for option in ("--since", "--until", "--type"):  # from an unset variable
        assert cli("timeline", "show", option, "").code == 2


def test_invalid_day_is_refused_before_the_passphrase_prompt(bare: Cli, stick: Path) -> None:
    bare.ok("init", "--no-wallet", "--passphrase-fd", str(pipe("correct horse 7")))
    for command in (
        "timeline show --since", "timeline show --until", "usage show --from", "usage export --to",
        "vault log --operations --since", "vault compact --older-than",
    ):  # fmt: skip
        option = command.rpartition(" ")[2]
        for value in ("soon", ""):
            assert option in bare.fails(2, *command.split(), value).err
    assert "1h" in bare.fails(2, "vault", "compact", "--older-than", "59m").err
    assert "passphrase" in bare.fails(22, "timeline", "show", "--since", "7d").err
