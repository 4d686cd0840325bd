"""`connect` and `disconnect` in a user's folder: existing settings remain, our entries are added and removed."""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from ipfsmem.agents import connections
from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.connecting import states
from ipfsmem.agents.programs import PROGRAMS
from ipfsmem.device import atomic_files, config_files
from ipfsmem.device.directory_handle import Directory
from ipfsmem.errors import ChangedError, ConfigError, FormatError, NotFoundError, StorageError, UsageError
from tests.unit.agents.connect_lab import HERE, LAUNCH, NOW, Machine

GOLDEN = HERE / "golden"
CLAUDE = (
    '{\n  "numStartups": 7,\n  "mcpServers": {\n    "github": {\n      "command": "gh-mcp"\n    }\n  }\n}\n'
)
SETTINGS = '{"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def claude(machine: Machine) -> Machine:
    machine.put(".claude.json", CLAUDE, 0o600)
    machine.put(".claude/settings.json", SETTINGS)
    return machine


def before_of(name: str) -> dict[str, str]:
    """Return a program's settings in its golden file: each `==> PATH` begins a file, and the text after
    `==>` is the difference."""
    text = (GOLDEN / f"{name}.txt").read_text("utf-8")
    head = text.partition("==> difference\n")[0]
    parts = head.split("==> ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


def difference_of(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text("utf-8").partition("==> difference\n")[2]


# -- what is written --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_connect_difference_matches_golden_file_and_is_fully_reverted(name: str, machine: Machine) -> None:
    for path, text in before_of(name).items():
        machine.put(path, text)
    before = machine.snapshot()
    answer = machine.connect(name)
    shown = "\n".join(file.difference for file in answer.files).replace(str(machine.user), "~") + "\n"
    if os.environ.get("IPFSMEM_WRITE_GOLDEN"):
        head = (GOLDEN / f"{name}.txt").read_text("utf-8").partition("==> difference\n")[0]
        (GOLDEN / f"{name}.txt").write_text(f"{head}==> difference\n{shown}", "utf-8")
    assert shown == difference_of(name)
    assert answer.written and answer.connected
    assert not machine.disconnect(name).connected
    assert machine.snapshot() == before
    assert not (machine.home / ".agents").exists()


@pytest.mark.parametrize("name", PROGRAMS)
def test_created_settings_files_are_removed_by_disconnect(name: str, machine: Machine) -> None:
    trace = PROGRAMS[name].traces(machine.around)[0]
    trace.mkdir(parents=True)
    before = machine.snapshot()
    answer = machine.connect(name)
    assert answer.files and all(file.made for file in answer.files)
    for path in machine.files(name):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert all(file.removed for file in machine.disconnect(name).files)
    assert machine.snapshot() == before


@pytest.mark.parametrize("name", PROGRAMS)
def test_repeated_connect_writes_nothing(name: str, machine: Machine) -> None:
    for path, text in before_of(name).items():
        machine.put(path, text)
    before = machine.snapshot()
    machine.connect(name)
    once = machine.snapshot()
    again = machine.connect(name)
    assert (again.written, again.files, again.connected) == (False, (), True)
    assert machine.snapshot() == once
    machine.disconnect(name)
    assert (machine.disconnect(name).written, machine.snapshot()) == (False, before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_connect_replaces_our_entry_with_another_command(name: str, machine: Machine) -> None:
    """As after a move of ipfsmem or for another vault; no consent is needed."""
    for path, text in before_of(name).items():
        machine.put(path, text)
    before = machine.snapshot()
    machine.connect(name)
    moved = Launch(("/opt/ipfsmem",), ("--namespace", "work"))
    assert machine.connect(name, moved).written
    for path in machine.files(name):
        assert b"/usr/local/bin/ipfsmem" not in path.read_bytes() and b"/opt/ipfsmem" in path.read_bytes()
    machine.disconnect(name)
    assert machine.snapshot() == before


@pytest.mark.parametrize("name", PROGRAMS)
def test_entry_added_meanwhile_by_the_program_remains(name: str, machine: Machine) -> None:
    for path, text in before_of(name).items():
        machine.put(path, text)
    machine.connect(name)
    for path in machine.files(name):
        text = path.read_text("utf-8")
        later = {".toml": f"{text}\n[later]\nx = 1\n", ".yaml": f"{text}later: 1\n"}
        path.write_text(later.get(path.suffix) or text.replace("{", '{"later": 1,', 1))
    machine.disconnect(name)
    for path in machine.files(name):
        left = path.read_text("utf-8")
        assert "later" in left and "ipfsmem" not in left


@pytest.mark.parametrize(
    "text",
    [
        CLAUDE.replace("\n", "\r\n"),
        "\ufeff" + CLAUDE,
        "",
        " \n",
        "{}",
        '{"mcpServers":{}}',
        "// nothing yet\n",
    ],
    ids=[
        "line ends of Windows",
        "byte order mark",
        "empty",
        "space",
        "nothing in it",
        "on one line",
        "comment",
    ],
)
def test_every_json_layout_is_restored_by_disconnect(text: str, machine: Machine) -> None:
    file = machine.put(".claude.json", text.encode())
    machine.connect("claude-code")
    assert b"ipfsmem" in file.read_bytes()
    assert file.read_bytes().count(b"\n") == file.read_bytes().count(b"\r\n") or "\r" not in text
    machine.disconnect("claude-code")
    assert file.read_bytes() == text.encode()


# -- what others wrote ------------------------------------------------------------------------------------------------------


def test_foreign_entry_is_replaced_only_on_request(claude: Machine) -> None:
    claude.put(".claude.json", '{"mcpServers": {"ipfsmem": {"command": "mine"}}}')
    before = claude.snapshot()
    with pytest.raises(ConfigError, match=r"mcpServers\.ipfsmem in .*claude\.json exists already"):
        claude.connect("claude-code")
    with pytest.raises(ConfigError, match="was not written from this home"):
        claude.disconnect("claude-code")
    assert claude.snapshot() == before
    claude.connect("claude-code", replace=True)
    assert b"mine" not in (claude.user / ".claude.json").read_bytes()
    claude.disconnect("claude-code")
    assert claude.snapshot() == before


def test_equal_entry_is_adopted_as_ours(claude: Machine) -> None:
    claude.connect("claude-code")
    connected = claude.snapshot()
    (claude.home / ".agents" / "claude-code.json").unlink()
    assert not claude.connect("claude-code").written
    assert claude.snapshot() == connected
    claude.disconnect("claude-code")
    assert json.loads((claude.user / ".claude.json").read_bytes()) == json.loads(CLAUDE)
    assert json.loads((claude.user / ".claude/settings.json").read_bytes()) == json.loads(SETTINGS)


def test_our_edited_entry_is_removed_only_on_request(claude: Machine) -> None:
    claude.connect("claude-code")
    file = claude.user / ".claude.json"
    file.write_text(file.read_text().replace('"--sync"', '"--sync", "--verbose"'))
    before = claude.snapshot()
    for act in (claude.connect, claude.disconnect):
        with pytest.raises(ChangedError, match=r"mcpServers\.ipfsmem in .* was edited since"):
            act("claude-code")
    assert claude.snapshot() == before
    assert states(claude.home, claude.around)[0].changed == ("mcpServers.ipfsmem",)
    claude.disconnect("claude-code", replace=True)
    assert json.loads(file.read_bytes()) == json.loads(CLAUDE)


def test_disconnect_ignores_entries_removed_by_a_person(claude: Machine) -> None:
    claude.connect("claude-code")
    claude.put(".claude.json", CLAUDE)
    (claude.user / ".claude/settings.json").unlink()
    assert not states(claude.home, claude.around)[0].connected
    claude.disconnect("claude-code")
    assert (claude.user / ".claude.json").read_text() == CLAUDE
    assert not (claude.user / ".claude/settings.json").exists()


@pytest.mark.parametrize(
    "text",
    ["{", '{"mcpServers": {}} x', '{"mcpServers": []}', '{"mcpServers": {}, "mcpServers": {}}', "[1]", "{'a': 1}",
     '{"a": 1,, "b": 2}', "[" * 1000, b"\xff\xfe{}", f'{{"a": {"9" * 5000}}}', '{"a": "\x01"}', '{"a": 01}', '{"a" 1}'],
)  # fmt: skip
def test_invalid_settings_file_is_named_and_unchanged(text: str | bytes, claude: Machine) -> None:
    claude.put(".claude.json", text)
    before = claude.snapshot()
    with pytest.raises(FormatError, match=r"\.claude\.json: .*It is unchanged"):
        claude.connect("claude-code")
    assert claude.snapshot() == before and not claude.home.exists()


def test_no_file_is_written_when_one_of_two_is_invalid(claude: Machine) -> None:
    claude.put(".claude/settings.json", '{"hooks": "none"}')
    before = claude.snapshot()
    with pytest.raises(FormatError, match="hooks is not an object"):
        claude.connect("claude-code")
    claude.put(".claude/settings.json", SETTINGS, 0o444)
    before = claude.snapshot()
    with pytest.raises(StorageError, match=r"settings\.json is read-only"):
        claude.connect("claude-code")
    assert claude.snapshot() == before and not claude.home.exists()


def test_folder_in_place_of_a_settings_file_is_named(machine: Machine) -> None:
    (machine.user / ".claude" / "settings.json").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"settings\.json"):
        machine.connect("claude-code")
    assert not (machine.user / ".claude.json").exists()


def test_program_that_is_not_installed_is_not_connected(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Claude Code is not installed"):
        machine.connect("claude-code")
    assert machine.snapshot() == {}
    command = tmp_path / "bin" / "claude"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    machine.connect("claude-code")
    machine.disconnect("claude-code")
    assert machine.snapshot() == {}  # the folder that was created for it is removed, too


def test_unknown_program_is_refused(machine: Machine) -> None:
    with pytest.raises(UsageError, match="unsupported program 'emacs'"):
        machine.connect("emacs")


# -- links, permissions, and somebody who writes at the same moment -----------------------------------------------------------


def test_link_remains_a_link_and_its_file_keeps_its_permissions(claude: Machine) -> None:
    real = claude.put("dotfiles/claude.json", CLAUDE, 0o640)
    (claude.user / ".claude.json").unlink()
    (claude.user / ".claude.json").symlink_to("dotfiles/claude.json")
    before = claude.snapshot()
    claude.connect("claude-code")
    assert (claude.user / ".claude.json").is_symlink()
    assert b"ipfsmem" in real.read_bytes() and stat.S_IMODE(real.stat().st_mode) == 0o640
    claude.disconnect("claude-code")
    assert claude.snapshot() == before


def test_dangling_link_gets_its_file(claude: Machine) -> None:
    (claude.user / ".claude.json").unlink()
    (claude.user / ".claude.json").symlink_to("elsewhere.json")
    before = claude.snapshot()
    claude.connect("claude-code")
    assert (claude.user / "elsewhere.json").is_file()
    claude.disconnect("claude-code")
    assert claude.snapshot() == before


def test_settings_path_that_is_not_a_file_is_named(claude: Machine) -> None:
    path = claude.user / ".claude.json"
    path.unlink()
    path.symlink_to(".claude.json")
    with pytest.raises(StorageError, match="leads back to itself") as said:
        claude.connect("claude-code")
    assert said.value.hint == "Remove the link, then try again."
    path.unlink()
    claude.connect("claude-code")
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError, match="is not a file") as said:
        claude.connect("claude-code")
    assert "something else is in its place" in said.value.hint


def test_edit_between_read_and_write_is_not_overwritten(claude: Machine) -> None:
    for plan in (claude.plan("claude-code"), None):
        if plan is None:
            claude.connect("claude-code")
            plan = claude.plan("claude-code", Launch(("/opt/ipfsmem",)))
        edited = (claude.user / ".claude.json").read_text().replace("7", "8")
        claude.put(".claude.json", edited)
        with pytest.raises(ChangedError, match="written concurrently"):
            plan.carry_out()
        assert (claude.user / ".claude.json").read_text() == edited
        claude.disconnect("claude-code")
        assert (claude.user / ".claude.json").read_text() == CLAUDE.replace("7", "8")
        claude.put(".claude.json", CLAUDE)


@pytest.mark.parametrize("can_exchange", [True, False])
def test_edit_at_the_moment_of_the_write_is_restored(
    can_exchange: bool, claude: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system cannot exchange files, such an edit cannot be detected."""
    theirs = CLAUDE.replace("7", "8")
    exchange = Directory.exchange
    written: list[str] = []

    def exchanged(folder: Directory, name: str, other: Directory, new: str) -> bool:
        if not can_exchange:
            return False
        if new == ".claude.json" and not written:
            written.append(new)
            (claude.user / new).write_text(theirs)
        return exchange(folder, name, other, new)

    monkeypatch.setattr(Directory, "exchange", exchanged)
    if can_exchange:
        with pytest.raises(ChangedError):
            claude.connect("claude-code")
        assert (claude.user / ".claude.json").read_text() == theirs
    else:
        claude.connect("claude-code")
        assert b"ipfsmem" in (claude.user / ".claude.json").read_bytes()
    assert not [path for path in claude.user.rglob("*") if path.name.endswith(".tmp")]


def test_newer_of_two_edits_at_the_moment_of_the_write_remains(
    claude: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program writes again before its first edit is restored."""
    edits = [CLAUDE.replace("7", "8"), CLAUDE.replace("7", "9")]
    exchange, left = Directory.exchange, list(edits)

    def exchanged(folder: Directory, name: str, other: Directory, new: str) -> bool:
        if new == ".claude.json" and left:
            (claude.user / new).write_text(left.pop(0))
        return exchange(folder, name, other, new)

    monkeypatch.setattr(Directory, "exchange", exchanged)
    with pytest.raises(ChangedError, match="has the one before"):
        claude.connect("claude-code")
    assert (claude.user / ".claude.json").read_text() == edits[1]
    (aside,) = [path for path in claude.user.rglob("*") if path.name.endswith(".tmp")]
    assert aside.read_text() == edits[0]


def test_file_changed_while_entry_is_added_or_removed_stays(machine: Machine) -> None:
    (machine.user / ".claude").mkdir()
    plan = machine.plan("claude-code")
    machine.put(".claude.json", "{}")
    with pytest.raises(ChangedError):
        plan.carry_out()
    assert (machine.user / ".claude.json").read_text() == "{}"
    found = config_files.read(machine.user / ".claude.json")
    machine.put(".claude.json", '{"a": 1}')
    with pytest.raises(ChangedError):
        config_files.replace(found, None)
    assert (machine.user / ".claude.json").read_text() == '{"a": 1}'


def test_interrupted_connect_can_be_undone_and_repeated(
    claude: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = claude.snapshot()
    put = config_files.put
    for stop_at in (1, 2):
        calls = iter(range(1, 9))

        def stop_before(ready: config_files.Ready) -> None:
            if next(calls) >= stop_at:  # noqa: B023 - called in this round only
                raise KeyboardInterrupt
            put(ready)

        monkeypatch.setattr(config_files, "put", stop_before)
        with pytest.raises(KeyboardInterrupt):
            claude.connect("claude-code")
        monkeypatch.setattr(config_files, "put", put)
        assert claude.disconnect("claude-code").connected is False
        assert claude.snapshot() == before
        monkeypatch.setattr(config_files, "put", stop_before)
        calls = iter(range(1, 9))
        with pytest.raises(KeyboardInterrupt):
            claude.connect("claude-code")
        monkeypatch.setattr(config_files, "put", put)
        claude.connect("claude-code")
        claude.disconnect("claude-code")
        assert claude.snapshot() == before


@pytest.mark.parametrize("module", [config_files, atomic_files])
def test_connect_on_a_disk_that_fills_changes_no_file(
    module: ModuleType, claude: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = claude.snapshot()
    failed = 0
    for room in range(20):
        left = [room]

        def full(descriptor: int) -> None:
            left[0] -= 1  # noqa: B023 - called in this round only
            if left[0] < 0:  # noqa: B023
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(module, "flush_to_disk", full)
        try:
            claude.connect("claude-code")
        except StorageError:
            failed += 1
            assert claude.snapshot() == before
            assert not connections.folder(claude.home).exists()
        else:
            break
    monkeypatch.undo()
    assert failed >= 2
    claude.disconnect("claude-code")
    assert claude.snapshot() == before


def test_copies_of_settings_are_readable_only_by_their_owner(claude: Machine) -> None:
    claude.connect("claude-code")
    kept = claude.home / ".agents"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    files = list(kept.iterdir())
    assert len(files) == 3 and all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert {file.read_text() for file in files if file.suffix == ".before"} == {CLAUDE, SETTINGS}


def test_missing_or_changed_copy_stops_the_disconnect(claude: Machine) -> None:
    claude.connect("claude-code")
    connected = claude.snapshot()
    for copy in (claude.home / ".agents").glob("*.before"):
        copy.write_text("{}")
    with pytest.raises(StorageError, match="gone, or was changed"):
        claude.disconnect("claude-code")
    assert claude.snapshot() == connected


# -- where settings lie -------------------------------------------------------------------------------------------------------


def test_settings_moved_by_a_variable_are_disconnected_in_both_places(
    claude: Machine, tmp_path: Path
) -> None:
    before = claude.snapshot()
    claude.connect("claude-code")
    moved = tmp_path / "moved"
    moved.mkdir()
    claude.with_variable(CLAUDE_CONFIG_DIR=str(moved))
    claude.connect("claude-code")
    assert sorted(path.name for path in moved.iterdir()) == [".claude.json", "settings.json"]
    claude.disconnect("claude-code")
    assert claude.snapshot() == before and not [*moved.iterdir()]


@pytest.mark.parametrize(
    "name, system, variables, paths",
    [
        ("claude-code", "linux", {}, [".claude.json", ".claude/settings.json"]),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "~/c"}, ["c/.claude.json", "c/settings.json"]),
        ("codex", "win32", {}, [".codex/config.toml", ".codex/hooks.json"]),
        ("codex", "linux", {"CODEX_HOME": "~/c"}, ["c/config.toml", "c/hooks.json"]),
        ("cursor", "win32", {}, [".cursor/mcp.json", ".cursor/hooks.json"]),
        ("gemini", "darwin", {}, [".gemini/settings.json"]),
        ("gemini", "linux", {"GEMINI_CLI_HOME": "~/g"}, ["g/.gemini/settings.json"]),
        ("vscode", "linux", {}, [".config/Code/User/mcp.json"]),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "~/x"}, ["x/Code/User/mcp.json"]),
        ("vscode", "darwin", {}, ["Library/Application Support/Code/User/mcp.json"]),
        ("vscode", "win32", {"APPDATA": "~/r"}, ["r/Code/User/mcp.json"]),
        ("opencode", "win32", {}, [".config/opencode/opencode.json"]),
        ("opencode", "linux", {"XDG_CONFIG_HOME": "~/x"}, ["x/opencode/opencode.json"]),
        ("zed", "linux", {}, [".config/zed/settings.json"]),
        ("zed", "linux", {"FLATPAK_XDG_CONFIG_HOME": "~/f"}, ["f/zed/settings.json"]),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "~/x"}, [".config/zed/settings.json"]),
        ("zed", "win32", {}, ["AppData/Roaming/Zed/settings.json"]),
        ("qwen-code", "darwin", {}, [".qwen/settings.json"]),
        ("copilot", "win32", {}, [".copilot/mcp-config.json"]),
        ("copilot", "linux", {"COPILOT_HOME": "~/c"}, ["c/mcp-config.json"]),
        ("cline", "linux", {}, [".cline/data/settings/cline_mcp_settings.json"]),
        ("cline", "linux", {"CLINE_DIR": "~/c"}, ["c/data/settings/cline_mcp_settings.json"]),
        ("claude-desktop", "darwin", {}, ["Library/Application Support/Claude/claude_desktop_config.json"]),
        ("claude-desktop", "win32", {}, ["AppData/Roaming/Claude/claude_desktop_config.json"]),
        ("windsurf", "win32", {}, [".codeium/windsurf/mcp_config.json"]),
        ("continue", "darwin", {}, [".continue/mcpServers/ipfsmem.json"]),
        ("continue", "linux", {"CONTINUE_GLOBAL_DIR": "~/c"}, ["c/mcpServers/ipfsmem.json"]),
    ],
)
def test_settings_path_is_known_on_each_system(
    name: str, system: str, variables: dict[str, str], paths: list[str], tmp_path: Path
) -> None:
    user = tmp_path / "user"
    values = {key: value.replace("~", str(user)) for key, value in variables.items()}
    machine = Machine(tmp_path, system, **values)
    assert machine.files(name) == [user / path for path in paths]


