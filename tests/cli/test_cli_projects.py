"""`ipfsmem connect claude-code --project DIR` and `--all`: preview, connect and disconnect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.agents import adoption
from ipfsmem.agents.session_text import session_text
from ipfsmem.device.agent_notes import note_syncing
from ipfsmem.device.project_folders import ProjectFolder
from ipfsmem.errors import ProviderUnavailable, StorageError
from ipfsmem.memory import Memory
from tests.support.agents_lab import Claude, repository, worktree
from tests.support.cli_lab import Cli
from tests.support.extras import need_extra
from tests.support.outcomes import Place


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claude:
    made = Claude(tmp_path / "me")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.folder))
    made.state = made.folder / ".claude.json"
    return made


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    need_extra("mcp", "mcp")
    made = Cli(tmp_path / "home", monkeypatch)
    made.ok("init", "--mode", "local")
    return made


def test_project_is_previewed_connected_and_disconnected(cli: Cli, claude: Claude, tmp_path: Path) -> None:
    root = repository(tmp_path / "my api")
    file = claude.remembers(root, "deploy", "make ship")
    state = claude.state.read_bytes()
    shown = cli.ok("connect", "claude-code", "--project", str(root), "--dry-run")
    assert "the new scope api-" in shown.out
    assert f"{file.parent}, 2 files" in shown.out
    assert "Nothing was changed." in shown.out
    assert claude.state.read_bytes() == state
    assert not cli.ok("scope", "list").out

    done = cli.ok("connect", "claude-code", "--project", str(root), "--json").json
    (one,) = done["projects"]
    assert (one["folder"], one["files"], one["new_scope"]) == (str(root), 2, True)
    assert "make ship" in cli.ok("read", "deploy", "--scope", one["scope"]).out
    again = cli.ok("connect", "claude-code", "--project", str(root))
    assert f"{root} was already connected." in again.out

    gone = cli.ok("disconnect", "claude-code", "--project", str(root))
    assert "is disconnected" in gone.out
    assert file.exists()
    cli.fails(4, "disconnect", "claude-code", "--project", str(root))
    cli.ok("disconnect", "claude-code")
    assert claude.state.read_bytes() == state


def test_connect_all_connects_listed_projects_and_names_open_questions(
    cli: Cli, claude: Claude, tmp_path: Path
) -> None:
    one = repository(tmp_path / "one", "https://github.com/a/one")
    two = repository(tmp_path / "two", "https://github.com/a/two")
    other = repository(tmp_path / "other", "https://github.com/b/two")
    for root in (one, two):
        claude.remembers(root, "deploy", str(root))
    assert cli("connect", "claude-code", "--all").code == 2  # there is no terminal for questions
    assert not cli.ok("scope", "list").out
    shown = cli.ok("connect", "claude-code", "--all", "--dry-run").out
    assert "Nothing was changed." in shown and "No changes." not in shown
    done = cli.ok("connect", "claude-code", "--all", "--yes").out
    assert (
        "Claude Code is connected now." in done
        and f"{one} is connected now.\n{two} is connected now." in done
    )
    assert "ipfsmem sync" not in done
    assert len(cli.ok("scope", "list").out.splitlines()) == 2

    claude.remembers(other, "deploy", "later")
    told = cli("connect", "claude-code", "--all", "--yes")
    assert told.code == 7
    assert "1 project could not be connected" in told.err
    assert str(other) in told.out
    assert len(cli.ok("scope", "list").out.splitlines()) == 2
    cli.ok("connect", "claude-code", "--project", str(other), "--new")
    assert len(cli.ok("scope", "list").out.splitlines()) == 3
    assert "is disconnected" in cli.ok("disconnect", "claude-code", "--all").out
    assert "No connected projects" in cli.ok("disconnect", "claude-code", "--all").out


@pytest.mark.parametrize(
    "words",
    [
        ["claude-code", "--project", "x", "--all"],
        ["codex", "--all"],
        ["claude-code", "--project", ""],
        ["claude-code", "--project", "/no/such/folder"],
        ["claude-code", "--all", "--new"],
        ["claude-code", "--scope", "work"],
        ["codex", "--new"],
        ["claude-code", "--project", "/", "--scope", "x", "--new"],
    ],
)
def test_invalid_project_calls_change_nothing(cli: Cli, claude: Claude, words: list[str]) -> None:
    claude.state.write_text("{}")
    assert cli("connect", *words).code == 2
    assert claude.state.read_text() == "{}"


def test_project_connected_on_another_machine_arrives_with_a_sync(
    claude: Claude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_extra("mcp", "mcp")
    place = Place(tmp_path, monkeypatch, "sealed")
    place.ok("sync", device=place.other)
    claude.remembers(repository(tmp_path / "api"), "deploy", "make ship")
    place.ok("connect claude-code --all --yes", "sync")

    other = Claude(tmp_path / "second")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other.folder))
    other.state = other.folder / ".claude.json"
    root = repository(tmp_path / "elsewhere" / "api")
    memory = other.used_in(root)
    told = place.run("connect claude-code --all --yes", place.other)
    assert f"{root}: skipped, no memories yet" in told.out
    assert "To get memories of another machine first: ipfsmem sync" in told.out
    place.ok("sync", device=place.other)
    assert f"{root} is connected now." in place.run("connect claude-code --all --yes", place.other).out
    assert "make ship" in (memory / "deploy.md").read_text()


def test_memory_folder_of_another_worktree_is_named(cli: Cli, claude: Claude, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    claude.remembers(root, "deploy", "make ship")
    kept = claude.remembers(worktree(root, tmp_path / "tree"), "auth", "JWT").parent
    told = cli.ok("connect", "claude-code", "--all", "--yes").out
    scope = cli.ok("scope", "list").out.split("\t")[0]
    assert f"ipfsmem folder attach {kept} --scope {scope}" in told
    cli.ok("folder", "attach", str(kept), "--scope", scope)
    assert "JWT" in cli.ok("read", "auth", "--scope", scope).out
    assert "working tree" not in cli.ok("connect", "claude-code", "--all", "--yes").out


def test_status_shows_failing_background_syncs(cli: Cli) -> None:
    note_syncing(cli.home / "default", ProviderUnavailable("the stick at /secret is gone"))
    assert "automatic sync has been failing since" in cli.ok("status").out
    assert "ProviderUnavailable" in cli.ok("service", "status").out
    note_syncing(cli.home / "default", None)
    assert "has been failing" not in cli.ok("status").out


def test_memory_folder_named_by_project_settings_requires_consent(
    cli: Cli, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    claude.used_in(root)
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    (chosen / "note.md").write_text("text")
    (root / ".claude").mkdir()
    (root / ".claude" / "settings.local.json").write_text(json.dumps({"autoMemoryDirectory": str(chosen)}))
    told = cli("connect", "claude-code", "--all", "--yes")
    assert told.code == 7
    assert "settings.local.json chooses the folder" in told.err
    assert cli("connect", "claude-code", "--project", str(root)).code == 2
    assert not cli.ok("scope", "list").out
    cli.ok("connect", "claude-code", "--project", str(root), "--yes")
    assert cli.ok("scope", "list").out


def test_disconnect_all_names_remaining_folders_and_continues_on_failure(
    cli: Cli, claude: Claude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = repository(tmp_path / "one", "https://github.com/a/one")
    two = repository(tmp_path / "two", "https://github.com/a/two")
    for root in (one, two):
        claude.remembers(root, "deploy", str(root))
    cli.ok("connect", "claude-code", "--all", "--yes")
    told = cli.ok("disconnect", "claude-code").out
    assert "memory folders of 2 projects stay linked" in told
    assert "ipfsmem disconnect claude-code --all" in told
    let_go = adoption.let_go

    def first_fails(memory: Memory, row: ProjectFolder) -> None:
        if row.path == str(one):
            raise StorageError("texts are set aside")
        let_go(memory, row)

    monkeypatch.setattr(adoption, "let_go", first_fails)
    failed = cli("disconnect", "claude-code", "--all")
    assert failed.code == 7
    assert f"{two} is disconnected" in failed.out
    assert "1 project could not be disconnected" in failed.err


def test_project_is_connected_to_codex_without_claude_code(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (codex := tmp_path / "codex").mkdir()
    monkeypatch.setenv("CODEX_HOME", str(codex))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "none"))
    root = repository(tmp_path / "api")
    shown = cli.ok("connect", "codex", "--project", str(root), "--dry-run")
    assert "the new scope api-" in shown.out and "Nothing was changed." in shown.out
    assert not cli.ok("scope", "list").out and not list(codex.iterdir())
    done = cli.ok("connect", "codex", "--project", str(root), "--json").json
    (one,) = done["projects"]
    assert (one["folder"], one["new_scope"], one["memory_folder"]) == (str(root), True, "")
    assert "ipfsmem" in (codex / "config.toml").read_text()
    cli.ok("write", "deploy", "--body", "make ship", "--scope", one["scope"])
    with Memory.load(home=cli.home) as memory:
        text = session_text("default", cli.home, str(root), "codex", 2_000)
        assert "deploy" in text.text and not text.lines
        assert not memory.folders.troubles()
    assert f"{root} was already connected." in cli.ok("connect", "codex", "--project", str(root)).out
    assert not (tmp_path / "none").exists()
    gone = cli.ok("disconnect", "codex", "--project", str(root))
    assert f"{root} is disconnected." in gone.out
    assert "connect codex --project" in session_text("default", cli.home, str(root), "codex", 2_000).lines[0]
    assert "--all is for claude-code only" in cli.fails(2, "connect", "codex", "--all").err
