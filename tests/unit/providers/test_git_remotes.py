"""`git:origin`: a remote of the repository around the working directory, stored as its address."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from ipfsmem.content.tree import build_tree
from ipfsmem.errors import ConfigError
from ipfsmem.provider.contract import lasting_spec, open_provider, require_address, spec_warning
from tests.interop.counterparts import need_program
from tests.support.hints import hinted
from tests.unit.providers.git_lab import Repository, git

URL = "git@github.com:me/code.git"
STORED = f"git:{URL}#refs/ipfsmem/main"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree, whose folder `src` is the working directory."""
    need_program("git")
    top = tmp_path / "code"
    subprocess.run(["git", "init", "-q", top], check=True)
    (top / "src").mkdir()
    monkeypatch.chdir(top / "src")
    return top


def origin(top: Path, url: str) -> None:
    git(top, "remote", "add", "origin", url)


def test_named_remote_is_stored_as_its_address(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin(work, URL)
    git(work, "remote", "add", "fork", "https://codeberg.org/me/code.git")
    assert lasting_spec("git:origin") == STORED
    assert lasting_spec("git:origin#notes") == f"git:{URL}#notes"
    assert lasting_spec("git:fork") == "git:https://codeberg.org/me/code.git#refs/ipfsmem/main"
    monkeypatch.chdir("/")
    assert lasting_spec(STORED) == STORED and open_provider(STORED).name == STORED


def test_push_address_of_a_remote_is_used(work: Path) -> None:
    origin(work, "https://github.com/me/code.git")
    git(work, "remote", "set-url", "--push", "origin", URL)
    assert lasting_spec("git:origin") == STORED


def test_relative_remote_is_resolved_at_the_work_tree(work: Path) -> None:
    origin(work, "../bare.git")
    assert lasting_spec("git:origin") == f"git:{work.parent}/bare.git#refs/ipfsmem/main"


def test_remote_of_a_bare_repository_is_used(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare.git"], check=True)
    origin(tmp_path / "bare.git", URL)
    monkeypatch.chdir(tmp_path / "bare.git" / "refs")
    assert lasting_spec("git:origin") == STORED


def test_warning_names_the_people_with_access(work: Path) -> None:
    origin(work, URL)
    told = spec_warning("git:origin")
    assert f"{URL} (origin) is a repository of other work" in told and "refs/ipfsmem/main" in told
    for part in ("can copy the stored data", "normal clones omit it", "can push there can delete it", "not known whether the repository is public"):  # fmt: skip
        assert part in told
    assert "each clone does" in spec_warning("git:origin#notes")
    assert f"{URL} is a repository of other work" in spec_warning(STORED)
    for quiet in (f"git:{URL}", f"git:{URL}#notes", "/media/stick", "pinata"):
        assert spec_warning(quiet) == ""


@pytest.mark.parametrize("spec", ["git:origin", "git:origin#notes", "git: origin "])
def test_name_of_a_remote_is_not_opened(work: Path, spec: str) -> None:
    origin(work, URL)
    for use in (open_provider, require_address):
        with pytest.raises(
            ConfigError, match="names a remote of the repository around the current folder"
        ) as raised:
            use(spec)
        hinted(
            "Add it with a warning: ipfsmem provider add SPEC. Or name the address: git:ADDRESS#refs/ipfsmem/main",
            raised.value.hint,
        )
    with pytest.raises(ConfigError, match="not the address of a repository"):
        require_address("git:fork")
    require_address(STORED)


def test_folder_outside_a_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_program("git")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="is not in a git repository") as raised:
        lasting_spec("git:origin")
    hinted("Run the command inside the repository, or name the address: git:ADDRESS", raised.value.hint)


def test_repository_without_the_remote_is_refused(work: Path) -> None:
    with pytest.raises(ConfigError, match=f"the git repository {work} has no remote origin") as raised:
        lasting_spec("git:origin")
    hinted("Add one: git remote add VALUE ADDRESS", raised.value.hint)
    origin(work, URL)
    assert lasting_spec("git:origin") == STORED
    with pytest.raises(ConfigError, match="not the address of a repository"):
        lasting_spec("git:upstream")


@pytest.mark.parametrize(
    "url",
    [
        "https://ghp_hunter22@github.com/me/code.git",
        "https://x-access-token:hunter22@github.com/me/code.git",
    ],
)
def test_token_in_the_address_of_a_remote_is_refused_and_hidden(work: Path, url: str) -> None:
    origin(work, url)
    for ask in (lasting_spec, spec_warning):
        with pytest.raises(ConfigError, match="holds a user name, a token or a password") as raised:
            ask("git:origin")
        assert "hunter22" not in f"{raised.value} {raised.value.hint} {raised.value.__cause__}"
        hinted(
            "Name the address without it: VALUE. The git program takes the account from its credential helper, or set GIT_TOKEN.",
            raised.value.hint,
        )
    told = raised.value.hint.split("it: ")[1].split(". ")[0]
    assert lasting_spec(told) == told == "git:https://github.com/me/code.git#refs/ipfsmem/main"


@pytest.mark.parametrize("url", ["ext::sh -c true", "http://host/me/code.git", "https://host/a b", "-x"])
def test_hostile_address_of_a_remote_is_refused(work: Path, url: str) -> None:
    git(work, "config", "remote.origin.url", url)
    with pytest.raises(ConfigError, match="the address of the remote origin cannot be used: "):
        lasting_spec("git:origin")


def test_remote_with_several_push_addresses_is_refused(work: Path) -> None:
    origin(work, URL)
    git(work, "remote", "set-url", "--add", "origin", "git@codeberg.org:me/code.git")
    with pytest.raises(ConfigError, match="has 2 addresses to push to") as raised:
        lasting_spec("git:origin")
    hinted("Name one of them: git:ADDRESS#refs/ipfsmem/main", raised.value.hint)


def test_repository_of_another_user_is_explained(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give the repository to another user")
    origin(work, URL)
    os.chown(work / ".git", 4242, 4242)
    os.chown(work, 4242, 4242)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    with pytest.raises(ConfigError, match="another user owns the git repository") as raised:
        lasting_spec("git:origin")
    hinted("Run: git config --global --add safe.directory PATH", raised.value.hint)


def test_normal_clone_omits_the_vault_and_other_branches_are_unchanged(work: Path, tmp_path: Path) -> None:
    there = Repository(tmp_path)
    origin(work, str(there.path))
    git(work, "commit", "-q", "--allow-empty", "-m", "code")
    git(work, "push", "-q", "origin", "HEAD:refs/heads/main")
    before = there.git("rev-parse", "main")

    async def publish() -> None:
        provider = open_provider(lasting_spec("git:origin"), {"git_cache": tmp_path / "cache"})
        made = build_tree({"a.ipm": b"a" * 900})
        await provider.put_car(made.cid, made.blocks, name="n")
        await provider.pin(made.cid, "n")
        await provider.close()

    asyncio.run(publish())
    assert there.git("for-each-ref", "--format=%(refname)").splitlines() == [
        "refs/heads/main",
        "refs/ipfsmem/main",
    ]
    assert there.git("rev-parse", "main") == before
    subprocess.run(["git", "clone", "-q", f"file://{there.path}", tmp_path / "clone"], check=True)
    assert "ipfsmem" not in git(tmp_path / "clone", "for-each-ref")
    stored = there.git("rev-parse", "refs/ipfsmem/main")
    there_too = subprocess.run(
        ["git", "-C", tmp_path / "clone", "cat-file", "-e", stored], capture_output=True, check=False
    )
    assert there_too.returncode != 0
