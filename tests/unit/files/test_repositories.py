"""Facts about a git repository equal git's own; a broken, hostile or foreign one has none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import StorageError, UsageError
from ipfsmem.files.repositories import MAX_CONFIG, find_repository, give_id, remove_id
from tests.support.agents_lab import ORIGIN, repository, worktree
from tests.support.costs import cost

ID = "0123456789abcdef" * 2


def origin_of(folder: Path) -> str:
    found = find_repository(folder)
    assert found is not None
    return found.remote


def git(folder: Path, *arguments: str) -> str:
    if shutil.which("git") is None:
        if os.environ.get("IPFSMEM_REQUIRE_COUNTERPARTS") == "1":
            pytest.fail("git is not installed, and its absence is not accepted here")
        pytest.skip("git is not installed")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    named = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        [*named, *arguments], cwd=folder, env=clean, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_folder_belongs_to_the_repository_above_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    (root / "src" / "deep").mkdir(parents=True)
    found = find_repository(root / "src" / "deep")
    assert found is not None
    assert (found.root, found.tree, found.remote, found.id) == (root, root, "github.com/acme/api", "")
    assert find_repository(tmp_path) is None


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://github.com/acme/api.git", "github.com/acme/api"),
        ("git@github.com:Acme/API.git", "github.com/acme/api"),
        ("https://user:geheim@github.com:8443/acme/api?x=1", "github.com/acme/api"),
        ('"https://github.com/acme/api.git"', "github.com/acme/api"),
        ("https://github.com/acme/api.git ; mine", "github.com/acme/api"),
        ("https://github.com/acme/\\\napi.git", "github.com/acme/api"),
        ("file:///srv/api.git", ""),
        ("/srv/api.git", ""),
        ("git@work:acme/api", ""),
        ("https://github.com", ""),
        ("\\", ""),
        ('"', ""),
        ("", ""),
    ],
)
def test_origin_is_read_like_git_reads_it(tmp_path: Path, written: str, read: str) -> None:
    root = repository(tmp_path / "api", written)
    assert origin_of(root) == read
    if read:
        address = git(root, "config", "--get", "remote.origin.url")
        assert "github.com" in address.lower()


def test_other_remotes_and_included_files_are_ignored(tmp_path: Path) -> None:
    elsewhere = tmp_path / "evil"
    elsewhere.write_text(f'[remote "origin"]\n\turl = {ORIGIN}\n')
    more = f'[include]\n\tpath = {elsewhere}\n[remote "upstream"]\n\turl = {ORIGIN}\n'
    assert origin_of(repository(tmp_path / "api", None, more=more)) == ""
    assert (
        git(tmp_path / "api", "config", "--get", "remote.origin.url") == ORIGIN
    )  # git follows it, we do not


@pytest.mark.parametrize(
    "config",
    [
        b"",
        b"\0" * 1000,
        b"\xff\xfe[remote",
        b'[remote "origin"\n\turl = https://github.com/acme/api\n',
        b'[remote "origin"]\n' + b"\turl\n" * 1000,
        b"[" * 5000,
        b"\\\n" * 5000,
        b'[remote "origin"]\n\turl = ' + b"\\" * 4001,
    ],
)
def test_broken_configuration_has_no_origin(tmp_path: Path, config: bytes) -> None:
    root = repository(tmp_path / "api")
    (root / ".git" / "config").write_bytes(config)
    assert origin_of(root) == ""


def test_huge_configuration_is_not_read(tmp_path: Path) -> None:
    root = repository(tmp_path / "api", more="# " + "x" * MAX_CONFIG + "\n")
    assert origin_of(root) == ""


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    mine = repository(tmp_path / "mine")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(mine / ".git")
    found = find_repository(linked.resolve())
    assert found is not None
    assert (found.root, found.remote, found.config) == (linked.resolve(), "", None)

    config = repository(tmp_path / "config")
    (config / ".git" / "config").unlink()
    (config / ".git" / "config").symlink_to(mine / ".git" / "config")
    assert origin_of(config) == ""
    (config / ".git" / "config").unlink()
    os.mkfifo(config / ".git" / "config")
    assert origin_of(config) == ""


def test_all_work_trees_are_one_project(tmp_path: Path) -> None:
    main = repository(tmp_path / "api")
    other = worktree(main, tmp_path / "other")
    found, first = find_repository(other), find_repository(main)
    assert found is not None
    assert first is not None
    assert (found.root, found.tree, found.remote, found.inode) == (
        main,
        other,
        "github.com/acme/api",
        first.inode,
    )


def test_git_file_pointing_to_a_foreign_repository_is_ignored(tmp_path: Path) -> None:
    secret = repository(tmp_path / "secret")
    worktree(secret, tmp_path / "real")
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for target in (
        secret / ".git",
        secret / ".git" / "worktrees" / "real",
        tmp_path / "real" / ".git",
        Path("../secret/.git"),
        Path("/dev/zero"),
    ):
        (hostile / ".git").write_text(f"gitdir: {target}\n")
        found = find_repository(hostile.resolve())
        assert found is not None
        assert (found.root, found.remote, found.id, found.config) == (hostile.resolve(), "", "", None), target


def test_work_tree_unknown_to_its_repository_is_ignored(tmp_path: Path) -> None:
    """The archive has its own entry, which claims to belong to the other repository."""
    secret = repository(tmp_path / "secret")
    hostile = tmp_path / "hostile"
    entry = hostile / "entry"
    entry.mkdir(parents=True)
    (entry / "commondir").write_text(str(secret / ".git"))
    (entry / "gitdir").write_text(str(hostile / ".git"))
    (hostile / ".git").write_text(f"gitdir: {entry}\n")
    found = find_repository(hostile.resolve())
    assert found is not None
    assert (found.root, found.remote) == (hostile.resolve(), "")


def test_real_git_repository_is_recognised(tmp_path: Path) -> None:
    """Its own working trees, submodules and bare repositories."""
    main = (tmp_path / "main").resolve()
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    git(main, "remote", "add", "origin", ORIGIN)
    git(main, "commit", "-q", "--allow-empty", "-m", "a")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"))
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    git(library, "commit", "-q", "--allow-empty", "-m", "b")
    git(main, "submodule", "add", "-q", str(library), "lib")
    git(main / "lib", "remote", "set-url", "origin", "https://github.com/acme/lib")
    git(tmp_path, "clone", "-q", "--bare", str(main), str(tmp_path / "bare.git"))
    git(tmp_path / "bare.git", "remote", "set-url", "origin", "https://github.com/acme/bare")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "of-bare"), "main")

    tree = find_repository((tmp_path / "tree").resolve())
    assert tree is not None
    assert (tree.root, tree.remote) == (main, "github.com/acme/api")
    lib = find_repository(main / "lib")
    assert lib is not None
    assert (lib.root, lib.remote) == (main / "lib", "github.com/acme/lib")
    bare = find_repository((tmp_path / "of-bare").resolve())
    assert bare is not None
    assert (bare.root, bare.remote) == ((tmp_path / "bare.git").resolve(), "github.com/acme/bare")

    give_id(tree, ID)
    assert git(main, "config", "--get", "ipfsmem.project") == ID
    assert git(main, "status", "--porcelain", "--untracked-files=no").count("config") == 0


def test_project_id_is_written_and_removed_byte_for_byte(tmp_path: Path) -> None:
    root = repository(tmp_path / "api", None, more="[alias]\n\tx = log  # \xc3\xa4")
    config = root / ".git" / "config"
    config.chmod(0o640)
    before = config.read_bytes()
    found = find_repository(root)
    assert found is not None
    assert not remove_id(found)
    give_id(found, ID)
    assert config.stat().st_mode & 0o777 == 0o640
    again = find_repository(root)
    assert again is not None
    assert again.id == ID
    assert remove_id(again)
    assert config.read_bytes() == before + b"\n"  # the last line had no end
    assert not list(config.parent.glob("*.lock"))


def test_project_id_waits_for_the_lock_of_git(tmp_path: Path) -> None:
    root = repository(tmp_path / "api", None)
    (root / ".git" / "config.lock").touch()
    found = find_repository(root)
    assert found is not None
    before = (root / ".git" / "config").read_bytes()
    with pytest.raises(UsageError, match="git is changing"):
        give_id(found, ID)
    assert (root / ".git" / "config").read_bytes() == before
    (root / ".git" / "config.lock").unlink()
    give_id(found, ID)
    (root / ".git" / "config").unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        give_id(found, ID)


def test_concurrent_write_of_git_to_its_config_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find_repository(repository(tmp_path / "api"))
    assert found is not None and found.config is not None
    config, opened = found.config, os.open

    def after_git(path: Any, *how: int, **more: Any) -> int:
        if Path(path).name == "config.lock":
            with config.open("a") as file:
                file.write("[user]\n\tname = Ada\n")
        return opened(path, *how, **more)

    monkeypatch.setattr(os, "open", after_git)
    give_id(found, ID)
    assert "name = Ada" in config.read_text() and ID in config.read_text()
    again = find_repository(tmp_path / "api")
    assert again is not None and remove_id(again)
    assert config.read_text().count("name = Ada") == 2 and ID not in config.read_text()
    assert not remove_id(again) and not list(config.parent.glob("*.lock"))


def test_configuration_parsing_takes_linear_time(tmp_path: Path) -> None:
    root = repository(tmp_path / "api")
    (root / ".git" / "config").write_text("[a" + " " * (MAX_CONFIG - 10))
    assert cost(lambda: find_repository(root), 0.1) < 1.0
