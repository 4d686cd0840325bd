"""Our entries in settings files after edits by a person or a program: our changes are reported, and theirs are kept."""

from __future__ import annotations

import errno
import functools
import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ipfsmem.agents import connections
from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.programs import PROGRAMS
from ipfsmem.device import config_files
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import ChangedError, ConfigError, LockedError, StorageError
from tests.unit.agents.connect_lab import Machine

MINE = {"type": "command", "command": "MINE"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.put(".claude.json", '{"numStartups": 7}\n')
    made.put(".claude/settings.json", "{}\n")
    return made


def hooks(machine: Machine) -> Path:
    return machine.user / ".claude" / "settings.json"


def with_mine(machine: Machine) -> None:
    """Add the user's own hook to the group that is ours."""
    said = json.loads(hooks(machine).read_bytes())
    said["hooks"]["Stop"][0]["hooks"].append(MINE)
    hooks(machine).write_text(json.dumps(said, indent=2))


def kept(machine: Machine) -> list[str]:
    return [path.read_text() for path in (machine.home / ".agents").glob("*.kept")]


# -- settings that the program wrote since ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_connect_again_after_program_wrote_changes_no_byte(name: str, machine: Machine) -> None:
    """The program adds entries after ours and reformats its file."""
    trace = PROGRAMS[name].traces(machine.around)[0]
    trace.mkdir(parents=True, exist_ok=True)
    machine.connect(name)
    for path in machine.files(name):
        if path.suffix == ".json":
            said = json.loads(path.read_bytes())
            path.write_text(json.dumps(said | {"later": {"a": [1]}}, indent=4))
        elif path.suffix == ".toml":
            path.write_text(path.read_text() + '\n[later]\na = "b"\n')
        else:
            path.write_text(yaml.dump(yaml.safe_load(path.read_text()) | {"later": {"a": [1]}}))
    before = machine.snapshot()
    answer = machine.connect(name)
    assert machine.snapshot() == before
    assert not answer.written and answer.files == () and answer.connected
    machine.disconnect(name)
    for path in machine.files(name):
        assert b"ipfsmem" not in path.read_bytes()
        assert b"later" in path.read_bytes()


# -- hooks that were edited ---------------------------------------------------------------------------------------------------


def test_our_edited_hooks_are_named_and_removed_on_request(machine: Machine) -> None:
    machine.connect("claude-code")
    edited = hooks(machine).read_text().replace('"timeout": 10', '"timeout": 20')
    hooks(machine).write_text(edited)
    for act in (machine.disconnect, machine.connect):
        with pytest.raises(ChangedError, match=r"hooks\.SessionStart, .*hooks\.Stop.* was edited since"):
            act("claude-code")
    assert hooks(machine).read_text() == edited and (machine.home / ".agents" / "claude-code.json").exists()
    answer = machine.disconnect("claude-code", replace=True)
    assert "ipfsmem" not in hooks(machine).read_text()
    assert kept(machine) == [edited]
    assert [path.name in answer.notes[0] for path in (machine.home / ".agents").iterdir()] == [True]


def test_moved_or_duplicated_hook_of_ours_is_removed(machine: Machine) -> None:
    machine.connect("claude-code")
    said = json.loads(hooks(machine).read_bytes())
    said["hooks"]["Stop"].append(said["hooks"]["Stop"][0])
    hooks(machine).write_text(json.dumps(said))
    machine.disconnect("claude-code")
    assert "ipfsmem" not in hooks(machine).read_text()


def test_server_entry_moved_by_the_program_is_found(machine: Machine) -> None:
    """opencode converts settings of its version 1 to those of version 2."""
    file = machine.put(".config/opencode/opencode.json", '{"theme": "x"}')
    machine.connect("opencode")
    moved = '{"theme": "x", "mcp": {"servers": {"ipfsmem": {"type": "local", "command": ["ipfsmem"]}}}}'
    file.write_text(moved)
    with pytest.raises(ChangedError, match=r"mcp\.servers\.ipfsmem"):
        machine.disconnect("opencode")
    assert file.read_text() == moved
    machine.disconnect("opencode", replace=True)
    assert "ipfsmem" not in file.read_text() and kept(machine) == [moved]


def test_settings_moved_with_our_entry_in_them_are_found(machine: Machine, tmp_path: Path) -> None:
    machine.connect("claude-code")
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "settings.json").write_bytes(hooks(machine).read_bytes())
    machine.with_variable(CLAUDE_CONFIG_DIR=str(moved))
    with pytest.raises(ConfigError, match=r"moved/settings\.json"):
        machine.disconnect("claude-code")
    machine.disconnect("claude-code", replace=True)
    assert "ipfsmem" not in (moved / "settings.json").read_text() + hooks(machine).read_text()