class EarlierLaunch(Launch, frozen=True):
    """How the version of November 2026 started the server."""

    def server(self) -> tuple[str, ...]:
        return (*self.words, "mcp", "--sync", *self.memory)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("vault", ["default", "work"])
def test_connect_replaces_entries_of_an_earlier_version(machine: Machine, name: str, vault: str) -> None:
    now = Launch(LAUNCH.words, LAUNCH.memory if vault == "default" else ("--vault", vault))
    earlier = EarlierLaunch(LAUNCH.words, LAUNCH.memory if vault == "default" else ("--namespace", vault))
    for path, data in before_of(name).items():
        machine.put(path, data)
    before = machine.snapshot()
    machine.connect(name, now)
    fresh = machine.snapshot()
    machine.disconnect(name)
    assert machine.snapshot() == before
    machine.connect(name, earlier)
    assert machine.snapshot() != fresh
    assert machine.connect(name, now).written
    assert machine.snapshot() == fresh
    machine.disconnect(name)
    assert machine.snapshot() == before


def test_document_has_a_section_for_each_program_with_its_files() -> None:
    page = (HERE.parents[2] / "docs" / "reference" / "agents.md").read_text("utf-8")
    for name, program in PROGRAMS.items():
        section = page.partition(f"\n## {program.title}\n")[2].partition("\n## ")[0]
        for path in before_of(name):
            assert Path(path).name in section, (name, path)


