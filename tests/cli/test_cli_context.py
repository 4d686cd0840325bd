"""`ipfsmem context`: its layouts, and the preview for a person."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli_lab import Cli


def test_context_preview_shows_size_and_suspected_secrets(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Direct.", "--name", "Tone")
    cli.ok("write", "keys", "--body", "aws_access_key_id AKIAIOSFODNN7EXAMPLF here", "--name", "Keys")
    cli.ok("timeline", "add", "decision", "text=Direct it is")
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


def test_context_layouts_without_an_index_are_printed(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Direct.")
    for layout in ("ranked", "turn"):
        assert "<memory-index" not in cli.ok("context", "--query", "direct", "--layout", layout).out
        assert cli("context", "--layout", layout).code == 2


def test_processes_of_one_session_share_delivered_texts(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Direct answers, please.", "--name", "Tone")
    cli.ok("timeline", "add", "decision", "text=Direct it is")
    asked = ("context", "--query", "direct answers", "--session", "standup with Bob")
    first = cli.ok(*asked, "--layout", "full").out
    assert "Direct answers" in first and "Direct it is" in first and "<memory-index" in first
    assert cli.ok(*asked, "--layout", "full").out == "" == cli.ok(*asked, "--layout", "turn").out
    summary = cli.ok(*asked, "--layout", "full", "--preview").out
    assert "omitted, as this session has them: 3" in summary
    assert (
        cli.ok("context", "--query", "direct answers", "--session", "another", "--layout", "full").out
        == first
    )
    cli.ok("write", "tone", "--body", "Direct answers, and short.")
    second = cli.ok(*asked, "--layout", "full").out
    assert "and short" in second and "Direct it is" not in second
    assert "Direct it is" in cli.ok(*asked, "--layout", "full", "--reset", "--preview").out
    assert cli.ok(*asked, "--layout", "full").out == ""
    assert "Direct it is" in cli.ok(*asked, "--layout", "full", "--reset").out
    assert cli("context", "--reset").code == 2


def test_context_preview_masks_a_secret(cli: Cli) -> None:
    cli.ok("write", "keys", "--body", "Use AKIAIOSFODNN7EXAMPLF for the bucket", "--name", "Keys")
    shown = cli.ok("context", "--query", "bucket", "--layout", "ranked", "--preview").out
    assert "  > Use [AWS access key] for the bucket\n" in shown


def test_imported_events_are_announced_as_withheld_and_are_withheld(cli: Cli, tmp_path: Path) -> None:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Otters like rain"]}}
    talk = {"title": "Otters", "create_time": 1_700_000_000, "current_node": "a"}
    talk["mapping"] = {"a": {"id": "a", "parent": None, "children": [], "message": message}}
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "conversations.json").write_text(json.dumps([talk]))
    said = cli.ok("import", "--from", "chatgpt", str(tmp_path / "export")).out
    assert "1 new event" in said and "never included in context" in said
    assert (
        "never included in context" not in cli.ok("import", "--from", "chatgpt", str(tmp_path / "export")).out
    )
    for layout in ("ranked", "full"):
        assert "tters" not in cli.ok("context", "--query", "what do otters like", "--layout", layout).out
