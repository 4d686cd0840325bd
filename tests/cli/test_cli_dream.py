"""`ipfsmem dream`: a proposal is applied only as it was shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.servers.chat_model import ChatServer
from tests.servers.threaded import serve
from tests.support.cli_lab import Cli
from tests.support.hints import hinted


def test_dream_apply_without_shown_proposal_id_is_refused(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A new proposal may replace the shown one before it is applied."""
    cli.ok("write", "tea", "--body", "They drink tea.")
    rounds = [
        [("read_memory", json.dumps({"key": "tea"}))],
        [("propose_text", json.dumps({"key": "tea", "text": "They drink green tea.", "reason": "x"}))],
        "Done.",
        [("read_memory", json.dumps({"key": "tea"}))],
        [("propose_text", json.dumps({"key": "tea", "text": "They hate tea.", "reason": "x"}))],
        "Done.",
    ]
    server = ChatServer(lambda messages: rounds.pop(0))
    with serve(server.app) as address:
        settings = tmp_path / "settings.toml"
        settings.write_text(f'[model]\nmodel = "dreamer"\nbase_url = "{address}/v1"\n')
        monkeypatch.setenv("IPFSMEM_CONFIG", str(settings))
        cli.ok("dream", "--model")
        looked_at = cli.ok("dream", "show").out.rpartition("ipfsmem dream apply ")[2].split()[0]
        cli.ok("dream", "--model")
    refused = cli.fails(2, "dream", "apply").err
    assert "name the proposal" in refused
    hinted("Run: ipfsmem dream show. It prints the command.", refused)
    cli.fails(4, "dream", "apply", looked_at)
    assert cli.ok("read", "tea", "--body").out == "They drink tea.\n"
    cli.ok("dream", "apply", cli.ok("dream", "show").out.rpartition("ipfsmem dream apply ")[2].split()[0])
    assert cli.ok("read", "tea", "--body").out == "They hate tea.\n"


def test_status_names_the_last_dream(cli: Cli) -> None:
    cli.ok("write", "tea", "--body", "They drink tea.")
    assert "dreams" not in cli.ok("status").out
    assert cli.ok("--json", "status").json["dreamed"] == 0
    cli.ok("dream")
    found = cli.ok("--json", "status").json
    assert found["dreamed"] > 0 and found["dream_failed"] == 0
    (line,) = [line for line in cli.ok("status").out.splitlines() if line.strip().startswith("dreams")]
    assert "the last on " in line and "ipfsmem dream status" in line
