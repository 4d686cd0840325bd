"""Claude Code's memory folder of a project becomes a linked folder of the project's scope, and is detached again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.agents.adoption import (
    carry_out,
    connected_project,
    follow,
    let_go,
    plan_all,
    plan_project,
)
from ipfsmem.agents.claude_folders import ClaudeHome, known_projects, memory_place, project_name
from ipfsmem.agents.projects import find_connected
from ipfsmem.bundle.index_block import IndexFile, split_index_file
from ipfsmem.device.connection import DatabaseDamagedError
from ipfsmem.device.project_folders import connected_folders
from ipfsmem.device.tables import meta
from ipfsmem.errors import ChangedError, IpfsmemError, NotFoundError, StorageError, UsageError
from ipfsmem.files.projects import project_at
from ipfsmem.memory import Memory
from tests.support.agents_lab import Claude, repository, worktree
from tests.support.damage_lab import flip_value


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.create("x", "local", home=tmp_path / "home")


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    return Claude(tmp_path / "me")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/me/work/api", "-home-me-work-api"),
        ("/home/me/my app.v2_x", "-home-me-my-app-v2-x"),
        ("C:\\Users\\me\\api", "C--Users-me-api"),
        ("/home/jürgen/ä", "-home-j-rgen--"),
        ("/home/ju\u0308rgen", "-home-j-rgen"),  # decomposed by the file system, one letter to the program
        ("/x/\U0001f600", "-x---"),  # two UTF-16 units in JavaScript
    ],
)
def test_project_folder_name_is_that_of_claude_code(path: str, name: str) -> None:
    assert project_name(path) == name


def test_connected_folder_keeps_every_byte_of_its_files(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    file = claude.remembers(root, "deploy", "Deploy with make ship.")
    before = file.read_bytes()
    plan = plan_project(memory, claude.home, root)
    assert (plan.folder, plan.files, plan.choice.new, plan.done) == (file.parent, 2, True, False)
    assert not memory.scopes.list()

    row = carry_out(memory, plan)
    assert file.read_bytes() == before
    part = memory.scope(row.scope)
    read = part.read("deploy")
    assert read is not None
    assert read.file.body.strip() == "Deploy with make ship."
    part.write("style", "Two spaces.")
    assert (file.parent / "style.md").exists()
    claude.remembers(root, "later", "Written by the agent.")
    memory.folders.scan()
    assert part.read("later") is not None
    assert plan_project(memory, claude.home, root).done

    again = carry_out(memory, plan_project(memory, claude.home, root))
    assert again == row
    assert len(memory.folders.list()) == 2


def test_worktree_uses_the_memory_of_its_repository(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    tree = worktree(root, tmp_path / "other")
    claude.remembers(root, "deploy", "x")
    plan = plan_project(memory, claude.home, tree)
    assert plan.project.folder == root
    assert plan.folder == claude.used_in(root)


def test_subfolder_of_a_repository_has_no_memory_of_its_own(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    (root / "web").mkdir()
    with pytest.raises(UsageError, match="one memory for all of"):
        plan_project(memory, claude.home, root / "web", part=True)
    assert plan_project(memory, claude.home, root / "web").project.folder == root


def test_memory_folder_not_made_by_claude_yet_is_created(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    row = carry_out(memory, plan_project(memory, claude.home, root))
    memory.scope(row.scope).write("deploy", "from the other machine")
    assert (claude.used_in(root) / "deploy.md").exists()


def test_disconnect_keeps_every_file_and_removes_the_binding(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "notes", None)
    config = (root / ".git" / "config").read_bytes()
    file = claude.remembers(root, "deploy", "x")
    row = carry_out(memory, plan_project(memory, claude.home, root))
    files = {one.name for one in file.parent.iterdir() if one.is_file()}
    let_go(memory, connected_project(memory, root))
    assert {one.name for one in file.parent.iterdir() if one.is_file()} == files
    assert (root / ".git" / "config").read_bytes() == config
    assert not connected_folders(memory.replica)
    assert [one.scope for one in memory.folders.list()] == [""]
    assert memory.scope(row.scope).read("deploy") is not None
    with pytest.raises(NotFoundError, match="is not connected"):
        connected_project(memory, root)
    assert len(memory.status().files) == 1


def test_connect_all_skips_ambiguous_projects_and_names_them(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    one, two = (
        repository(tmp_path / "one" / "api"),
        repository(tmp_path / "two" / "api", "https://github.com/b/api"),
    )
    empty = repository(tmp_path / "empty", "https://github.com/b/empty")
    loose = tmp_path / "loose"
    loose.mkdir()
    for root in (one, two, loose):
        claude.remembers(root, "deploy", str(root))
    claude.used_in(empty)
    claude.used_in(tmp_path / "gone")
    plans, left = plan_all(memory, claude.home)
    assert [plan.project.folder for plan in plans] == [loose, one, two]
    assert [(each.folder, each.error) for each in left] == [(empty, "")]
    for plan in plans[:2]:
        carry_out(memory, plan)
    plans, left = plan_all(memory, claude.home)
    assert [(plan.project.folder, plan.done) for plan in plans] == [(loose, True), (one, True)]
    assert "it is unknown whether" in next(each for each in left if each.folder == two).error


def test_projects_are_also_found_by_their_transcripts(claude: Claude, tmp_path: Path) -> None:
    root, other = repository(tmp_path / "a.b"), repository(tmp_path / "a-b", None)
    memory = claude.folder / "projects" / project_name(str(root)) / "memory"
    memory.mkdir(parents=True)
    lines = [{"type": "summary"}, {"type": "user", "cwd": str(root / "src"), "message": "hi"}]
    (root / "src").mkdir()
    (memory.parent / "0.jsonl").write_text("not json\n")
    (memory.parent / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert known_projects(claude.home) == [root / "src"]
    (memory.parent / "0.jsonl").write_text(json.dumps({"cwd": "/etc"}) + "\n")  # not the path of this entry
    assert known_projects(claude.home) == [root / "src"]
    assert other.is_dir()


def test_memory_folder_moved_by_settings_is_found(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    project = project_at(root)
    (root / ".claude").mkdir()
    local, shared = root / ".claude" / "settings.local.json", root / ".claude" / "settings.json"
    local.write_text(json.dumps({"autoMemoryDirectory": str(tmp_path / "mine")}))
    place = memory_place(claude.home, project)
    assert (place.path, place.named_in) == (tmp_path / "mine", local)
    carry_out(memory, plan_project(memory, claude.home, root))
    assert (tmp_path / "mine" / ".ipfsmem" / "marker").exists()

    local.write_text(json.dumps({"autoMemoryDirectory": "relative"}))
    assert memory_place(claude.home, project).named_in is None
    local.unlink()
    shared.write_text(json.dumps({"autoMemoryDirectory": str(tmp_path / "theirs")}))
    with pytest.raises(UsageError, match="anyone with write access to the repository"):
        memory_place(claude.home, project)
    memory.folders.attach(tmp_path / "theirs", scope="theirs")
    shared.unlink()
    (claude.folder / "settings.json").write_text(json.dumps({"autoMemoryDirectory": str(tmp_path / "all")}))
    with pytest.raises(UsageError, match="all projects in one folder"):
        memory_place(claude.home, project)
    memory.folders.attach(tmp_path / "all")
    (claude.folder / "settings.json").write_text("{ // comment")
    with pytest.raises(UsageError, match="not JSON"):
        memory_place(claude.home, project)
    (claude.folder / "settings.json").write_text('{\n  // mine\n  "model": "opus",\n}\n')
    assert memory_place(claude.home, project).named_in is None  # as connecting reads them
    (claude.folder / "settings.json").write_text("{}")
    assert memory_place(claude.home, project).named_in is None


def test_folder_of_a_long_path_is_found_by_its_shortened_name(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / ("x" * 120) / ("y" * 120))
    with pytest.raises(UsageError, match="too long"):
        plan_project(memory, claude.home, root)
    made = claude.folder / "projects" / (project_name(str(root))[:200] + "-1abc2")
    made.mkdir(parents=True)
    assert plan_project(memory, claude.home, root).folder == made / "memory"


def test_moved_project_takes_its_memory_to_the_new_claude_folder(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    claude.remembers(root, "deploy", "x")
    row = carry_out(memory, plan_project(memory, claude.home, root))
    moved = root.rename(tmp_path / "renamed")
    project, found = find_connected(memory, moved)
    assert found is not None
    now = follow(memory, claude.home, project, found)
    assert (now.scope, now.path) == (row.scope, str(moved))
    assert (claude.used_in(moved) / "deploy.md").exists()
    assert follow(memory, claude.home, *find_connected(memory, moved)) == now  # type: ignore[arg-type]
    attached = {one.path for one in memory.folders.list()}
    assert str(claude.used_in(root)) not in attached
    claude.remembers(repository(root, "https://github.com/b/other"), "foreign", "another project's")
    memory.folders.scan()
    assert memory.scope(row.scope).read("foreign") is None
    let_go(memory, connected_project(memory, moved))
    assert [one.scope for one in memory.folders.list()] == [""]


def moved_project(memory: Memory, claude: Claude, base: Path) -> tuple[Path, Path]:
    """Connect and then move a project; return its new and old path."""
    root = repository(base / "api")
    claude.remembers(root, "deploy", "x")
    carry_out(memory, plan_project(memory, claude.home, root))
    return root.rename(base / "renamed"), root


def test_text_written_before_a_move_is_imported(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    moved, root = moved_project(memory, claude, tmp_path)
    claude.remembers(root, "late", "written just before")
    project, row = find_connected(memory, moved)
    assert row is not None
    follow(memory, claude.home, project, row)
    assert memory.scope(row.scope).read("late") is not None


def test_move_imports_no_folder_without_consent(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    moved, _ = moved_project(memory, claude, tmp_path)
    file = claude.remembers(moved, "foreign", "of what was there before")
    project, row = find_connected(memory, moved)
    assert row is not None
    now = follow(memory, claude.home, project, row)
    assert (now.path, now.adopted) == (str(moved), {})
    assert [one.scope for one in memory.folders.list()] == [""]
    assert memory.scope(row.scope).read("foreign") is None
    assert any(str(file.parent) in notice for notice in memory.status().notices)
    carry_out(memory, plan_project(memory, claude.home, moved))
    assert memory.scope(row.scope).read("foreign") is not None
    assert not any(str(file.parent) in notice for notice in memory.status().notices)


def test_move_follows_no_settings_of_the_repository(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    moved, _ = moved_project(memory, claude, tmp_path)
    (moved / ".claude").mkdir()
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    settings = moved / ".claude" / "settings.local.json"
    settings.write_text(json.dumps({"autoMemoryDirectory": str(chosen)}))
    project, row = find_connected(memory, moved)
    assert row is not None
    now = follow(memory, claude.home, project, row)
    assert (now.adopted, list(chosen.iterdir())) == ({}, [])
    assert any(str(chosen) in notice for notice in memory.status().notices)


def test_folder_of_a_replaced_project_is_paused(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    moved, root = moved_project(memory, claude, tmp_path)
    memory.folders.scan()
    assert {one.state for one in memory.folders.list()} == {"ok"}
    repository(root, "https://github.com/b/other")
    claude.remembers(root, "foreign", "another project's")
    memory.folders.scan()
    memory.folders.scan()
    project, row = find_connected(memory, moved)
    assert row is not None
    assert memory.scope(row.scope).read("foreign") is None
    assert [one.state for one in memory.folders.list() if one.scope] == ["paused"]
    follow(memory, claude.home, project, row)
    assert memory.scope(row.scope).read("foreign") is None
    assert {one.path for one in memory.folders.list() if one.scope} == {str(claude.used_in(moved))}


def test_damaged_project_table_leaves_texts_readable(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    row = carry_out(memory, plan_project(memory, claude.home, root))
    claude.remembers(root, "tone", "short sentences")
    folder = memory.replica.folder
    assert folder is not None
    flip_value(folder, meta.PROJECTS)
    memory.folders.scan()
    assert memory.scope(row.scope).read("tone") is not None
    with pytest.raises(DatabaseDamagedError, match="projects"):
        connected_folders(memory.replica)


def test_new_folder_of_a_project_replaces_the_former_one(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    carry_out(memory, plan_project(memory, claude.home, root))
    (root / ".claude").mkdir()
    settings = root / ".claude" / "settings.local.json"
    settings.write_text(json.dumps({"autoMemoryDirectory": str(tmp_path / "mine")}))
    row = carry_out(memory, plan_project(memory, claude.home, root))
    assert [one.path for one in memory.folders.list() if one.scope] == [str(tmp_path / "mine")]
    let_go(memory, row)
    assert not [one for one in memory.folders.list() if one.scope]


def test_project_that_cannot_be_identified_imports_no_text(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api", None)
    file = claude.remembers(root, "deploy", "x")
    (root / ".git" / "config.lock").touch()
    plan = plan_project(memory, claude.home, root)
    with pytest.raises(IpfsmemError):
        carry_out(memory, plan)
    assert memory.scope(plan.choice.scope).read("deploy") is None
    assert not (file.parent / ".ipfsmem").exists()
    assert not connected_folders(memory.replica)


def test_failed_attachment_undoes_the_project_row_and_id(
    memory: Memory, claude: Claude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "api", None)
    before = (root / ".git" / "config").read_bytes()
    plan = plan_project(memory, claude.home, root)

    def full(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(type(memory.folders), "attach", full)
    with pytest.raises(StorageError, match="full"):
        carry_out(memory, plan)
    assert (root / ".git" / "config").read_bytes() == before
    assert not connected_folders(memory.replica)
    assert not (claude.folder / "projects").exists()


def test_failed_attachment_leaves_no_changes(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    root = repository(tmp_path / "notes", None)
    before = (root / ".git" / "config").read_bytes()
    plan = plan_project(memory, claude.home, root)
    plan.folder.parent.mkdir(parents=True)
    plan.folder.write_text("a file")
    with pytest.raises(UsageError, match="not a folder"):
        carry_out(memory, plan)
    assert (root / ".git" / "config").read_bytes() == before
    assert not connected_folders(memory.replica)
    assert not memory.scopes.list()


def test_configuration_folder_follows_the_environment(tmp_path: Path) -> None:
    assert ClaudeHome.of({"CLAUDE_CONFIG_DIR": str(tmp_path)}) == ClaudeHome(
        tmp_path, tmp_path / ".claude.json"
    )
    assert ClaudeHome.of({}).folder == Path.home() / ".claude"


def test_home_folder_cannot_be_a_project(
    memory: Memory, claude: Claude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for folder in (home, tmp_path / "users", Path(tmp_path.anchor)):
        with pytest.raises(UsageError, match="one project"):
            plan_project(memory, claude.home, folder)
    (home / "work").mkdir()
    assert plan_project(memory, claude.home, home / "work").choice.new


def test_projects_that_share_one_folder_are_skipped(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    one = repository(tmp_path / "a.b", "https://github.com/a/one")
    two = repository(tmp_path / "a-b", "https://github.com/a/two")
    for root in (one, two):
        claude.remembers(root, "deploy", "x")
    plans, left = plan_all(memory, claude.home)
    assert plans == []
    assert {each.folder for each in left} == {one, two}
    assert all("memories of 2 projects" in each.error for each in left)


def test_invalid_entry_blocks_no_other_project(memory: Memory, claude: Claude, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    claude.remembers(root, "deploy", "x")
    bad = claude.folder / "projects" / "bad"
    (bad / "memory").mkdir(parents=True)
    for text in ("/x\0y", "/\ud800"):
        (bad / "0.jsonl").write_text(json.dumps({"cwd": text}) + "\n")
        assert known_projects(claude.home) == [root]
    state = json.loads(claude.state.read_text())
    state["projects"].update({"/x\0y": {}, "/" + "x" * 5000: {}})
    claude.state.write_text(json.dumps(state))
    plans, _ = plan_all(memory, claude.home)
    assert [plan.project.folder for plan in plans] == [root]


def test_disconnect_imports_nothing_of_another_project_at_the_path(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    moved, root = moved_project(memory, claude, tmp_path)
    (row,) = connected_folders(memory.replica)
    claude.remembers(repository(root, "https://github.com/b/other"), "foreign", "another project's")
    let_go(memory, row)
    assert memory.scope(row.scope).read("foreign") is None
    assert moved.is_dir()


def test_index_of_a_disconnected_project_has_none_of_our_lines(
    memory: Memory, claude: Claude, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    file = claude.remembers(root, "deploy", "Deploy with make ship.")
    index = file.parent / "MEMORY.md"
    before = index.read_bytes()
    row = carry_out(memory, plan_project(memory, claude.home, root))
    memory.scope(row.scope).write("style", "Two spaces.")
    assert b"(style.md)" in index.read_bytes()
    let_go(memory, row)
    assert index.read_bytes() == before
    assert (file.parent / "style.md").exists()


@pytest.mark.parametrize("times", [1, 5])
def test_line_typed_into_the_index_during_a_disconnect_is_kept(
    memory: Memory, claude: Claude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    root = repository(tmp_path / "api")
    index = claude.remembers(root, "deploy", "Deploy with make ship.").parent / "MEMORY.md"
    row = carry_out(memory, plan_project(memory, claude.home, root))
    memory.scope(row.scope).write("style", "Two spaces.")
    memory.folders.render()
    assert b"<!-- ipfsmem index" in index.read_bytes()
    typed = iter(range(times))

    def split(data: bytes) -> IndexFile:
        found = split_index_file(data)
        for number in typed:
            index.write_bytes(index.read_bytes() + b"typed %d\n" % number)
            break
        return found

    monkeypatch.setattr("ipfsmem.agents.adoption.split_index_file", split)
    if times == 5:
        with pytest.raises(ChangedError, match="is unchanged"):
            let_go(memory, row)
        monkeypatch.undo()
    let_go(memory, row)
    left = index.read_bytes()
    assert b"<!-- ipfsmem index" not in left and left.endswith(
        b"".join(b"typed %d\n" % n for n in range(times))
    )
    assert connected_folders(memory.replica) == []
