"""`ipfsmem context`: its layouts, and the preview for a person."""

from __future__ import annotations

from tests.support.cli_lab import Cli


def test_the_preview_says_what_it_costs_and_what_looks_secret(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Direct.", "--name", "Tone")
    cli.ok("write", "keys", "--body", "aws_access_key_id AKIAIOSFODNN7EXAMPLF here", "--name", "Keys")
    cli.ok("note", "decision", "text=Direct it is")
    plain = cli.ok("context", "--query", "access key", "--layout", "full")
    shown = cli.ok("context", "--query", "access key", "--layout", "full", "--preview")
    assert shown.out.endswith(plain.out) and "Direct it is" in plain.out
    summary = shown.out[: -len(plain.out)]
    answer = cli.ok("context", "--query", "access key", "--layout", "full", "--preview", "--json").json
    assert f"{answer['tokens']} tokens, {len(answer['text'].encode())} bytes" in summary
    assert "index: 2 named, 0 left out" in summary and "whole or cut: keys" in summary
    assert "events: 1" in summary and answer["events"] == 1
    (secret,) = answer["secrets"]
    assert f"looks like a secret: {secret}" in summary
    line = int(secret.removeprefix("line ").split(":")[0])
    assert "AKIA" in answer["text"].split("\n")[line - 1] and "AKIA" not in summary
    assert cli.ok("context", "--json").json["secrets"] is None


def test_the_layouts_that_have_no_index(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Direct.")
    for layout in ("ranked", "turn"):
        assert "<memory-index" not in cli.ok("context", "--query", "direct", "--layout", layout).out
        assert cli("context", "--layout", layout).code == 2
