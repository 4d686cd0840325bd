"""The git provider with hostile repositories and configurations and local failures: bounded, reported, nothing deleted."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.git import GitProvider
from ipfsmem_providers.git.program import LocalFailure

from ipfsmem.content.tree import build_tree
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import HostTrial, Settling
from ipfsmem.provider.probe import probe
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.counterparts import need_program
from tests.support.cli_lab import KEY, Cli
from tests.support.device_lab import load
from tests.support.hints import Refused
from tests.support.patience import PATIENCE
from tests.unit.providers.git_lab import Repository, git, git_over_http
from tests.unit.providers.test_git import OTHER, commit_of, holds, named, published, roots

GIT = "ipfsmem_providers.git."


@pytest.fixture(autouse=True)
def _git() -> None:
    need_program("git")


def run(body: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(body)


def fake_git(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Put a `git` first in PATH that runs a shell script, in which `real` runs the installed one."""
    real = need_program("git")
    at = folder / "bin" / "git"
    at.parent.mkdir()
    at.write_text(f'#!/bin/sh\nreal() {{ exec {real} "$@"; }}\n{script}\n')
    at.chmod(0o755)
    monkeypatch.setenv("PATH", f"{at.parent}:{os.environ['PATH']}")
    return at


# -- commit contents --------------------------------------------------------------------------------------------------