def test_continue_is_connected_in_one_file_even_if_settings_appear_later(machine: Machine) -> None:
    machine.put(".continue/.keep", "")
    before = machine.snapshot()
    machine.connect("continue")
    ours = machine.user / ".continue" / "mcpServers" / "ipfsmem.json"
    assert ours.exists()
    settings = machine.put(".continue/config.yaml", "name: mine\nversion: 1.0.0\n")
    machine.connect("continue")
    assert "ipfsmem" in settings.read_text() and not ours.exists()
    machine.disconnect("continue")
    assert settings.read_text() == "name: mine\nversion: 1.0.0\n"
    settings.unlink()
    assert machine.snapshot() == before


def test_opencode_version_2_settings_get_their_own_form(machine: Machine) -> None:
    text = '{"mcp": {"servers": {"docs": {"type": "remote", "url": "https://docs.example.com"}}}}'
    file = machine.put(".config/opencode/opencode.json", text)
    machine.connect("opencode")
    servers = json.loads(file.read_bytes())["mcp"]["servers"]
    assert servers["ipfsmem"] == {
        "type": "local",
        "command": ["/usr/local/bin/ipfsmem", "serve", "mcp", "--sync", "--home", "/memories"],
    }
    machine.disconnect("opencode")
    assert file.read_text() == text


