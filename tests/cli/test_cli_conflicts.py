"""`ipfsmem conflicts` and `ipfsmem resolve`."""

from __future__ import annotations

import pytest

from tests.support.cli_lab import Cli


def test_both_devices_show_the_same_conflict(clash: tuple[Cli, Cli]) -> None:
    first, second = (device.ok("conflicts", "--json").json["conflicts"] for device in clash)
    assert first == second
    assert set(clash[0].ok("conflicts", "--json").json["labels"].values()) == {"first", "second"}
    text = clash[0].ok("conflicts", "tone").out
    assert "from the first" in text and "from the second" in text and "ipfsmem resolve tone" in text
    clash[0].fails(4, "conflicts", "nothing")


def test_resolve_to_the_alternative_reaches_both_devices(clash: tuple[Cli, Cli]) -> None:
    first, second = clash
    (conflict,) = first.ok("conflicts", "--json").json["conflicts"]
    copy = conflict["copies"][0]
    first.ok("resolve", "tone", "--seen", conflict["seen"], "--alternative", copy["file"])
    for device in (first, second):
        device.ok("sync")
        assert device.ok("read", "tone").out == copy["reading"]["text"]
        assert device.ok("conflicts").out == ""


def test_resolve_keep_removes_the_conflict(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    shown = first.ok("read", "tone").out
    first.ok(*resolve_command(first), "--keep")
    assert first.ok("read", "tone").out == shown and first.ok("conflicts").out == ""


def test_resolve_with_a_third_text_replaces_both(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    first.ok(*resolve_command(first), "--file", "-", stdin=b"---\nname: Both\n---\n\nfirst and second\n")
    assert first.ok("read", "tone", "--body").out == "first and second\n" and first.ok("conflicts").out == ""


def test_invalid_resolve_calls_leave_the_conflict(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    first.fails(2, "resolve", "tone")
    first.fails(2, "resolve", "tone", "--keep", "--file", "-")
    first.fails(2, "resolve", "tone", "--keep")
    first.fails(6, "resolve", "tone", "--keep", "--seen", "0" * 16)
    first.fails(4, "resolve", "other", "--keep", "--seen", "0" * 16)
    first.fails(4, *resolve_command(first), "--alternative", "tone.conflict-00000000.md")
    first.fails(10, *resolve_command(first), "--file", "-", stdin=b"\xff\xff")
    assert first.ok("conflicts").out != ""


def test_resolve_does_not_replace_a_text_changed_since_it_was_shown(clash: tuple[Cli, Cli]) -> None:
    first, second = clash
    looked = resolve_command(first)
    second.ok("write", "tone", "--body", "newer, from the second")
    second.ok("sync")
    first.ok("sync")
    first.fails(6, *looked, "--keep")
    assert "newer, from the second" in first.ok("conflicts", "--json").out
    assert first.ok("read", "tone", "--body").out == "newer, from the second\n"


@pytest.mark.slow
def test_printed_resolve_command_works_for_a_text_written_before_a_forget(clash: tuple[Cli, Cli]) -> None:
    first, second = clash
    first.ok(*resolve_command(first), "--keep")
    first.ok("sync")
    second.ok("sync")
    first.ok("forget", "tone")
    second.ok("write", "tone", "--body", "edited meanwhile")
    for device in (first, second, first):
        device.ok("sync")
    first.ok(*printed_command(first))
    assert first.ok("conflicts").out == "" and "there is no memory" in first.fails(4, "read", "tone").err
    second.ok(
        *resolve_command(second),
        "--alternative",
        second.ok("conflicts", "--json").json["conflicts"][0]["copies"][0]["file"],
    )
    assert second.ok("read", "tone", "--body").out == "edited meanwhile\n"


def resolve_command(device: Cli) -> list[str]:
    """Return the resolve command for `tone`, without the choice."""
    return printed_command(device)[:4]


def printed_command(device: Cli) -> list[str]:
    """Return the command that `conflicts` prints."""
    last = device.ok("conflicts", "tone").out.splitlines()[-1]
    return last.partition("ipfsmem ")[2].partition(",")[0].split()


def test_conflicts_of_a_vault_without_conflicts_prints_nothing(cli: Cli) -> None:
    assert cli.ok("conflicts").out == "" and cli.ok("conflicts", "--json").json["conflicts"] == []
