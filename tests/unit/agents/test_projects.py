"""Identity of a project folder: bound on this device by the user, recognised on another device by its
remote or id."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from ipfsmem.agents.projects import bind, choose_scope, find_connected, follow_move, unbind
from ipfsmem.bundle.projects import scope_token
from ipfsmem.device.project_folders import (
    ProjectFolder,
    connected_folders,
    keep_folder,
    note_unconnected,
)
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.files.projects import project_at
from ipfsmem.memory import Memory
from tests.support.agents_lab import ORIGIN, repository, worktree
from tests.support.device_lab import Lab


def connect(memory: Memory, folder: Path, **said: object) -> ProjectFolder:
    project = project_at(folder, part=bool(said.pop("part", False)))
    return bind(memory, project, choose_scope(memory, project, **said))  # type: ignore[arg-type]


def scope_at(memory: Memory, folder: Path) -> str | None:
    _, row = find_connected(memory, folder)
    return None if row is None else row.scope


@pytest.fixture
def sealed(lab: Lab) -> Memory:
    return lab.create("a")


@pytest.fixture
def plain(tmp_path: Path) -> Memory:
    return Memory.create("x", "local", home=tmp_path / "home")


def test_scope_of_a_remote_has_the_token_of_the_format(sealed: Memory, tmp_path: Path) -> None:
    row = connect(sealed, repository(tmp_path / "somewhere"))
    assert sealed.replica.config.vault is not None
    tag = bytes.fromhex(sealed.replica.config.vault.tag)
    assert row.scope == scope_token(tag, "github.com/acme/api")
    assert row.scope.startswith("api-")
    one = sealed.scopes.known(row.scope)
    assert one.card is not None
    assert (one.card.ids, one.title) == ((("remote", "github.com/acme/api", ""),), "api")
    assert scope_at(sealed, tmp_path / "somewhere") == row.scope


def test_project_connected_offline_on_two_machines_is_one_scope(lab: Lab, tmp_path: Path) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    first = connect(a, repository(tmp_path / "work" / "api"))
    second = connect(b, repository(tmp_path / "elsewhere" / "deep" / "name", "git@github.com:acme/api"))
    assert first.scope == second.scope
    lab.settle(a, b)
    assert a.scopes.names() == [first.scope]


def test_equally_named_projects_and_forks_are_two_scopes(sealed: Memory, tmp_path: Path) -> None:
    scopes = [
        connect(sealed, repository(tmp_path / number / "api", origin)).scope
        for number, origin in enumerate_names(
            "https://github.com/acme/api",
            "https://github.com/fork/api",
            "https://gitlab.example.org/acme/api",
            "https://github.com/acme/api/api",
        )
    ]
    assert len(set(scopes)) == 4


def enumerate_names(*origins: str) -> list[tuple[str, str]]:
    return [(str(number), origin) for number, origin in enumerate(origins)]


def test_repository_without_a_remote_gets_an_id_that_moves_with_it(lab: Lab, tmp_path: Path) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    root = repository(tmp_path / "notes", None)
    before = (root / ".git" / "config").read_bytes()
    row = connect(a, root)
    assert row.wrote_id
    lab.settle(a, b)
    carried = Path(shutil.copytree(root, tmp_path / "usb" / "renamed"))
    choice = choose_scope(b, project_at(carried))
    assert (choice.scope, choice.new) == (row.scope, False)

    unbind(a, row)
    assert (root / ".git" / "config").read_bytes() == before
    assert scope_at(a, root) is None


def test_project_id_with_another_origin_requires_a_choice(sealed: Memory, tmp_path: Path) -> None:
    root = repository(tmp_path / "notes", None)
    row = connect(sealed, root)
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    with (copy / ".git" / "config").open("a") as file:
        file.write('[remote "origin"]\n\turl = https://github.com/me/notes\n')
    with pytest.raises(UsageError, match="another origin") as asked:
        choose_scope(sealed, project_at(copy))
    assert row.scope in asked.value.hint
    assert connect(sealed, copy, scope=row.scope).scope == row.scope
    other = Path(shutil.copytree(copy, tmp_path / "other"))
    with (other / ".git" / "config").open("a") as file:
        file.write("")
    assert choose_scope(sealed, project_at(other)).scope == row.scope  # now that origin is known


def test_two_matching_scopes_require_a_choice(sealed: Memory, tmp_path: Path) -> None:
    for token in ("one", "two"):
        sealed.scopes.make(token, ids=[("remote", "github.com/acme/api", "")])
    project = project_at(repository(tmp_path / "api"))
    with pytest.raises(UsageError, match="several scopes: one, two"):
        choose_scope(sealed, project)
    assert choose_scope(sealed, project, new=True).new
    sealed.scopes.redirect("one", "two")
    assert choose_scope(sealed, project).scope == "two"


def test_folder_without_any_name_requires_one_choice_on_second_device(lab: Lab, tmp_path: Path) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    for name in ("a", "b"):
        (tmp_path / name / "Notes 2026").mkdir(parents=True)
    row = connect(a, tmp_path / "a" / "Notes 2026")
    assert row.scope.startswith("notes_2026-")
    lab.settle(a, b)
    with pytest.raises(UsageError, match="it is unknown whether") as asked:
        choose_scope(b, project_at(tmp_path / "b" / "Notes 2026"))
    assert f"--scope {row.scope}" in asked.value.hint
    connect(b, tmp_path / "b" / "Notes 2026", scope=row.scope)
    assert scope_at(b, tmp_path / "b" / "Notes 2026") == row.scope
    assert choose_scope(b, project_at(tmp_path / "b" / "Notes 2026")).scope == row.scope


def test_moved_and_renamed_repository_is_still_connected(sealed: Memory, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    row = connect(sealed, root)
    (tmp_path / "elsewhere").mkdir()
    moved = root.rename(tmp_path / "elsewhere" / "renamed").resolve()
    project, found = find_connected(sealed, moved)
    assert found is not None
    assert follow_move(sealed, project, found).path == str(moved)
    assert [one.path for one in connected_folders(sealed.replica)] == [str(moved)]
    assert scope_at(sealed, moved) == row.scope


def test_new_clone_at_same_path_is_connected_and_other_repository_is_not(
    sealed: Memory, tmp_path: Path
) -> None:
    root = repository(tmp_path / "api")
    row = connect(sealed, root)
    shutil.rmtree(root)
    (tmp_path / "filler").mkdir()  # so that the inode is not reused
    repository(root)
    assert scope_at(sealed, root) == row.scope
    shutil.rmtree(root)
    for number in range(8):
        (tmp_path / f"filler{number}").mkdir()
    repository(root, "https://github.com/evil/api")
    if root.stat().st_ino != row.inode:
        assert scope_at(sealed, root) is None


def test_repository_with_reused_inode_numbers_is_not_connected(sealed: Memory, tmp_path: Path) -> None:
    """As on ext4 after a project was removed."""
    root = repository(tmp_path / "api")
    row = connect(sealed, root)
    if not row.born:
        pytest.skip("this file system does not tell when a folder was made")
    shutil.rmtree(root)
    repository(root, "https://github.com/evil/api")
    numbers = {"inode": root.stat().st_ino, "git_inode": (root / ".git").stat().st_ino}
    keep_folder(sealed.replica, msgspec.structs.replace(row, **numbers))  # as ext4 reuses them
    assert scope_at(sealed, root) is None
    moved = msgspec.structs.replace(
        row, **numbers, path=str(tmp_path / "was elsewhere"), ids=project_at(root).ids
    )
    keep_folder(sealed.replica, moved, instead=row)
    assert scope_at(sealed, root) is None


def test_archive_with_a_foreign_configuration_is_not_connected(sealed: Memory, tmp_path: Path) -> None:
    """With our remote, with our id, and with a `.git` that leads to our repository."""
    mine, noted = repository(tmp_path / "mine"), repository(tmp_path / "noted", None)
    connect(sealed, mine)
    written = connect(sealed, noted)
    ids = [
        repository(tmp_path / "by-remote"),
        repository(tmp_path / "by-id", None, more=f"[ipfsmem]\n\tproject = {written.ids[0][1]}\n"),
    ]
    pointing = tmp_path / "pointing"
    pointing.mkdir()
    (pointing / ".git").write_text(f"gitdir: {mine}/.git\n")
    for folder in (*ids, pointing):
        assert scope_at(sealed, folder) is None, folder


def test_subfolder_belongs_to_connected_project_but_nested_repository_not(
    sealed: Memory, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    (work / "sub" / "deep").mkdir(parents=True)
    row = connect(sealed, work)
    assert scope_at(sealed, work / "sub" / "deep") == row.scope
    assert scope_at(sealed, repository(work / "sub" / "foreign")) is None
    assert scope_at(sealed, tmp_path) is None


def test_folder_of_a_monorepo_can_be_its_own_project(sealed: Memory, tmp_path: Path) -> None:
    root = repository(tmp_path / "mono")
    (root / "packages" / "web" / "src").mkdir(parents=True)
    whole = connect(sealed, root)
    part = connect(sealed, root / "packages" / "web", part=True)
    assert part.scope != whole.scope
    assert part.ids == (("remote", "github.com/acme/api", "packages/web"),)
    assert scope_at(sealed, root / "packages" / "web" / "src") == part.scope
    assert scope_at(sealed, root / "packages") == whole.scope
    tree = worktree(root, tmp_path / "tree")
    (tree / "packages" / "web").mkdir(parents=True)
    assert scope_at(sealed, tree / "packages" / "web") == part.scope
    assert scope_at(sealed, tree) == whole.scope


def test_plain_modes_publish_no_project_names(plain: Memory, tmp_path: Path) -> None:
    rows = [connect(plain, repository(tmp_path / "api")), connect(plain, tmp_path)]
    assert all(len(row.scope.rpartition("-")[2]) == 12 for row in rows)
    cards = [one.card for one in plain.scopes.list()]
    assert all(card is not None and not card.ids for card in cards)
    again = repository(tmp_path / "second")
    with pytest.raises(UsageError, match="it is unknown whether"):
        choose_scope(plain, project_at(again))
    assert connect(plain, again, scope=rows[0].scope).scope == rows[0].scope


def test_project_names_in_a_sealed_home_are_sealed(sealed: Memory, lab: Lab, tmp_path: Path) -> None:
    connect(
        sealed,
        repository(tmp_path / "canary-folder", "https://user:canary-word@canary.example.org/canary-path"),
    )
    note_unconnected(sealed.replica, str(tmp_path / "canary-unbound"))
    lab.sync(sealed)
    home = lab.home("a")
    for file in [one for one in home.rglob("*") if one.is_file()]:
        assert b"canary" not in file.read_bytes(), file
    for block in lab.cloud.blocks.values():
        assert b"canary" not in block
    assert any("canary-unbound" in notice for notice in sealed.status().notices)


def test_password_in_a_remote_address_is_not_stored(sealed: Memory, tmp_path: Path) -> None:
    row = connect(sealed, repository(tmp_path / "api", "https://me:geheim@github.com/acme/api"))
    assert "geheim" not in repr((row, sealed.scopes.list()))


def test_forgotten_scope_or_invalid_folder_is_refused(sealed: Memory, tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    row = connect(sealed, root)
    sealed.scopes.forget(row.scope)
    with pytest.raises(NotFoundError, match="forgotten"):
        choose_scope(sealed, project_at(root))
    with pytest.raises(UsageError, match="no folder"):
        project_at(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not a folder"):
        project_at(tmp_path / "file")
    with pytest.raises(UsageError, match="exclude each other"):
        choose_scope(sealed, project_at(root), scope="x", new=True)


def test_failed_connection_leaves_the_repository_unchanged(sealed: Memory, tmp_path: Path) -> None:
    root = repository(tmp_path / "notes", None)
    before = (root / ".git" / "config").read_bytes()
    project = project_at(root)
    choice = choose_scope(sealed, project, scope="notes")
    sealed.scopes.make("notes")
    sealed.scopes.forget("notes")
    with pytest.raises(NotFoundError):
        bind(sealed, project, choice)
    assert (root / ".git" / "config").read_bytes() == before
    assert not connected_folders(sealed.replica)


def test_changed_origin_of_a_connected_project_keeps_its_scope(sealed: Memory, tmp_path: Path) -> None:
    """Other devices learn the new origin when the user connects again."""
    root = repository(tmp_path / "api")
    row = connect(sealed, root)
    config = root / ".git" / "config"
    config.write_text(config.read_text().replace(ORIGIN, "https://github.com/me/api"))
    assert scope_at(sealed, root) == row.scope
    with pytest.raises(UsageError, match="another origin"):
        connect(sealed, root)
    one = sealed.scopes.known(row.scope)
    assert one.card is not None
    assert len(one.card.ids) == 1
    connect(sealed, root, scope=row.scope)
    one = sealed.scopes.known(row.scope)
    assert one.card is not None
    assert len(one.card.ids) == 2
    connect(sealed, root)  # now that it is known
