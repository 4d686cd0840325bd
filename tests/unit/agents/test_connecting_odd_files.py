"""Settings files with nulls, inline tables and tabs accept our entry, and disconnecting restores them byte for byte."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipfsmem.errors import FormatError
from tests.unit.agents.connect_lab import Machine

NULLS = [
    '{"mcpServers": null}',
    '{\n  "a": 1,\n  "mcpServers": null,\n  "b": 2\n}\n',
    '{"mcpServers":null}\r\n',
    '{\n  // none yet\n  "mcpServers": null, // ever\n}\n',
    "null",
    "null\n",
    "\ufeffnull // nothing\n",
]
INLINE = [
    "mcp_servers = {}\n",
    "mcp_servers = {}",
    'model = "x"\r\n\r\nmcp_servers = {   } # none\r\n\r\n[a]\r\nb = 1\r\n',
    "\"mcp_servers\" = { a = { command = 'x' } }\n",
    "mcp_servers={a={command='}',args=['{','}}']},b={command=\"\\\"}\"}} # }\n[z]\na = 1\n",
    "text = '''\nmcp_servers = {}\n'''\nmcp_servers = {}\n",
    "profile = { a = 1 }\nmcp_servers = { a = { env = {} } }\n",
]
YAML = [
    "null\n",
    "~",
    "extensions: null  # none\nb: 2\n",
    "a: 1\nextensions: ~\n",
    "extensions: Null\n",
    "extensions: NULL\r\nb: 1\r\n",
    "a:\tdark\n",
    "a: dark\t\n",
    "a: dark\t# c\r\nb: 1\r\n",
    "a: dark\n\t\nb: 1\n",
    "a: dark\r\n\t\r\nb: 1\r\n",
    "a: 1\n\t# c\nextensions:\t{}\n",
    "extensions:\t# c\n  other:\n    x:\t1\n",
    "n:\n  -\t1\na: |\n  x\n  \ty\n",
    "---\na: 1\n...\n",
    "a: 1\n...",
]


def _settings(path: Path) -> Any:
    text = path.read_bytes().decode().removeprefix("\ufeff")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if path.suffix == ".yaml":
        tabs = text.replace("\t", " ")
        return yaml.safe_load(tabs) or {}
    lines = (line.partition("//")[0] for line in text.splitlines())
    return json.loads(re.sub(r",\s*}", "}", "".join(lines))) or {}


def _cases() -> list[Any]:
    found = [("claude-code", ".claude.json", "mcpServers", text) for text in NULLS]
    found += [("codex", ".codex/config.toml", "mcp_servers", text) for text in INLINE]
    return found + [("goose", ".config/goose/config.yaml", "extensions", text) for text in YAML]


@pytest.mark.parametrize("changed", [False, True], ids=["as written", "changed since"])
@pytest.mark.parametrize(("name", "path", "key", "text"), _cases())
def test_settings_of_unusual_form_are_connected_and_restored(
    name: str, path: str, key: str, text: str, changed: bool, tmp_path: Path
) -> None:
    machine = Machine(tmp_path)
    file = machine.put(path, text.encode())
    before = _settings(file)
    machine.connect(name)
    with_ours = _settings(file)
    ours = with_ours[key].pop("ipfsmem")
    assert ours.get("command", ours.get("cmd")) == "/usr/local/bin/ipfsmem"
    assert {one: value or None for one, value in with_ours.items()} == {
        **{one: value or None for one, value in before.items()},
        key: before.get(key) or None,
    }
    assert not machine.connect(name).written
    if changed:  # so that restoring the original bytes does not suffice
        file.write_bytes(file.read_bytes() + b"\n")
    machine.disconnect(name)
    assert file.read_bytes() == text.encode() + (b"\n" if changed else b"")


def test_null_in_place_of_hooks_is_restored(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.put(".claude.json", "{}")
    texts = ('{"hooks": null}', '{"hooks": {"SessionStart": null, "Stop": []}}')
    for text in texts:
        file = machine.put(".claude/settings.json", text)
        machine.connect("claude-code")
        assert len(json.loads(file.read_bytes())["hooks"]["SessionStart"]) == 1
        file.write_bytes(file.read_bytes() + b"\n")
        machine.disconnect("claude-code")
        assert file.read_text() == text + "\n"


def test_null_replaced_by_others_keeps_their_value(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    file = machine.put(".claude.json", '{"mcpServers": null}')
    machine.connect("claude-code")
    said = json.loads(file.read_bytes())
    said["mcpServers"]["other"] = {"command": "x"}
    file.write_text(json.dumps(said))
    machine.disconnect("claude-code")
    assert json.loads(file.read_bytes()) == {"mcpServers": {"other": {"command": "x"}}}


@pytest.mark.parametrize("behind", [True, False])
def test_inline_table_that_others_changed_since_keeps_their_part(behind: bool, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    file = machine.put(".codex/config.toml", "mcp_servers = {}\n")
    machine.connect("codex")
    ours = file.read_text().removeprefix("mcp_servers = {").rpartition("}")[0].strip()
    parts = ("a = { command = '}' }", ours) if behind else (ours, "a = { command = '}' }")
    file.write_text(f"mcp_servers = {{ {' , '.join(parts)} }}\n")
    machine.disconnect("codex")
    assert tomllib.loads(file.read_text()) == {"mcp_servers": {"a": {"command": "}"}}}


def test_inline_entry_of_our_name_is_replaced_on_request(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    text = "mcp_servers = { ipfsmem = { command = 'x' }, b = { command = 'y' } }\n"
    file = machine.put(".codex/config.toml", text)
    machine.connect("codex", replace=True)
    servers = tomllib.loads(file.read_text())["mcp_servers"]
    assert servers["b"] == {"command": "y"} and servers["ipfsmem"]["command"] == "/usr/local/bin/ipfsmem"
    machine.disconnect("codex")
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("name", "path", "text", "why"),
    [
        ("codex", ".codex/config.toml", "mcp_servers = []\n", "mcp_servers is not a table"),
        ("codex", ".codex/config.toml", "mcp_servers = 'x'\n", "mcp_servers is not a table"),
        ("claude-code", ".claude.json", '{"mcpServers": []}', "mcpServers is not an object"),
        ("goose", ".config/goose/config.yaml", "o:\n\ta: 1\n", "not YAML: .*line 2, column 1"),
        ("goose", ".config/goose/config.yaml", "extensions: 1\n", "extensions is not a mapping"),
        ("claude-code", ".claude.json", "{}".encode("utf-16"), "not UTF-8 text; an editor can save it as that"),
    ],
)  # fmt: skip
def test_settings_that_cannot_have_our_entry_are_named_and_unchanged(
    name: str, path: str, text: str | bytes, why: str, tmp_path: Path
) -> None:
    machine = Machine(tmp_path)
    machine.put(path, text)
    before = machine.snapshot()
    with pytest.raises(FormatError, match=f"{why}.*It is unchanged") as refused:
        machine.connect(name)
    assert f"ipfsmem connect {name} --print" in (refused.value.hint or "")
    assert machine.snapshot() == before
