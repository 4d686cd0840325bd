"""`ipfsmem conflicts` and `ipfsmem resolve`."""

from __future__ import annotations

from tests.cli_lab import Cli


def test_both_devices_show_the_same_conflict(clash: tuple[Cli, Cli]) -> None:
    first, second = (device.ok("conflicts", "--json").json for device in clash)
    assert first == second
    assert {first[0]["device"], first[0]["copies"][0]["device"]} == {"first", "second"}
    text = clash[0].ok("conflicts", "tone").out
    assert "from the first" in text and "from the second" in text and "ipfsmem resolve tone" in text
    clash[0].fails(4, "conflicts", "nothing")


def test_take_the_copy(clash: tuple[Cli, Cli]) -> None:
    first, second = clash
    (conflict,) = first.ok("conflicts", "--json").json
    copy = conflict["copies"][0]
    first.ok("resolve", "tone", "--take", copy["file"])
    for device in (first, second):
        device.ok("sync")
        assert device.ok("read", "tone").out == copy["text"]
        assert device.ok("conflicts").out == ""


def test_keep_what_is_shown(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    shown = first.ok("read", "tone").out
    first.ok("resolve", "tone", "--keep")
    assert first.ok("read", "tone").out == shown and first.ok("conflicts").out == ""


def test_write_a_third_text(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    first.ok("resolve", "tone", "--file", "-", stdin=b"---\nname: Both\n---\n\nfirst and second\n")
    assert first.ok("read", "tone", "--body").out == "first and second\n" and first.ok("conflicts").out == ""


def test_refusals(clash: tuple[Cli, Cli]) -> None:
    first, _ = clash
    first.fails(2, "resolve", "tone")
    first.fails(2, "resolve", "tone", "--keep", "--file", "-")
    first.fails(4, "resolve", "other", "--keep")
    first.fails(4, "resolve", "tone", "--take", "tone.conflict-00000000.md")
    first.fails(10, "resolve", "tone", "--file", "-", stdin=b"\xff\xff")
    assert first.ok("conflicts").out != ""


def test_none(cli: Cli) -> None:
    assert cli.ok("conflicts").out == "" and cli.ok("conflicts", "--json").json == []
