"""`ipfsmem connect`, `disconnect` and `connect --list`."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from ipfsmem.agents import command_line
from ipfsmem.device import config_files
from tests.support import effort
from tests.support.cli_lab import Cli
from tests.support.extras import need_extra
from tests.support.hints import hinted
from tests.support.mcp_lab import play

STARTED = '{\n  "numStartups": 3\n}\n'


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder in which Claude Code has run."""
    need_extra("mcp", "mcp")
    folder = tmp_path / "user"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude.json").write_text(STARTED)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return folder


def settings(user: Path) -> str:
    return (user / ".claude.json").read_text()


def test_connect_writes_the_previewed_entry_and_disconnect_removes_it(cli: Cli, user: Path) -> None:
    dry = cli.ok("connect", "claude-code", "--dry-run")
    assert '+    "ipfsmem": {' in dry.out and dry.out.endswith("Nothing was written.\n")
    assert settings(user) == STARTED and not (cli.home / ".agents").exists()
    done = cli.ok("connect", "claude-code")
    assert (
        dry.out.removesuffix("Nothing was written.\n") in done.out
        and "Claude Code is connected now." in done.out
    )
    assert "is already connected" in cli.ok("connect", "claude-code").out
    assert "claude-code\tyes\tyes\t20" in cli.ok("connect", "--list").out
    assert "is disconnected" in cli.ok("disconnect", "claude-code").out
    assert settings(user) == STARTED and [*(user / ".claude").iterdir()] == []
    assert "is not connected; no changes" in cli.ok("disconnect", "claude-code").out


def test_connect_of_locked_vault_warns_that_the_program_reads_nothing(
    cli: Cli, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is locked" not in cli.ok("connect", "claude-code").out, "keys under no passphrase"
    (user / ".cursor").mkdir()
    monkeypatch.setenv("IPFSMEM_PASSPHRASE", "four words that differ")
    cli.ok("init", "-n", "other", "--no-wallet", "--provider", str(user))
    told = "note: It gets no memories while this vault is locked: ipfsmem --vault other unlock\n"
    assert cli.ok("connect", "cursor", "-n", "other").out.endswith(told)
    assert cli.ok("connect", "cursor", "-n", "other").out.endswith(
        f"is already connected; no changes.\n{told}"
    )
    assert "is locked" not in cli.ok("connect", "cursor", "-n", "other", "--dry-run").out


def test_written_mcp_command_runs_and_names_this_vault(cli: Cli, user: Path) -> None:
    """It runs without this shell's variables, because programs with a window start it so."""
    cli.ok("connect", "claude-code")
    entry = json.loads(settings(user))["mcpServers"]["ipfsmem"]
    assert Path(entry["command"]).is_absolute() and entry["args"][:3] == ["serve", "mcp", "--sync"]
    memory = entry["args"][3:]
    assert memory == ["--home", cli.home.as_posix()]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("IPFSMEM_")}
    done = subprocess.run(
        [entry["command"], "status", *memory, "--json"], env=environment, capture_output=True, timeout=60
    )
    assert done.returncode == 0 and json.loads(done.stdout)["vault_name"] == "default", done


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "claude-code"] if effort.THOROUGH else ["codex"])
@pytest.mark.parametrize("earlier", [False, True])
def test_official_mcp_client_talks_to_the_connected_server(
    name: str, earlier: bool, cli: Cli, user: Path
) -> None:
    """The server is started as the program starts it, with only the variables that every program passes
    on."""
    cli.ok("write", "role", "--body", "Works on firmware.")
    (user / ".codex").mkdir()
    cli.ok("connect", name)
    if name == "codex":
        entry = tomllib.loads((user / ".codex" / "config.toml").read_text())["mcp_servers"]["ipfsmem"]
    else:
        entry = json.loads(settings(user))["mcpServers"]["ipfsmem"]

    words = entry["args"]
    if earlier:  # a program's settings stay as they are until it is connected again
        assert words[:2] == ["serve", "mcp"]
        words = words[1:]

    async def work() -> None:
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters

        environment = {"HOME": str(user), "PATH": os.environ["PATH"]}
        start = StdioServerParameters(command=entry["command"], args=words, env=environment)
        async with Client(start) as client:
            assert "recall" in {tool.name for tool in (await client.list_tools()).tools}
            said = await client.call_tool("read_memory", {"key": "role"})
            assert "Works on firmware." in str(said)

    play(work)


def test_connect_as_json_reports_files_and_state(cli: Cli, user: Path) -> None:
    done = cli.ok("connect", "claude-code", "--json").json
    assert (done["program"], done["connected"], done["written"]) == ("claude-code", True, True)
    assert [file["made"] for file in done["files"]] == [False, True]
    listed = cli.ok("connect", "--list", "--json").json
    assert [one["connected"] for one in listed if one["program"] == "claude-code"] == [True]
    printed = cli.ok("connect", "claude-code", "--print", "--json").json
    assert json.loads(printed[0]["text"])["mcpServers"]["ipfsmem"]["args"][:2] == ["serve", "mcp"]
    assert cli.ok("disconnect", "claude-code", "--json").json["connected"] is False