# -- what a person or a program changed around ours -----------------------------------------------------------------------------


def reindented(indent: int | str | None) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text), indent=indent) + "\n"


def with_more(*, first: bool) -> Callable[[str], str]:
    def more(text: str) -> str:
        said = json.loads(text)
        return json.dumps({"mine": 1, **said} if first else {**said, "mine": 1}, indent=2) + "\n"

    return more


def with_line_ends_of_windows(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


AROUND = {
    "indent 4": reindented(4),
    "tabs": reindented("\t"),
    "one line": reindented(None),
    "indent 2": reindented(2),
    "something before": with_more(first=True),
    "something behind": with_more(first=False),
    "CRLF": with_line_ends_of_windows,
    "a line feed more": lambda text: f"{text}\n",
    "no last line feed": lambda text: text.rstrip("\n"),
}


@pytest.mark.parametrize("change", AROUND.values(), ids=AROUND.keys())
@pytest.mark.parametrize(
    "before",
    [
        "{}",
        '{"a": 1}',
        '{\n  "a": 1\n}\n',
        '{\n  "a": 1,\n  "hooks": {}\n}\n',
        '{"version": 1, "hooks": {}}\n',
        '{\n  "version": 1\n}\n',
    ],
)
@pytest.mark.parametrize("name", ["claude-code", "codex", "cursor", "opencode"])
def test_reformatted_json_without_our_entry_is_restored_to_the_byte(
    name: str, before: str, change: Callable[[str], str], machine: Machine
) -> None:
    file = next(one for one in reversed(machine.files(name)) if one.suffix != ".toml")
    machine.put(str(file.relative_to(machine.user)), before)
    machine.connect(name)
    changed = change(file.read_bytes().decode())
    file.write_bytes(changed.encode())
    machine.disconnect(name)
    assert file.read_bytes().decode() == change(before)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ('model = "o"', lambda text: text.rstrip("\n"), 'model = "o"'),
        ('model = "o"\n', lambda text: text.rstrip("\n"), 'model = "o"\n'),
        ('model = "o"', lambda text: f"{text}\n", 'model = "o"\n'),
        ('model = "o"\n', lambda text: f"{text}# mine", 'model = "o"\n# mine'),
        ('model = "o"\n', with_line_ends_of_windows, 'model = "o"\r\n'),
        ('model = "o"\n', lambda text: text.replace("args =", "args  ="), 'model = "o"\n'),
    ],
)
def test_toml_after_disconnect_equals_the_edited_file_without_our_block(
    before: str, change: Callable[[str], str], after: str, machine: Machine
) -> None:
    file = machine.put(".codex/config.toml", before)
    machine.connect("codex")
    file.write_bytes(change(file.read_bytes().decode()).encode())
    machine.disconnect("codex")
    assert file.read_bytes().decode() == after


@pytest.mark.parametrize("change", ["indent 4", "tabs", "one line", "CRLF", "a line feed more"])
@pytest.mark.parametrize("before", ["", "\n", None])
@pytest.mark.parametrize(
    ("name", "path"), [("cursor", ".cursor/hooks.json"), ("opencode", ".config/opencode/opencode.json")]
)
def test_skeleton_of_empty_file_is_removed_even_if_reformatted(
    name: str, path: str, before: str | None, change: str, machine: Machine
) -> None:
    file = machine.user / path
    file.parent.mkdir(parents=True)
    if before is not None:
        file.write_text(before)
    machine.connect(name)
    file.write_bytes(AROUND[change](file.read_bytes().decode()).encode())
    machine.disconnect(name)
    assert (file.read_text() if file.exists() else None) == before


# -- what is somebody else's --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edited", [False, True])
def test_user_hook_in_our_group_is_kept(edited: bool, machine: Machine) -> None:
    machine.connect("claude-code")
    with_mine(machine)
    if edited:
        hooks(machine).write_text(hooks(machine).read_text().replace('"timeout": 10', '"timeout": 20'))
    machine.disconnect("claude-code", replace=edited)
    assert json.loads(hooks(machine).read_bytes()) == {"hooks": {"Stop": [{"hooks": [MINE]}]}}
    assert len(kept(machine)) == edited


