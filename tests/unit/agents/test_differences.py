"""The shown difference of an edit contains no neighbouring lines: settings hold tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.agents.command_line import Launch
from tests.unit.agents.connect_lab import Machine

SECRET = "t0ken"
ENTRY = '{"command": "x", "env": {"KEY": "t0ken"}}'
BEFORE = {
    "the last member of all": ("claude-code", ".claude.json", '{\n  "a": 1,\n  "apiKey": "t0ken"\n}\n'),
    "the last server": ("claude-code", ".claude.json", '{\n  "mcpServers": {\n    "a": {},\n    "b": "t0ken"\n  }\n}\n'),
    "all on one line": ("cursor", ".cursor/mcp.json", '{"mcpServers":{"a":{"env":{"KEY":"t0ken"}}}}'),
    "all on one line, with hooks": ("gemini", ".gemini/settings.json", '{"hooks":{"AfterAgent":[{"t0ken": 1}]},"k":"t0ken"}'),
    "behind the change": ("cursor", ".cursor/mcp.json", '{"mcpServers": {}, "z": "t0ken", "y": "' + "x" * 900 + '"}'),
    "no line end": ("codex", ".codex/config.toml", '[a]\nkey = "t0ken"'),
    "many lines alike": ("codex", ".codex/config.toml", '[a]\nkey = "t0ken"\nx = 1\n' + "#\n" * 300),
}  # fmt: skip
FOREIGN = {
    "a server": ("claude-code", ".claude.json", f'{{"mcpServers": {{"ipfsmem": {ENTRY}}}}}'),
    "a server, with a comment": ("zed", ".config/zed/settings.json", f'{{"context_servers": {{"ipfsmem": {ENTRY[:-1]}, // t0ken\n}}}}}}'),
    "a hook": ("cursor", ".cursor/hooks.json", '{"hooks": {"stop": [{"command": "t0ken hook stop --program cursor"}]}}'),
    "a table": ("codex", ".codex/config.toml", '[mcp_servers.ipfsmem]\nenv = { KEY = "t0ken" }\nargs = [\n"t0ken"\n]\ns = """\nt0ken=\n"""\n'),
}  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def shown(answer: object) -> str:
    return "\n".join(file.difference for file in answer.files)


@pytest.mark.parametrize("case", BEFORE)
def test_connect_difference_shows_no_unchanged_line(case: str, machine: Machine) -> None:
    name, path, text = BEFORE[case]
    machine.put(path, text)
    for act in (
        lambda: machine.connect(name),
        lambda: machine.connect(name, Launch(("/opt/ipfsmem",))),
        lambda: machine.disconnect(name),
    ):
        difference = shown(act())
        assert "ipfsmem" in difference and SECRET not in difference


@pytest.mark.parametrize("case", FOREIGN)
def test_difference_masks_values_of_removed_or_restored_foreign_entries(case: str, machine: Machine) -> None:
    name, path, text = FOREIGN[case]
    file = machine.put(path, text)
    connected = shown(machine.connect(name, replace=True))
    assert "/usr/local/bin/ipfsmem" in connected and SECRET not in connected and "-" in connected
    assert SECRET not in shown(machine.disconnect(name)) and file.read_text() == text
    gone = shown(machine.disconnect(name, replace=True))
    assert SECRET not in gone and gone
    if "KEY" in text:
        assert "KEY" in gone or "env" in gone


def test_difference_shows_the_position_of_our_entry(machine: Machine) -> None:
    machine.put(".claude.json", '{\n  "a": 1,\n  "mcpServers": {\n    "b": {}\n  }\n}\n')
    (machine.user / ".claude").mkdir()
    lines = shown(machine.connect("claude-code")).splitlines()
    assert lines[2:5] == ["@@ +5 @@ mcpServers", '+    "ipfsmem": {', '+      "type": "stdio",']
    lines = shown(machine.disconnect("claude-code")).splitlines()
    assert any(line == "@@ -5 @@ mcpServers" for line in lines) and '-    "ipfsmem": {' in lines


def test_moving_our_hook_does_not_show_the_users_hook_next_to_it(machine: Machine) -> None:
    file = machine.put(".claude/settings.json", "{}")
    machine.connect("claude-code")
    said = json.loads(file.read_bytes())
    said["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "curl -H t0ken"})
    file.write_text(json.dumps(said))
    assert SECRET not in shown(machine.connect("claude-code", Launch(("/opt/ipfsmem",))))
    difference = shown(machine.disconnect("claude-code"))
    assert SECRET not in difference and "/opt/ipfsmem hook stop" in difference and SECRET in file.read_text()


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("goose", ".config/goose/config.yaml", "key: t0ken\nextensions: {}\n"),
        ("goose", ".config/goose/config.yaml", "extensions: {other: {envs: {KEY: t0ken}}}\n"),
        ("goose", ".config/goose/config.yaml", '{"key": "t0ken"}'),
        ("continue", ".continue/config.yaml", "mcpServers: [{name: a, env: {KEY: t0ken}}]\n"),
        ("continue", ".continue/config.yaml", "mcpServers:\n- name: a\n  env: {KEY: t0ken}\n"),
        ("goose", ".config/goose/config.yaml", "extensions:\n  other:\n    envs:\n      KEY: t0ken\n"),
    ],
)
def test_difference_of_yaml_shows_our_entry_and_no_token(
    name: str, path: str, text: str, machine: Machine
) -> None:
    machine.put(path, text)
    for act in (machine.connect, machine.disconnect):
        told = shown(act(name))
        assert SECRET not in told
        assert "/usr/local/bin/ipfsmem" in told