def test_entry_of_a_second_vault_names_that_vault(cli: Cli, user: Path) -> None:
    cli.ok("init", "--mode", "local", "-n", "work")
    cli.ok("connect", "claude-code", "-n", "work")
    assert json.loads(settings(user))["mcpServers"]["ipfsmem"]["args"][3:5] == ["--vault", "work"]
    hooks = (user / ".claude" / "settings.json").read_text()
    assert hooks.count("--vault work --home") == 4


def test_long_settings_on_one_line_are_shortened_in_the_preview(cli: Cli, user: Path) -> None:
    """Settings may hold tokens."""
    (user / ".claude.json").write_text(
        json.dumps({"secret": "hush" * 500, "mcpServers": {}, "more": "x" * 900})
    )
    shown = cli.ok("connect", "claude-code", "--dry-run").out
    assert max(map(len, shown.splitlines())) < 1000 and "ipfsmem" in shown and "hush" * 100 not in shown


def test_connect_errors_have_one_line_and_an_exit_code(cli: Cli, user: Path, tmp_path: Path) -> None:
    cli.fails(2, "connect")
    cli.fails(2, "connect", "emacs")
    cli.fails(2, "connect", "claude-code", "--list")
    cli.fails(2, "disconnect", "emacs")
    cli.fails(4, "connect", "claude-code", "-n", "none")
    (user / ".claude.json").write_text('{"mcpServers": {"ipfsmem": {}}}')
    cli.fails(3, "connect", "claude-code")
    cli.fails(3, "disconnect", "claude-code")
    (user / ".claude.json").write_text("{")
    cli.fails(10, "connect", "claude-code")


# -- hints are followed -----------------------------------------------------------------------------------------------


def test_hints_about_entries_are_followed(cli: Cli, user: Path) -> None:
    (user / ".claude.json").write_text('{"mcpServers": {"ipfsmem": {"command": "mine"}}}')
    for name in ("connect", "disconnect"):
        refused = cli.fails(3, name, "claude-code")
        hinted("Preview the change: --replace --dry-run. Replace it: --replace.", refused.err)
        cli.ok(name, "claude-code", "--replace", "--dry-run")
    cli.ok("connect", "claude-code", "--replace")
    (user / ".claude.json").write_text(settings(user).replace("--sync", "--quiet"))
    refused = cli.fails(6, "disconnect", "claude-code")
    hinted(
        "Remove it with the edit: --replace. Preview the change: --dry-run.",
        refused.err,
    )
    cli.ok("disconnect", "claude-code", "--replace", "--dry-run")
    done = cli.ok("disconnect", "claude-code", "--replace")
    kept = list((cli.home / ".agents").iterdir())
    assert len(kept) == 2 and all(str(path) in done.out for path in kept)
    assert sum("--quiet" in path.read_text() for path in kept) == 1
    cli.ok("connect", "claude-code")
    for copy in (cli.home / ".agents").glob("*.before"):
        copy.unlink()
    refused = cli.fails(30, "disconnect", "claude-code")
    hinted(
        "Remove our entries from the current file: --replace. Preview the change: --dry-run.",
        refused.err,
    )
    cli.ok("disconnect", "claude-code", "--replace", "--dry-run")
    cli.ok("disconnect", "claude-code", "--replace")
    assert "ipfsmem" not in settings(user)


def test_hints_about_files_are_followed(cli: Cli, user: Path) -> None:
    (user / ".claude.json").write_text("{")
    refused = cli.fails(10, "connect", "claude-code")
    hinted("Fix it, then try again. To add the settings by hand: ipfsmem connect VALUE --print", refused.err)
    cli.ok("connect", "claude-code", "--print")
    (user / ".claude.json").write_text("{}")
    (user / ".claude.json").chmod(0o444)
    refused = cli.fails(30, "connect", "claude-code")
    hinted(
        "It is probably managed by another program (a dotfile manager): add the settings there (those of a program: ipfsmem connect PROGRAM --print).",
        refused.err,
    )
    cli.ok("connect", "claude-code", "--print")
    (user / ".claude.json").chmod(0o644)
    (user / "other.json").hardlink_to(user / ".claude.json")
    refused = cli.fails(30, "connect", "claude-code")
    hinted(
        "Remove the other links, or add the settings by hand (those of a program: ipfsmem connect PROGRAM --print).",
        refused.err,
    )
    cli.ok("connect", "claude-code", "--print")
    (user / ".claude.json").unlink()
    (user / ".claude.json").mkdir()
    refused = cli.fails(30, "connect", "claude-code")
    (user / ".claude.json").rmdir()
    with (user / ".claude.json").open("wb") as file:
        file.truncate(config_files.LONGEST + 1)
    refused = cli.fails(30, "connect", "claude-code")
    hinted(
        "Make it shorter, or add the settings by hand (those of a program: ipfsmem connect PROGRAM --print).",
        refused.err,
    )
    cli.ok("connect", "claude-code", "--print")
    (user / ".claude.json").write_text(STARTED)
    cli.ok("connect", "claude-code")