def test_codex_tables_rewritten_by_codex_are_found(machine: Machine) -> None:
    """`codex mcp add` rewrites all servers without our marks, in another order."""
    file = machine.put(".codex/config.toml", 'model = "x"\n')
    machine.connect("codex")
    lines = [line for line in file.read_text().splitlines() if "ipfsmem" not in line or "=" in line]
    own = "\n".join(line for line in lines[1:] if line)
    file.write_text(f'[mcp_servers.ipfsmem]\n{own}\n\n[mcp_servers.new]\ncommand = "y"\n')
    machine.disconnect("codex")
    assert tomllib.loads(file.read_text()) == {"mcp_servers": {"new": {"command": "y"}}}


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = [{ command = 'x' }]\n",
        "model = \n",
        "mcp_servers = 1\n",
        f"a = {'[' * 3000}{']' * 3000}\n",
        f"a = {'9' * 5000}\n",
    ],
    ids=range(5),
)
def test_toml_that_cannot_have_the_table_is_unchanged(text: str, machine: Machine) -> None:
    file = machine.put(".codex/config.toml", text)
    with pytest.raises(FormatError, match=r"config\.toml: .*It is unchanged"):
        machine.connect("codex")
    assert file.read_text() == text and not (machine.user / ".codex" / "hooks.json").exists()


