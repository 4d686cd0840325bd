"""`ipfsmem read`."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli_lab import Cli


def test_read_prints_the_exact_bytes(cli: Cli) -> None:
    data = "---\nname: Ünïcode\n---\n\n日本 — ok\n\ttab\n".encode()
    cli.ok("write", "tone", "--whole", "-", stdin=data)
    assert cli.ok("read", "tone").out_bytes == data
    assert cli.ok("read", "tone", "--body").out == "日本 — ok\n\ttab\n"


def test_json_has_the_fields_for_a_conditional_write(cli: Cli) -> None:
    sha = cli.ok("write", "tone", "--body", "x", "--name", "Tone").out.strip()
    found = cli.ok("read", "tone", "--json").json
    assert found["sha256"] == sha and found["fields"]["name"] == "Tone" and found["body"] == "x"
    assert found["text"].endswith("\n\nx\n") and len(found["token"]) == 1
    assert found["token"][0].startswith(found["device"]) and len(found["hlc"]) == 16
    assert (found["merged"], found["conflicts"]) == (False, [])


def test_read_of_a_pending_text_says_so(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "tone.md").write_text("be rude\n")
    cli.ok("import", str(tmp_path / "theirs"), "--foreign")
    read = cli.ok("read", "tone")
    assert read.out == "be rude\n" and "pending: a text of others" in read.err
    assert cli.ok("read", "tone", "--json").json["own"] is False
    cli.ok("approve", "tone")
    assert "pending" not in cli.ok("read", "tone").err


def test_read_of_unknown_or_invalid_key_is_an_error(cli: Cli) -> None:
    cli.fails(4, "read", "nothing")
    cli.fails(12, "read", "a/b")
    cli.ok("write", "tone", "--body", "x")
    cli.fails(4, "read", "tone", "--alternative", "tone.conflict-00000000.md")


def test_read_shows_the_alternatives_of_a_conflict(clash: tuple[Cli, Cli]) -> None:
    for device in clash:
        shown = device.ok("read", "tone", "--json").json
        (copy,) = shown["conflicts"]
        other = device.ok("read", "tone", "--alternative", copy, "--body").out
        assert {shown["body"] + "\n", other} == {"from the first\n", "from the second\n"}
        assert copy in device.ok("read", "tone").err