def test_hints_about_missing_programs_and_records_are_followed(
    cli: Cli, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = cli.fails(2, "connect")
    hinted("List the supported programs: ipfsmem connect --list.", refused.err)
    cli.ok("connect", "--list")
    refused = cli.fails(2, "connect", "emacs")
    hinted("Supported: VALUE.", refused.err)
    refused = cli.fails(4, "connect", "claude-code", "-n", "other")
    hinted("Create one: ipfsmem init.", refused.err)
    cli.ok("-n", "other", "init", "--mode", "local")
    cli.ok("connect", "claude-code", "-n", "other", "--dry-run")
    (user / ".claude").rmdir()
    (user / ".claude.json").unlink()
    monkeypatch.setenv("PATH", "")
    refused = cli.fails(4, "connect", "claude-code")
    hinted(
        "Start it once, then connect it. Show the settings: ipfsmem connect VALUE --print",
        refused.err,
    )
    cli.ok("connect", "claude-code", "--print")
    (user / ".claude").mkdir()
    cli.ok("connect", "claude-code")
    record = cli.home / ".agents" / "claude-code.json"
    record.write_text("{}")
    refused = cli.fails(10, "disconnect", "claude-code")
    hinted(
        "Move it away. Then remove our entries: ipfsmem disconnect VALUE --replace",
        refused.err,
    )
    record.unlink()
    cli.ok("disconnect", "claude-code", "--replace")
    assert not (user / ".claude.json").exists() or "ipfsmem" not in settings(user)


def test_connect_writes_no_command_that_cannot_start(
    cli: Cli, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(path: str, text: str) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    broken = put("broken/ipfsmem", "exit 1")
    monkeypatch.setattr(command_line.sys, "argv", [str(broken)])
    refused = cli.fails(3, "connect", "claude-code")
    hinted("Reinstall it, then try again.", refused.err)
    cached = put("uv/archive-v0/x/bin/ipfsmem", "echo ipfsmem 1")
    monkeypatch.setattr(command_line.sys, "argv", [str(cached)])
    monkeypatch.setattr(command_line.sys, "executable", str(cached.with_name("python")))
    monkeypatch.setenv("PATH", "")
    refused = cli.fails(3, "connect", "claude-code")
    hinted(
        "Install it, then connect with that one: uv tool install 'ipfsmem[mcp]', or pipx install 'ipfsmem[mcp]'.",
        refused.err,
    )
    monkeypatch.setattr(command_line.sys, "argv", [str(put("a $HOME/ipfsmem", "echo ipfsmem 1"))])
    refused = cli.fails(3, "connect", "claude-code")
    hinted(
        "Move it, or add by hand, quoted as the program needs it: ipfsmem connect VALUE --print", refused.err
    )
    cli.ok("connect", "claude-code", "--print")
    installed = put("tools/ipfsmem/bin/ipfsmem", "echo ipfsmem 1")
    monkeypatch.setattr(command_line.sys, "argv", [str(cached)])
    link = tmp_path / "local" / "ipfsmem"
    link.parent.mkdir()
    link.symlink_to(installed)
    monkeypatch.setenv("PATH", str(link.parent))
    cli.ok("connect", "claude-code")
    assert (
        json.loads(settings(user))["mcpServers"]["ipfsmem"]["command"] == link.as_posix()
    )  # the link, not its target
    cli.ok("disconnect", "claude-code")
    monkeypatch.setattr(command_line.importlib.util, "find_spec", lambda name: None)
    refused = cli.fails(2, "connect", "claude-code")
    hinted(
        "Install it as you installed ipfsmem: pip install 'ipfsmem[mcp]', uv tool install 'ipfsmem[mcp]' or "
        "pipx inject ipfsmem mcp; from a checkout '.[mcp]'.",
        refused.err,
    )
    assert settings(user) == STARTED


def test_concurrent_edit_of_a_program_survives_connect(
    cli: Cli, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = config_files.put

    def later(ready: config_files.Ready) -> None:
        monkeypatch.setattr(config_files, "put", put)
        (user / ".claude.json").write_text('{"numStartups": 4}')
        put(ready)

    monkeypatch.setattr(config_files, "put", later)
    refused = cli("connect", "claude-code")
    assert refused.code == 6 and settings(user) == '{"numStartups": 4}'
    hinted("Run it again; if this repeats, close the program first.", refused.err)
    cli.ok("connect", "claude-code")
    cli.ok("disconnect", "claude-code")
    assert settings(user) == '{"numStartups": 4}'