def test_foreign_files_of_any_name_are_removed_from_the_branch(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    run(published(at.open()))
    blob = at.git("hash-object", "-w", "--stdin", data=b"x")
    strange = ['a"b', "c\nD packs", "\u00e9", "d e", "e\\n"]
    entries = "".join(f"100644 blob {blob}\t{name}\0" for name in strange)
    made = at.git("mktree", "-z", data=entries.encode())
    commit_of(at, f"040000 tree {at.git('rev-parse', 'ipfsmem:packs')}\tpacks\n040000 tree {made}\tpins\n")
    provider = at.open()
    repository = provider.repository
    before = repository.fetch(None)
    assert {*before.stores["pins"]} == {*strange}
    after = repository.push(before, {}, [f"pins/{name}" for name in strange], squash_at=99)
    assert not after.stores["pins"] and after.stores["packs"] == before.stores["packs"]
    assert at.git("ls-tree", "ipfsmem:packs") and run(roots(provider)) == set()


def test_commit_with_unexpected_files_is_not_pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    kept = run(published(at.open()))
    provider = at.open()
    with monkeypatch.context() as patch:
        patch.setattr(f"{GIT}repository._quoted", lambda path: b'"pins/other.json"')
        with Refused("Sync again."), named("another tree than it was given"):
            run(published(provider, "y"))
    assert at.commits() == 1 and run(roots(at.open())) == {kept.cid}
    made = run(published(provider, "y"))
    assert run(roots(at.open())) == {kept.cid, made.cid}


def test_skipped_blocks_whose_pack_was_removed_prevent_the_publish(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    days = [0]

    async def body() -> None:
        clock = lambda: time.time_ns() + days[0] * 86_400_000_000_000  # noqa: E731
        ahead = GitProvider(at.url, {"git_cache": tmp_path / "ahead"}, clock=clock)
        await published(ahead, "kept")
        old = await published(ahead, "old")
        writer = at.open()
        writer.begin_snapshot(b"")
        assert old.cid in await roots(writer)
        [pin] = [pin for pin in await ahead.pins("n") if pin.cid == old.cid]
        await ahead.unpin(pin)
        for days[0] in (10_000, 10_002):
            await ahead.collect()
        writer.begin_group()
        await writer.pin(old.cid, "n2")
        with Refused("Sync again."), named("removed blocks that this publish may need"):
            await writer.commit_group()
        assert await roots(at.open(), "n2") == set()
        writer.end_snapshot()
        writer.begin_snapshot(b"")
        again = await published(writer, "again", "n2")
        assert await roots(at.open(), "n2") == {again.cid}

    run(body())


# -- configurations ------------------------------------------------------------------------------------------------


def test_url_rewriting_of_the_user_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    (tmp_path / "other").mkdir()
    other = Repository(tmp_path / "other")
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "{other.url}"]\n\tinsteadOf = {at.url}\n\tpushInsteadOf = {at.url}\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    made = run(published(at.open()))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    assert run(holds(at.open(), made)) and not other.git("for-each-ref")


def test_credential_helper_of_the_user_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import base64

    expected = "Basic " + base64.b64encode(b"me:s3cret-of-tests").decode()
    settings = tmp_path / "gitconfig"
    settings.write_text(
        '[credential]\n\thelper = "!f() { test $1 = get && echo username=me && echo password=s3cret-of-tests; }; f"\n'
        f"[core]\n\tfsmonitor = touch {tmp_path}/ran-monitor\n\tpager = touch {tmp_path}/ran-pager\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    with git_over_http(tmp_path, [], lambda request: request.headers.get("Authorization") == expected) as at:
        made = run(published(at.open()))
        assert run(holds(at.open(), made)) and not list(tmp_path.glob("ran-*"))


def test_unreadable_git_configuration_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    (tmp_path / "gitconfig").write_text("[core\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    with Refused("Try again, or run: git ls-remote ADDRESS"), named("cannot read its configuration"):
        run(at.open().pins("n"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    run(published(at.open()))


def test_repository_configuration_runs_no_programs(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    run(published(at.open()))
    for name, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "evil", "remote.evil.promisor": "true",
        "remote.evil.url": str(tmp_path), "remote.evil.uploadpack": f"touch {tmp_path}/ran-program; false",
    }.items():  # fmt: skip
        at.git("config", name, value)
    commit_of(at, f"040000 tree {'1' * 40}\tpacks\n")
    with pytest.raises(ProviderError):
        run(at.open().pins("n"))
    assert not list(tmp_path.glob("ran-*"))


def test_checked_out_branch_is_not_written(tmp_path: Path) -> None:
    """Updating its files would run the filters that its configuration names."""
    at = Repository(tmp_path)
    made = run(published(at.open()))
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", "-b", "ipfsmem", at.path, copy], check=True)
    git(copy, "config", "receive.denyCurrentBranch", "updateInstead")
    provider = GitProvider(str(copy), {"git_cache": tmp_path / "c"})
    assert run(holds(provider, made))
    with pytest.raises(ProviderRefused, match="refused the new commit"):
        run(published(provider, "y"))
    assert git(copy, "status", "--porcelain") == ""


# -- this device ---------------------------------------------------------------------------------------------------


def test_local_git_command_has_its_own_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(
        tmp_path, monkeypatch, 'case "$1" in hash-object) sleep 1;; fast-import) sleep 1000;; esac\nreal "$@"'
    )
    at = Repository(tmp_path)
    provider = at.open({"stall": 0.2})
    monkeypatch.setattr(f"{GIT}program._LOCAL", 0.5)
    with Refused("Sync again in a while."), named("did not end within"), provider.repository._locked():
        pass
    monkeypatch.setattr(f"{GIT}program._LOCAL", PATIENCE)
    (tmp_path / "bin" / "git").write_text(
        f'#!/bin/sh\ntest "$1" = hash-object && sleep 1\nexec {_real()} "$@"\n'
    )
    assert len(provider.repository.store(b"x")) == 40  # longer than a host may be silent


def _real() -> str:
    return (
        subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
        + "/git"
    )


def test_cancel_ends_git_and_its_children_under_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    script = (
        f'test "$1" = fetch || real "$@"\nsleep 1000 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait'
    )
    fake_git(tmp_path, monkeypatch, script)
    provider = Repository(tmp_path).open()

    async def body() -> None:
        call = asyncio.create_task(provider.pins("n"))
        async with asyncio.timeout(PATIENCE):
            while not pids.exists():
                await asyncio.sleep(0.01)
        with pytest.raises(ProviderError):  # held as long as git runs
            other = GitProvider(provider.name[4:], {"git_cache": provider.repository.folder.parent})
            monkeypatch.setattr(f"{GIT}repository._WAIT", 1)
            await other.pins("n")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(
            PATIENCE
        ):  # a killed program that this one did not start ends when it is scheduled
            while any(_runs(int(pid)) for pid in pids.read_text().split()):
                await asyncio.sleep(0.01)
        with file_lock(provider.repository.folder.with_suffix(".lock"), wait=0):
            pass

    run(body())


def _runs(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(
    "said", ["fatal: write error: No space left on device", "error: unable to create thread: out of memory"]
)
def test_local_failure_deletes_no_copy(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    program = fake_git(tmp_path, monkeypatch, 'real "$@"')
    provider = at.open()
    made = run(published(provider))
    folder = provider.repository.folder
    (folder / "mark").touch()
    whole = program.read_text()
    program.write_text(
        f'#!/bin/sh\ntest "$1" != fast-import || {{ echo "{said}" >&2; exit 128; }}\nexec {_real()} "$@"\n'
    )
    with Refused("Free space there, and let this user write there."), named("does not work"):
        run(published(provider, "y"))
    program.unlink()  # git is gone
    with pytest.raises(ProviderUnavailable):
        run(published(provider, "y"))
    program.write_text(whole)
    program.chmod(0o755)
    again = run(published(provider, "y"))
    assert (folder / "mark").exists() and run(roots(at.open())) == {made.cid, again.cid}


def test_copy_that_cannot_be_packed_is_still_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    made = run(published(at.open()))
    provider = at.open()
    local = provider.repository._git.local

    def slow(folder: Path, *args: str, **more: Any) -> Any:
        if args[0] == "repack":
            raise ProviderUnavailable("did not end")
        return local(folder, *args, **more)

    monkeypatch.setattr(provider.repository._git, "local", slow)
    monkeypatch.setattr(f"{GIT}repository._PACKS", -1)
    assert run(roots(provider)) == {made.cid}


def test_unusable_lock_file_affects_only_this_provider(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    provider, folder = at.open(), DirectoryProvider(tmp_path / "folder", {"create": True})
    a = load(tmp_path, "a", [provider, folder], wallet=Unlock(RawKeySigner(bytes(31) + b"\x2c")))
    lock = provider.repository.folder.with_suffix(".lock")
    lock.unlink(missing_ok=True)
    lock.mkdir(parents=True)
    a.write("k", "text")
    report = run(a.sync())
    assert report.published and report.not_placed == [provider.name]
    with Refused("Free space there, and let this user write there."), named("cannot be locked"):
        run(at.open(cache=str(lock.parent)).pins("n"))


@pytest.mark.parametrize(
    "said", ["2.39.5 (Apple Git-154)", "2.45.0.windows.1", "2.50.GIT", "2.50.0.727.gbf7dc18ff4", "3.0.0"]
)
def test_old_or_broken_git_is_reported(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old git would ignore our configuration and use the user's."""
    at, real = Repository(tmp_path), need_program("git")
    program = fake_git(tmp_path, monkeypatch, "echo git version 2.31.9")
    provider = at.open()
    with Refused("Install git 2.32 or newer."), named("git 2.31 is too old"):
        run(provider.pins("n"))
    program.write_text("#!/bin/sh\necho 'xcode-select: note: No developer tools were found' >&2; exit 1\n")
    with Refused("Install git: https://git-scm.com"), named("does not work (xcode-select: note"):
        run(provider.pins("n"))
    program.write_text(
        f'#!/bin/sh\ntest "$1" != version || {{ echo "git version {said}"; exit; }}\nexec {real} "$@"\n'
    )
    run(published(provider))


def test_program_in_the_working_directory_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(tmp_path, monkeypatch, f'touch {tmp_path}/ran; real "$@"')
    monkeypatch.chdir(tmp_path / "bin")
    monkeypatch.setenv("PATH", ".")
    with pytest.raises(ConfigError, match="git program is not installed"):
        GitProvider(str(tmp_path), {"git_cache": tmp_path / "c"})
    with pytest.raises(ConfigError, match="git:origin names a remote"):
        GitProvider("origin", {"git_cache": tmp_path / "c"})
    assert not (tmp_path / "ran").exists()


def test_terminated_git_removes_its_lock_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock files in a repository at a path would block every device."""
    monkeypatch.setattr(f"{GIT}program._ENDING_STEPS", int(PATIENCE / 0.02))
    lock = tmp_path / "branch.lock"
    script = (
        f'test "$1" = push || real "$@"\ntrap "rm {lock}; wait; exit 1" TERM; sleep 1000 & : > {lock}; wait'
    )
    fake_git(tmp_path, monkeypatch, script)
    provider = Repository(tmp_path).open()

    async def body() -> None:
        call = asyncio.create_task(published(provider))
        async with asyncio.timeout(PATIENCE):
            while not lock.exists():
                await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not lock.exists()

    run(body())


# -- repositories at a path ----------------------------------------------------------------------------------------


def test_leftover_lock_file_is_reported(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    run(published(at.open()))
    lock = at.path / "refs" / "heads" / "ipfsmem.lock"
    lock.touch()
    provider = at.open()
    with Refused("If no git program runs there, remove VALUE"), named("or was interrupted"):
        run(published(provider))
    lock.unlink()
    run(published(provider))
    assert at.commits() == 2


def test_damaged_remote_is_not_reported_as_a_damaged_copy(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    provider = at.open()
    made = run(published(provider))
    shutil.copytree(at.path, tmp_path / "kept")
    run(published(at.open()))
    for path in at.path.joinpath("objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")
    with (
        Refused("Copy the repository first. Then run in it: git fsck"),
        named("the repository there is damaged"),
    ):
        run(provider.pins("n"))
    assert provider.repository.folder.exists()
    assert subprocess.run(["git", "-C", at.path, "fsck"], capture_output=True, check=False).returncode
    shutil.rmtree(at.path)
    shutil.copytree(tmp_path / "kept", at.path)
    assert run(roots(provider)) == {made.cid}


def test_local_repository_flushes_received_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 2.36 git flushes packs only."""
    at = Repository(tmp_path)
    fake_git(tmp_path, monkeypatch, f'echo "$*" >> {tmp_path}/calls\nreal "$@"')
    for version, packs in (((2, 36), 0), ((2, 35), 1)):
        provider = at.open()
        monkeypatch.setitem(vars(provider.repository._git), "_version", version)
        run(published(provider))
        assert len([*at.path.glob("objects/pack/*.pack")]) == packs
    pushes = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("push ")]
    assert len(pushes) == 2
    assert all(" -c core.fsync=committed -c core.fsyncMethod=fsync" in line for line in pushes)


# -- hosts ---------------------------------------------------------------------------------------------------------


def test_branch_name_conflict_is_reported_after_one_push(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    run(published(at.open(ref="#ipfsmem/main")))
    provider = at.open()
    with Refused(OTHER), named("has a name in the way of ipfsmem"):
        run(published(provider))
    assert provider.repository.connections["push"] == 1


def test_endless_race_errors_of_a_host_end(tmp_path: Path) -> None:
    with git_over_http(tmp_path, []) as at:
        hook = at.path / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho 'cannot lock ref' >&2; exit 1\n")
        hook.chmod(0o755)
        provider = at.open()
        with pytest.raises(ProviderRefused, match="no other device pushed one"):
            run(published(provider))
        assert provider.repository.connections["push"] <= 5
        hook.unlink()
        run(published(provider))
        hook.write_text(
            "#!/bin/sh\nread old new ref; git merge-base $old $new || { echo 'cannot lock ref' >&2; exit 1; }\n"
        )
        hook.chmod(0o755)
        run(published(at.open({"git_squash": 2}), "y"))  # as a host that forbids the squash does
        assert at.commits() == 2


def test_push_timeout_grows_with_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git reports no progress before the host answers."""
    provider = Repository(tmp_path).open({"company": True})
    program, stalls = provider.repository._git, {}
    real = program._run

    def noted(args: Sequence[str], *rest: Any, **more: Any) -> Any:
        stalls[args[0]] = more.get("stall")
        return real(args, *rest, **more)

    monkeypatch.setattr(program, "_run", noted)
    made = build_tree({"a.ipm": os.urandom(640_000)})
    run(provider.put_car(made.cid, made.blocks, name="n"))
    assert stalls["fetch"] == 7.0 and 60 + 640_000 / 65_536 < stalls["push"] < 80


def test_endless_ref_list_is_aborted_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{GIT}program._MEMORY", 96 * 1024)

    @web.middleware
    async def endless(request: web.Request, handler: Any) -> web.StreamResponse:
        kind = {
            "Content-Type": f"application/x-{request.query.get('service', 'git-upload-pack')}-advertisement"
        }
        answer = web.StreamResponse(headers=kind)
        await answer.prepare(request)
        line = b"1" * 40 + b" refs/heads/" + b"x" * 940 + b"\n"
        await answer.write(b"001e# service=git-upload-pack\n0000")
        while True:
            await answer.write((b"%04x" % (len(line) + 4) + line) * 256)

    with git_over_http(tmp_path, [endless]) as at, pytest.raises(ProviderError):
        run(at.open({"stall": 15.0}).pins("n"))


def test_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    blob = at.git("hash-object", "-w", "--stdin", data=b"x")
    many = at.git("mktree", data="".join(f"100644 blob {blob}\t{n}.json\n" for n in range(12)).encode())
    commit_of(at, f"040000 tree {many}\tpins\n")
    monkeypatch.setattr(f"{GIT}repository._ENTRIES_MAX", 11)
    with pytest.raises(ProviderRefused, match="lists more than 11 files"):
        run(at.open().pins("n"))


def test_files_with_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    run(published(at.open()))
    monkeypatch.setattr(f"{GIT}repository._TOTAL_MAX", 500)
    with Refused(OTHER), named("at most 500 are read"):
        run(at.open().pins("n"))


def test_empty_branch_remains_usable(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    provider = at.open()
    run(published(provider))
    repository = provider.repository
    before = repository.fetch(None)
    gone = [f"{kind}/{name}" for kind, files in before.stores.items() for name in files]
    repository.push(before, {}, gone, squash_at=99)
    assert at.git("ls-tree", "--name-only", "ipfsmem") == "README.md"
    again = run(published(at.open(), "again"))
    assert run(roots(at.open())) == {again.cid}


def test_unreadable_listed_file_is_not_treated_as_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Repository(tmp_path)
    made = run(published(at.open()))
    provider = at.open()
    with monkeypatch.context() as patch:
        patch.setattr(provider.repository, "blobs", lambda oids, size: [None] * len(oids))
        with pytest.raises(ProviderUnavailable, match="missing blob"):
            run(provider.pins("n"))
    assert run(roots(provider)) == {made.cid}


def test_object_of_another_type_hides_no_file(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    repository = at.open().repository
    with repository._locked():
        pass
    one, two = repository.store(b"one"), repository.store(b"two")
    folder = git(repository.folder, "mktree", data=f"100644 blob {one}\ta\n".encode())
    assert [*repository.blobs([one, folder, two], 1000)] == [b"one", None, b"two"]


def test_copy_is_recreated_only_when_it_is_damaged(tmp_path: Path) -> None:
    """A host can cause the same message."""
    at = Repository(tmp_path)
    provider = at.open()
    run(published(provider))
    said = LocalFailure("git fetch: fatal: pack has 3 unresolved deltas")
    assert not provider.repository.replace(said) and provider.repository.folder.exists()
    for path in provider.repository.folder.joinpath("objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")
    assert provider.repository.replace(said) and not provider.repository.folder.exists()


def test_files_with_a_huge_unpacked_size_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Repository(tmp_path)
    made = run(published(at.open()))
    large = at.git("hash-object", "-w", "--stdin", data=bytes(20_000_000))  # 20 KB on the wire
    small = at.git("hash-object", "-w", "--stdin", data=b"x" * 3000)
    pins = at.git("ls-tree", "ipfsmem:pins")
    [name] = [line.split("\t")[1] for line in pins.splitlines()]
    more = f"100644 blob {large}\tlist-{name}\n100644 blob {large}\t{name.replace('.', 'x.', 1)}\n"
    both = at.git("mktree", data=f"{pins}\n{more}".encode())
    packs = at.git("rev-parse", "ipfsmem:packs")
    commit_of(at, f"040000 tree {packs}\tpacks\n040000 tree {both}\tpins\n")
    provider, read = at.open(), []
    blobs = provider.repository.blobs
    monkeypatch.setattr(
        provider.repository, "blobs", lambda oids, size: read.append(size) or blobs(oids, size)
    )
    assert run(roots(provider)) == {made.cid} and sum(read) < 1_000_000
    assert small
    monkeypatch.setattr(f"{GIT}object_store._HEADS_MAX", 10)
    with Refused(OTHER), named("at most 10 are read"):
        run(at.open().pins("n"))


def test_refused_squash_is_reported_once(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    at.git("config", "receive.denyNonFastForwards", "true")

    async def body() -> None:
        provider = at.open({"git_squash": 2})
        assert isinstance(provider, Settling) and isinstance(provider, HostTrial)
        told = []
        for turn in range(4):
            await published(provider, str(turn))
            told.append(await provider.settle())
        assert [len(one) for one in told] == [0, 1, 0, 0] and "the history stays" in told[1][0]
        assert at.commits() == 4
        assert await provider.try_host() == "forced push refused: the history stays and the repository grows"
        at.git("config", "receive.denyNonFastForwards", "false")
        assert await provider.try_host() == "forced push allowed" and at.commits() == 1

    run(body())


def test_provider_test_reports_what_the_host_permits(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    steps = run(probe(at.open(), now_ms=1_800_000_000_000, random=os.urandom))
    assert [(step.outcome, step.text) for step in steps if step.what == "host"] == [
        ("ok", "forced push allowed")
    ]
    assert steps[-1].outcome == "ok"


def test_init_creates_the_branch_and_a_refused_sync_keeps_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Repository(tmp_path)
    run_ = Cli(tmp_path / "home", monkeypatch)
    run_.ok("init", "--provider", f"git:{at.url}", "--unprotected-keys", key=KEY)
    before = at.commits()
    assert before and f"git:{at.url}" in run_.ok("provider", "list").out
    at.git("config", "receive.hideRefs", "refs/heads/ipfsmem")
    run_.ok("write", "note", "--body", "a text that stays on this device")
    assert "refused the new commit" in run_.fails(ProviderRefused.exit_code, "sync").err
    assert "a text that stays" in run_.ok("read", "note").out and at.commits() == before
    at.git("config", "--unset", "receive.hideRefs")
    run_.ok("sync")
    assert at.commits() == before + 1


@pytest.mark.parametrize(
    "spec", ["git:https://me:s3cret@h.example/x", "git:https://me:pw#s3cret@h.example/x", "git:https://me:pw#s3cret~@h.example/x", "git:https://me:12/pw#s3cret@h.example/x", "git:https://h.example/x#s3cret@y",
             "git:ssh://me:s3cret@h.example/x", "git:me:s3cret@h.example:x", "git:https://s3cret@h.example/x",
             "git://me:s3cret@h.example/x", "git://github.com/me/x"],
)  # fmt: skip
def test_password_of_an_address_is_not_printed(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ = Cli(tmp_path / "home", monkeypatch)
    for arguments in (
        ("provider", "test", spec), ("init", "--provider", spec), ("provider", "add", spec), ("provider", "remove", spec),
        ("vault", "move", spec),
    ):  # fmt: skip
        done = run_(*arguments, key=KEY)
        assert done.code != 0 and "s3cret" not in f"{done.out}{done.err}", done