def test_user_hook_next_to_ours_is_kept_by_a_new_connect(machine: Machine) -> None:
    machine.connect("claude-code")
    with_mine(machine)
    machine.connect("claude-code", Launch(("/opt/ipfsmem",)))
    said = hooks(machine).read_text()
    assert said.count("MINE") == 1 and said.count("/opt/ipfsmem") == 4 and "/usr/local" not in said
    once = machine.snapshot()
    assert not machine.connect("claude-code", Launch(("/opt/ipfsmem",))).written
    assert machine.snapshot() == once


def test_hook_of_another_home_is_removed_and_the_user_hook_kept(machine: Machine) -> None:
    """This home has no record of those entries."""
    machine.connect("claude-code")
    with_mine(machine)
    for path in (machine.home / ".agents").iterdir():
        path.unlink()
    before = hooks(machine).read_text()
    machine.disconnect("claude-code", replace=True)
    assert json.loads(hooks(machine).read_bytes()) == {"hooks": {"Stop": [{"hooks": [MINE]}]}}
    assert before in kept(machine)


def test_replaced_foreign_entry_is_kept_and_named(machine: Machine) -> None:
    """The program has rewritten the file, so the entry cannot be restored in place."""
    theirs = '{"mcpServers": {"ipfsmem": {"command": "x", "env": {"TOKEN": "t0ken"}}}}'
    file = machine.put(".claude.json", theirs)
    machine.connect("claude-code", replace=True)
    assert not machine.connect("claude-code").written  # it is ours now: no consent is needed again
    file.write_text(file.read_text().replace("{", '{"numStartups": 8,', 1))
    machine.connect("claude-code", Launch(("/opt/ipfsmem",)))
    answer = machine.disconnect("claude-code")
    assert json.loads(file.read_bytes())["numStartups"] == 8 and "t0ken" not in file.read_text()
    assert kept(machine) == [theirs]
    assert not any("t0ken" in each.difference for each in answer.files)


# -- Codex ------------------------------------------------------------------------------------------------------------------------

APPROVED = '\n[mcp_servers.ipfsmem.tools.remember]\napproval_mode = "approve"\n'


@pytest.mark.parametrize("place", ["in the block", "behind it", "after another table"])
def test_edits_of_codex_in_our_table_are_kept_and_removed_with_it(place: str, machine: Machine) -> None:
    file = machine.put(".codex/config.toml", 'model = "x"\n')
    machine.connect("codex")
    text = file.read_text()
    if place == "in the block":
        text = text.replace("# <<<", f"enabled = false\n{APPROVED}# <<<")
    else:
        text += "\n[tui]\nx = 1\n" * (place == "after another table") + APPROVED
    file.write_text(text)
    machine.connect("codex", Launch(("/opt/ipfsmem",)))
    server = tomllib.loads(file.read_text())["mcp_servers"]["ipfsmem"]
    assert server["command"] == "/opt/ipfsmem"
    assert server["tools"] == {"remember": {"approval_mode": "approve"}}
    assert server.get("enabled") == (False if place == "in the block" else None)
    once = file.read_text()
    assert not machine.connect("codex", Launch(("/opt/ipfsmem",))).written and file.read_text() == once
    file.write_text(f"# mine\n{once}")
    machine.disconnect("codex")
    left = tomllib.loads(file.read_text())
    assert left == {"model": "x"} | ({"tui": {"x": 1}} if "other" in place else {})


# -- the copy of the original -----------------------------------------------------------------------------------------


def test_missing_copy_does_not_block_connect_and_disconnect_forever(machine: Machine) -> None:
    for act in (
        machine.disconnect,
        lambda name, replace=False: machine.connect(name, Launch(("/o",)), replace=replace),
    ):
        machine.connect("claude-code")
        for copy in (machine.home / ".agents").glob("*.before"):
            copy.unlink()
        with pytest.raises(StorageError, match="gone, or was changed") as refused:
            act("claude-code")
        assert "--replace" in refused.value.hint
        act("claude-code", replace=True)
        machine.disconnect("claude-code")
        assert json.loads((machine.user / ".claude.json").read_bytes()) == {"numStartups": 7}
        assert json.loads(hooks(machine).read_bytes()) == {}


