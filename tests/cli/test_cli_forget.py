"""`ipfsmem forget`."""

from __future__ import annotations

from tests.support.cli_lab import Cli


def test_forget_removes_a_memory_and_records_an_event(cli: Cli) -> None:
    sha = cli.ok("write", "tone", "--body", "x").out.strip()
    cli.fails(6, "forget", "tone", "--if-match", "0" * 64)
    cli.ok("forget", "tone", "--reason", "asked for", "--if-match", sha)
    cli.fails(4, "read", "tone")
    cli.fails(4, "forget", "tone")
    (event,) = cli.ok("timeline", "show", "--json").json["events"]
    assert (event["type"], event["key"], event["reason"]) == ("forgot", "tone", "asked for")
    cli.ok("write", "tone", "--body", "again")
    assert cli.ok("read", "tone", "--body").out == "again\n"


def test_empty_if_match_is_refused_and_keeps_the_history(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "x")
    cli.ok("forget", "tone")
    before = cli.ok("history", "tone", "--json").json
    assert "--if-match" in cli.fails(2, "forget", "tone", "--if-match", "").err
    assert cli.ok("history", "tone", "--json").json == before


def test_concurrent_edit_of_a_forgotten_memory_becomes_a_conflict(sealed: Cli, second: Cli) -> None:
    sealed.ok("write", "tone", "--body", "old")
    sealed.ok("sync")
    second.ok("sync")
    sealed.ok("forget", "tone")
    second.ok("write", "tone", "--body", "written meanwhile")
    for device in (sealed, second, sealed):
        device.ok("sync")
    for device in (sealed, second):
        device.fails(4, "read", "tone")
        (conflict,) = device.ok("conflicts", "--json").json["conflicts"]
        assert conflict["forgotten"] and "written meanwhile" in conflict["copies"][0]["reading"]["text"]