def test_our_edited_toml_table_is_removed_only_on_request(machine: Machine) -> None:
    file = machine.put(".codex/config.toml", 'model = "x"\n')
    machine.connect("codex")
    file.write_text(file.read_text().replace("args = [", "startup_timeout_sec = 30\nargs = ["))
    with pytest.raises(ChangedError, match=r"mcp_servers\.ipfsmem"):
        machine.disconnect("codex")
    machine.disconnect("codex", replace=True)
    assert file.read_text().rstrip() == 'model = "x"'


def test_connect_list_shows_the_state_of_each_program(claude: Machine) -> None:
    def claude_state():
        return next(one for one in states(claude.home, claude.around) if one.program == "claude-code")

    assert [one.program for one in states(claude.home, claude.around)] == list(PROGRAMS)
    assert (claude_state().here, claude_state().connected, claude_state().since) == (True, False, None)
    claude.connect("claude-code")
    found = claude_state()
    assert (found.connected, found.since, found.changed, found.problem) == (True, NOW, (), "")
    claude.put(".claude.json", "{")
    assert not claude_state().problem.startswith("Traceback") and "line 1" in claude_state().problem
    claude.put(".claude.json", '{"mcpServers": {"ipfsmem": {"command": "mine"}}}')
    (claude.home / ".agents" / "claude-code.json").unlink()
    assert "mcpServers.ipfsmem" in claude_state().problem