def test_copy_is_kept_while_an_interrupted_change_may_need_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the new entry is written, the earlier state is valid."""
    machine.connect("claude-code")
    connected = machine.snapshot()
    file = machine.user / ".claude.json"
    file.write_text(file.read_text().replace("7", "8"))

    def stopped(ready: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(config_files, "put", stopped)
        with pytest.raises(KeyboardInterrupt):
            machine.connect("claude-code", Launch(("/opt/ipfsmem",)))
    file.write_text(file.read_text().replace("8", "7"))
    assert machine.snapshot() == connected
    machine.disconnect("claude-code")
    assert file.read_text() == '{"numStartups": 7}\n'


# -- refusals and leftovers -------------------------------------------------------------------------------------------


def test_file_with_two_hard_links_is_unchanged(machine: Machine) -> None:
    other = machine.user / "dotfiles.json"
    other.hardlink_to(machine.user / ".claude.json")
    before = machine.snapshot()
    with pytest.raises(StorageError, match=r"claude\.json has 2 hard links"):
        machine.connect("claude-code")
    assert machine.snapshot() == before and other.samefile(machine.user / ".claude.json")


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


@pytest.mark.parametrize("what", ["flush_to_disk", "fchmod"])
def test_full_disk_leaves_no_copy_of_settings(
    what: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = machine.plan("claude-code")
    before = machine.snapshot()
    with monkeypatch.context() as patched:
        patched.setattr(config_files.os if what == "fchmod" else config_files, what, full)
        with pytest.raises(StorageError):
            plan.carry_out()
    assert machine.snapshot() == before


@pytest.mark.parametrize(
    "system, launch",
    [
        ("linux", Launch(("/opt/$HOME/ipfsmem",))),
        ("linux", Launch(("/opt/ipfsmem",), ("--home", "/m/${X}"))),
        ("linux", Launch(("/opt/{env:X}/ipfsmem",))),
        ("win32", Launch(("C:/Program Files/ipfsmem.exe",))),
        ("win32", Launch(("C:/ipfsmem.exe",), ("--home", "C:/Users/O'Neil"))),
    ],
)
def test_ambiguous_command_path_is_refused(system: str, launch: Launch, tmp_path: Path) -> None:
    machine = Machine(tmp_path, system)
    machine.put(".claude.json", "{}")
    before = machine.snapshot()
    with pytest.raises(ConfigError, match=r"would be changed|read differently") as refused:
        machine.connect("claude-code", launch)
    assert "connect claude-code --print" in refused.value.hint
    assert machine.snapshot() == before
    machine.connect("claude-code", Launch(("C:/Tools/ipfsmem.exe",), ("--home", "C:/memories")))


def test_windows_server_without_hooks_needs_no_shell(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "win32", APPDATA=str(tmp_path / "user" / "r"))
    machine.put("r/Code/User/mcp.json", "{}")
    assert machine.connect("vscode", Launch(("C:/Program Files/ipfsmem.exe",))).written


def test_concurrent_connect_keeps_the_record_of_the_first(machine: Machine) -> None:
    """Both planned before either wrote; the second is refused."""
    second = machine.plan("claude-code", Launch(("/opt/ipfsmem",)))
    machine.connect("claude-code")
    connected, kept_before = machine.snapshot(), sorted((machine.home / ".agents").iterdir())
    with pytest.raises(ChangedError, match="concurrently"):
        second.carry_out()
    assert machine.snapshot() == connected and sorted((machine.home / ".agents").iterdir()) == kept_before
    machine.disconnect("claude-code")
    assert "ipfsmem" not in hooks(machine).read_text()
    assert not any(machine.home.iterdir())


def test_connect_waits_for_another_connecting_process(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = machine.plan("claude-code")
    monkeypatch.setattr(connections, "file_lock", functools.partial(file_lock, wait=0.01))
    before = machine.snapshot()
    with connections.locked(machine.home), pytest.raises(LockedError):
        plan.carry_out()
    assert machine.snapshot() == before


def test_two_homes_that_connect_concurrently_keep_both_records(machine: Machine) -> None:
    other = Machine.__new__(Machine)
    other.user, other.home, other.around = machine.user, machine.home.with_name("other"), machine.around
    second = other.plan("claude-code", Launch(("/opt/ipfsmem",)))
    machine.connect("claude-code")
    connected = machine.snapshot()
    with pytest.raises(ChangedError, match="written concurrently"):
        second.carry_out()
    with pytest.raises(ConfigError, match="was not written from this home"):
        other.disconnect("claude-code")
    assert machine.snapshot() == connected
    machine.disconnect("claude-code")
    assert "ipfsmem" not in hooks(machine).read_text() + (machine.user / ".claude.json").read_text()
    other.disconnect("claude-code")


def test_disconnect_without_a_record_creates_nothing(machine: Machine) -> None:
    assert not machine.disconnect("claude-code").written
    assert not machine.home.exists()
