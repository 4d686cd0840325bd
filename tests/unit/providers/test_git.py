"""The git provider: contents of the branch, races, squashing, hosts with restrictions, and hostile addresses."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.git import GitProvider, repository
from ipfsmem_providers.git.address import parse
from ipfsmem_providers.git.errors import explain

from ipfsmem.content.cid import CID
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import ConfigError, IpfsmemError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import GroupCommit, Snapshots, lasting_spec, open_provider, shown_spec
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.interop.counterparts import need_program
from tests.support.device_lab import load
from tests.support.hints import Refused, hinted
from tests.unit.providers.git_lab import Repository, git, git_over_http

OTHER = "Name another branch, which is created: git:ADDRESS#branch. A private repository of its own is best."
RULES = "Exempt the branch from the rules, or name another one: git:ADDRESS#branch."


@pytest.fixture(autouse=True)
def _git() -> None:
    need_program("git")


@contextlib.contextmanager
def named(text: str) -> Iterator[None]:
    """Check that an error contains this text, and suppress it."""
    try:
        yield
    except IpfsmemError as error:
        assert text in str(error)
        raise


def run(body: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(body)


def tree(text: str, size: int = 600) -> BuiltTree:
    return build_tree({"a.ipm": text.encode() * 9, "b.ipm": os.urandom(size)})


async def published(provider: GitProvider, text: str = "x", name: str = "n") -> BuiltTree:
    """Store and pin a tree in one commit."""
    made = tree(text)
    provider.begin_group()
    await provider.put_car(made.cid, made.blocks, name=name)
    await provider.pin(made.cid, name)
    await provider.commit_group()
    return made


async def roots(provider: GitProvider, name: str = "n") -> set[CID]:
    return {pin.cid for pin in await provider.pins(name)}


async def holds(provider: GitProvider, made: BuiltTree) -> bool:
    cids = {cid for cid, _ in made.blocks}
    return (await provider.get_blocks(sorted(cids, key=str))).keys() == cids


# -- the branch ----------------------------------------------------------------------------------------------------


def test_publish_is_one_commit_of_the_folder_layout(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        provider = at.open()
        made = await published(provider)
        assert provider.repository.connections["push"] == 1 and at.commits() == 1
        assert await holds(at.open(), made)
        await provider.close()

    run(body())
    files = at.git("ls-tree", "-r", "--name-only", "ipfsmem").splitlines()
    assert [Path(name).suffix for name in files] == [".md", ".car", ".json"]
    assert at.git("for-each-ref", "--format=%(refname)") == "refs/heads/ipfsmem"


def test_folder_copied_from_the_branch_is_the_same_store(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        made = await published(at.open())
        copy = tmp_path / "copy"
        subprocess.run(["git", "clone", "-q", "-b", "ipfsmem", at.path, copy], check=True)
        folder = DirectoryProvider(copy)
        assert [pin.cid for pin in await folder.pins("n")] == [made.cid]
        assert (await folder.get_blocks([cid for cid, _ in made.blocks])).keys() == {
            c for c, _ in made.blocks
        }

    run(body())


def test_snapshot_and_change_cost_two_connections(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        await published(at.open())
        provider = at.open()
        assert isinstance(provider, GroupCommit) and isinstance(provider, Snapshots)
        provider.begin_snapshot(b"")
        await asyncio.gather(*(provider.pins(name) for name in "nmop"), provider.listing())
        assert provider.repository.connections == {"fetch": 1, "push": 0}
        made = await published(provider, "y")
        assert made.cid in await roots(provider)
        assert provider.repository.connections == {"fetch": 1, "push": 1}
        provider.end_snapshot()
        assert len(await roots(provider)) == 2
        assert provider.repository.connections == {"fetch": 2, "push": 1}

    run(body())


def test_discarded_group_stores_nothing(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        await published(at.open())
        provider, made = at.open(), tree("dropped")
        provider.begin_group()
        await provider.put_car(made.cid, made.blocks, name="n")
        await provider.pin(made.cid, "n")
        assert made.cid in await roots(provider) and await holds(provider, made)
        provider.discard_group()
        assert made.cid not in await roots(provider) and at.commits() == 1

    run(body())


def test_group_of_a_task_does_not_delay_another_task(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        provider, mine, other = at.open(), tree("mine"), tree("other")

        async def grouped() -> None:
            provider.begin_group()
            await provider.put_car(mine.cid, mine.blocks, name="n")
            await asyncio.create_task(alone(), context=outside)
            assert await roots(at.open()) == {other.cid}
            await provider.pin(mine.cid, "n")
            await provider.commit_group()

        async def alone() -> None:
            await provider.put_car(other.cid, other.blocks, name="n")
            await provider.pin(other.cid, "n")

        import contextvars

        outside = contextvars.copy_context()
        await asyncio.create_task(grouped())
        assert await roots(at.open()) == {mine.cid, other.cid}

    run(body())


def test_large_first_upload_is_one_push(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        made = build_tree({f"{n}.ipm": os.urandom(90_000) for n in range(40)})
        provider = at.open()
        provider.pack_bytes = 1_600_000
        await provider.put_car(made.cid, made.blocks, name="n")
        assert provider.repository.connections["push"] == 1
        assert await holds(at.open(), made)

    run(body())
    assert at.git("ls-tree", "--name-only", "ipfsmem:packs").count(".car") == 3


def test_publish_next_to_another_provider_is_one_commit(tmp_path: Path) -> None:
    """With two providers each call runs in a separate task."""
    at = Repository(tmp_path)
    wallet = Unlock(RawKeySigner(bytes(31) + b"\x29"))
    a = load(
        tmp_path, "a", [at.open(), DirectoryProvider(tmp_path / "folder", {"create": True})], wallet=wallet
    )
    a.write("k", "text")
    run(a.sync())
    before = at.commits()
    a.write("k", "changed")
    report = run(a.sync())
    assert report.published and not report.not_placed and at.commits() == before + 1
    run(a.sync())
    assert at.commits() == before + 1
    b = load(tmp_path, "b", [at.open()], wallet=wallet)
    assert b.read("k").file.body == "changed"  # type: ignore[union-attr]


# -- races ---------------------------------------------------------------------------------------------------------


def test_lost_race_is_pushed_on_the_newer_commit(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        one, two = at.open(), at.open()
        for provider in (one, two):
            provider.begin_snapshot(b"")
            await provider.pins("n")
        made = [await published(provider, str(turn)) for turn in range(3) for provider in (one, two)]
        assert one.repository.lost + two.repository.lost >= 5
        third = at.open()
        assert await roots(third) == {each.cid for each in made}
        assert all([await holds(third, each) for each in made])

    run(body())


def test_collection_after_a_lost_race_keeps_a_pack_that_is_needed_again(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    days = [0]

    def clock() -> int:
        return (1_800_000_000 + days[0] * 86_400) * 1_000_000_000

    async def body() -> None:
        one = GitProvider(at.url, {"git_cache": tmp_path / "one"}, clock=clock)
        kept, old = await published(one, "kept"), await published(one, "old")
        [pin] = [pin for pin in await one.pins("n") if pin.cid == old.cid]
        await one.unpin(pin)
        days[0] = 10_000
        await one.collect()
        days[0] += 2
        push = one.repository.push
        raced: list[int] = []

        def slow_push(*args: Any, **more: Any) -> Any:
            if not raced:
                raced.append(1)
                asyncio.run(again())
            return push(*args, **more)

        async def again() -> None:
            two = at.open()
            await two.put_car(old.cid, old.blocks, name="n")
            await two.pin(old.cid, "n")
            await two.close()

        one.repository.push = slow_push  # type: ignore[method-assign]
        await one.collect()
        third = at.open()
        assert raced and await roots(third) == {kept.cid, old.cid}
        assert await holds(third, kept) and await holds(third, old)

    run(body())


def test_group_whose_blocks_were_removed_meanwhile_is_not_stored(tmp_path: Path) -> None:
    """A device with a clock one day ahead removes the pack."""
    at = Repository(tmp_path)
    days = [0]

    async def body() -> None:
        clock = lambda: time.time_ns() + days[0] * 86_400_000_000_000  # noqa: E731
        ahead = GitProvider(at.url, {"git_cache": tmp_path / "ahead"}, clock=clock)
        await published(ahead, "kept")
        old = await published(ahead, "old")
        writer = at.open()
        writer.begin_group()
        assert await writer.has([cid for cid, _ in old.blocks])
        await writer.pin(old.cid, "n2")
        [pin] = [pin for pin in await ahead.pins("n") if pin.cid == old.cid]
        await ahead.unpin(pin)
        for days[0] in (10_000, 10_002):
            await ahead.collect()
        assert not await holds(at.open(), old)
        with Refused("Sync again."), named("removed blocks that this publish may need"):
            await writer.commit_group()
        assert await roots(at.open(), "n2") == set()
        again = await published(writer, "again", "n2")
        assert await roots(at.open(), "n2") == {again.cid} and await holds(at.open(), again)

    run(body())


def test_collection_frees_unpinned_packs(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    days = [0]

    async def body() -> None:
        clock = lambda: time.time_ns() + days[0] * 86_400_000_000_000  # noqa: E731
        one = GitProvider(at.url, {"git_cache": tmp_path / "one"}, clock=clock)
        kept, old = await published(one, "kept"), await published(one, "old")
        [pin] = [pin for pin in await one.pins("n") if pin.cid == old.cid]
        await one.unpin(pin)
        assert await one.collect() == 0
        days[0] = 10_000
        assert await one.collect() > 0
        assert await holds(at.open(), old)
        days[0] += 2
        assert await one.collect() > 0
        third = at.open()
        assert await holds(third, kept) and not await holds(third, old)

    run(body())


@pytest.mark.parametrize("forbidden", [False, True])
def test_history_is_replaced_if_the_host_permits_it(tmp_path: Path, forbidden: bool) -> None:
    at = Repository(tmp_path)
    at.git("config", "receive.denyNonFastForwards", str(forbidden).lower())

    async def body() -> None:
        one, two = at.open({"git_squash": 4}), at.open({"git_squash": 4})
        made = []
        for turn in range(11):
            made.append(await published((one, two)[turn % 2], str(turn)))
        assert await roots(at.open()) == {each.cid for each in made}
        assert all([await holds(one, each) for each in made])

    run(body())
    assert at.commits() == 11 if forbidden else at.commits() < 4


def test_squash_uploads_no_file_again(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        one = at.open({"git_squash": 3})
        large = build_tree({"large.ipm": os.urandom(900_000)})
        await one.put_car(large.cid, large.blocks, name="n")
        before = _bytes(at.path)
        for turn in range(4):
            await published(one, str(turn))
        assert one.repository.squashes >= 1
        assert _bytes(at.path) - before < 100_000

    run(body())


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_device_offline_during_squashes_reads_everything(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        sleeper = at.open(cache="sleeper")
        first = await published(sleeper)
        await sleeper.close()
        awake = at.open({"git_squash": 3})
        made = [first, *[await published(awake, str(turn)) for turn in range(10)]]
        at.git("reflog", "expire", "--expire=now", "--all")
        at.git("gc", "-q", "--prune=now")
        woken = at.open(cache="sleeper")
        assert await roots(woken) == {each.cid for each in made}
        assert all([await holds(woken, each) for each in made])
        await published(woken, "again")

    run(body())


# -- one cache repository, several programs ---------------------------------------------------------------------------


def test_programs_share_a_cache_repository(tmp_path: Path) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        providers = [at.open(cache="shared") for _ in range(4)]
        made = await asyncio.gather(*(published(one, str(n)) for n, one in enumerate(providers)))
        for provider in providers:
            assert await roots(provider) == {each.cid for each in made}
            assert all([await holds(provider, each) for each in made])

    run(body())


def test_head_that_another_program_pruned_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        other = at.open({"git_squash": 2}, cache="other")
        await published(other, "first")
        slow = at.open(cache="shared")
        slow.begin_snapshot(b"")
        await slow.pins("n")
        long_ago = time.time() - 7200
        for path in slow.repository.folder.rglob("*"):
            if path.is_file():
                os.utime(path, (long_ago, long_ago))
        for text in "yz":
            await published(other, text)
        with monkeypatch.context() as patch:
            patch.setattr("ipfsmem_providers.git.repository._PACKS", -1)
            await at.open(cache="shared").pins("n")
        made = await published(slow, "late")
        assert made.cid in await roots(at.open()) and slow.repository.lost == 0

    run(body())


def test_cache_repository_in_use_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    monkeypatch.setattr("ipfsmem_providers.git.repository._WAIT", 1)
    provider = at.open()
    provider.repository.folder.parent.mkdir()
    with (
        file_lock(provider.repository.folder.with_suffix(".lock")),
        Refused("Wait until it ends, or stop it; then try again."),
        named("has been using its copy"),
    ):
        run(provider.pins("n"))
    run(published(provider))


def test_cache_repository_on_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    provider = at.open()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("ipfsmem_providers.git.repository.shutil.disk_usage", full)
        with Refused("Free space there, and let this user write there."), named("No space left on device"):
            run(provider.pins("n"))
    run(published(provider))


@pytest.mark.parametrize("damage", ["empty", "objects", "refs", "locks", "shallow"])
def test_damaged_cache_repository_is_recreated(tmp_path: Path, damage: str) -> None:
    at = Repository(tmp_path)

    async def body() -> None:
        made = await published(at.open(cache="mine"))
        [folder] = [path for path in (tmp_path / "mine").iterdir() if path.is_dir()]
        if damage == "empty":
            (folder / "HEAD").unlink()
        for path in [*folder.joinpath("objects").rglob("*"), *folder.joinpath("refs").rglob("*")]:
            if path.is_file() and damage in ("objects", "refs") and damage in path.parts:
                path.chmod(0o600)
                path.write_bytes(b"")
        if damage == "shallow":
            (folder / "shallow").write_text("0123456789abc")
        for name in ("shallow.lock", "config.lock", "refs/ipfsmem/head.lock") if damage == "locks" else ():
            (folder / name).touch()
        provider = at.open(cache="mine")
        for _ in range(3):
            try:
                assert await roots(provider) == {made.cid} and await holds(provider, made)
                await published(provider, "more")
                break
            except ProviderUnavailable as error:
                assert "made again" in str(error)
                hinted("Sync again.", error.hint)
        assert len(await roots(at.open())) == 2

    run(body())


# -- repositories with other content ----------------------------------------------------------------------------------


def commit_of(at: Repository, entries: str, branch: str = "ipfsmem") -> None:
    """Put a commit with these tree entries on a branch."""
    made = at.git("mktree", "--missing", data=entries.encode())
    at.git("update-ref", f"refs/heads/{branch}", at.git("commit-tree", made, "-m", "x"))


def test_branch_with_other_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    blob = at.git("hash-object", "-w", "--stdin", data=b"print(1)")
    commit_of(at, f"100644 blob {blob}\tmain.py\n")
    before = at.git("for-each-ref")

    async def body() -> None:
        provider = at.open()
        for call in (provider.pins("n"), published(provider)):
            with (
                Refused(
                    "Name another branch, which is created: git:ADDRESS#branch. A private repository of its own is best."
                ),
                named("other files than ipfsmem's, for instance 'main.py'"),
            ):
                await call

    run(body())
    assert at.git("for-each-ref") == before
    made = run(published(at.open(ref="#memory")))
    assert run(holds(at.open(ref="#memory"), made)) and at.commits("refs/heads/memory") == 1


def test_other_branches_are_unchanged(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    blob = at.git("hash-object", "-w", "--stdin", data=b"print(1)")
    commit_of(at, f"100644 blob {blob}\tmain.py\n", "main")
    before = at.git("rev-parse", "refs/heads/main")
    run(published(at.open({"git_squash": 2})))
    run(published(at.open({"git_squash": 2}), "y"))
    assert at.git("rev-parse", "refs/heads/main") == before
    assert set(at.git("for-each-ref", "--format=%(refname)").split()) == {
        "refs/heads/main",
        "refs/heads/ipfsmem",
    }


def test_custom_ref_is_not_cloned(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    made = run(published(at.open(ref="#refs/ipfsmem/main")))
    assert at.git("for-each-ref", "--format=%(refname)") == "refs/ipfsmem/main"
    assert run(holds(at.open(ref="#refs/ipfsmem/main"), made))


def test_links_folders_and_submodules_are_ignored(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    made = run(published(at.open()))
    blob = at.git("hash-object", "-w", "--stdin", data=b"/etc/passwd")
    pins = at.git("ls-tree", "ipfsmem:pins")
    folder = at.git("mktree", data=f"100644 blob {blob}\tx\n".encode())
    strange = f"120000 blob {blob}\tlink.json\n160000 commit {'1' * 40}\tsub.json\n040000 tree {folder}\tfolder.json\n"
    pins = at.git("mktree", "--missing", data=f"{pins}\n{strange}".encode())
    packs = at.git("rev-parse", "ipfsmem:packs")
    commit_of(at, f"040000 tree {packs}\tpacks\n040000 tree {pins}\tpins\n")

    async def body() -> None:
        provider = at.open()
        assert await roots(provider) == {made.cid} and await holds(provider, made)
        await published(provider, "more")

    run(body())
    assert "link.json" in at.git("ls-tree", "--name-only", "ipfsmem:pins")


def test_foreign_files_are_not_stored_on_this_device(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    provider = at.open()
    for _ in range(2):
        blob = at.git("hash-object", "-w", "--stdin", data=os.urandom(300_000))
        commit_of(at, f"100644 blob {blob}\tmain.py\n")
        with pytest.raises(ProviderRefused, match="holds other files"):
            run(provider.pins("n"))
        assert _bytes(provider.repository.folder) < 100_000
    at.git("update-ref", "-d", "refs/heads/ipfsmem")
    made = run(published(provider))
    assert run(roots(at.open())) == run(roots(provider)) == {made.cid}


def test_nested_trees_are_not_walked(tmp_path: Path) -> None:
    """Thirty trees, each twice in the next: 10^9 paths."""
    at = Repository(tmp_path)
    run(published(at.open()))
    one = at.git("mktree", data=b"")
    for _ in range(30):
        one = at.git("mktree", data=f"040000 tree {one}\ta\n040000 tree {one}\tb\n".encode())
    packs = at.git("rev-parse", "ipfsmem:packs")
    commit_of(at, f"040000 tree {packs}\tpacks\n040000 tree {one}\tpins\n")
    assert run(roots(at.open())) == set()


def test_hooks_of_a_repository_at_a_path_do_not_run(tmp_path: Path) -> None:
    at = Repository(tmp_path)
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        hook = at.path / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
        hook.chmod(0o755)
    at.git("config", "core.alternateRefsCommand", f"touch {tmp_path}/ran-alternates; true")
    (tmp_path / "other.git").mkdir()
    git(tmp_path / "other.git", "init", "-q", "--bare")
    (at.path / "objects" / "info" / "alternates").write_text(f"{tmp_path}/other.git/objects\n")
    made = run(published(at.open()))
    assert run(holds(at.open(), made)) and not list(tmp_path.glob("ran-*"))


def test_user_configuration_runs_no_hook_and_signs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Repository(tmp_path)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "pre-push", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
        (hooks / name).chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(
        f"[core]\n\thooksPath = {hooks}\n[commit]\n\tgpgSign = true\n[push]\n\tgpgSign = true\n\tfollowTags = true\n[fetch]\n\tprune = true\n"
        "[gpg]\n\tprogram = /bin/false\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    made = run(published(at.open()))
    assert run(holds(at.open(), made)) and not list(tmp_path.glob("ran-*"))
    assert not (tmp_path / "elsewhere").exists()


def test_endless_pack_is_aborted_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    made = tree("x", 900_000)
    run(at.open().put_car(made.cid, made.blocks, name="n"))
    reader = at.open()
    with monkeypatch.context() as patch:
        full = shutil.disk_usage(tmp_path)._replace(free=200_000)
        patch.setattr("ipfsmem_providers.git.repository.shutil.disk_usage", lambda _: full)
        with (
            Refused("If the memory is that large, free space on this device."),
            named("more than 100,000 bytes"),
        ):
            run(reader.pins("n"))
    assert run(holds(reader, made))


# -- hosts ---------------------------------------------------------------------------------------------------------


def test_host_without_write_access_serves_reads(tmp_path: Path) -> None:
    with git_over_http(tmp_path, []) as at:
        made = run(published(at.open()))
        at.git("config", "http.receivepack", "false")

        async def body() -> None:
            reader = at.open()
            assert await holds(reader, made)
            with pytest.raises(ProviderRefused, match="refuses access") as raised:
                await published(reader, "y")
            assert "GIT_TOKEN" in raised.value.hint

        run(body())


def test_push_that_a_hook_of_the_host_declines_is_explained(tmp_path: Path) -> None:
    with git_over_http(tmp_path, []) as at:
        hook = at.path / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho 'GH013: rules' >&2; exit 1\n")
        hook.chmod(0o755)
        with Refused(RULES), named("the host's rules forbid pushes to this branch"):
            run(published(at.open()))
        hook.unlink()
        run(published(at.open()))


def test_refused_branch_is_reported_with_the_reason(tmp_path: Path) -> None:
    with git_over_http(tmp_path, []) as at:
        at.git("config", "receive.hideRefs", "refs/heads/ipfsmem")
        with Refused(RULES), named("refused the new commit ([remote rejected] (deny updating a hidden ref))"):
            run(published(at.open()))
        made = run(published(at.open(ref="#memory")))
        assert run(holds(at.open(ref="#memory"), made))
        at.git("config", "--unset", "receive.hideRefs")
        run(published(at.open()))


def test_host_with_an_unknown_failure_is_quoted(tmp_path: Path) -> None:
    answers = [418]

    @web.middleware
    async def broken(request: web.Request, handler: Any) -> web.StreamResponse:
        return web.Response(status=answers[0]) if answers else await handler(request)

    with git_over_http(tmp_path, [broken]) as at:
        provider = at.open()
        with Refused("Try again, or run: git ls-remote ADDRESS"), named("error: 418"):
            run(provider.pins("n"))
        asked = subprocess.run(["git", "ls-remote", at.url], capture_output=True, text=True, check=False)
        assert "418" in asked.stderr
        answers.clear()
        assert run(roots(provider)) == set()


def test_silent_host_is_aborted_with_a_hint(tmp_path: Path) -> None:
    silent = [True]

    @web.middleware
    async def waits(request: web.Request, handler: Any) -> web.StreamResponse:
        while silent:
            await asyncio.sleep(0.05)
        return await handler(request)

    with git_over_http(tmp_path, [waits]) as at:
        with Refused("Sync again in a while."), named("did not answer within"):
            run(at.open({"stall": 0.5}).pins("n"))
        silent.clear()
        run(published(at.open()))


def test_token_is_sent_to_the_host_and_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import base64

    expected = "Basic " + base64.b64encode(b"x-access-token:s3cret-of-tests").decode()
    with git_over_http(tmp_path, [], lambda request: request.headers.get("Authorization") == expected) as at:
        with pytest.raises(ProviderRefused, match="refuses access"):
            run(at.open().pins("n"))
        with Refused("Leave it out: the git program takes it from its credential helper, or set GIT_TOKEN."):
            GitProvider(at.url.replace("//", "//s3cret-of-tests@"))
        monkeypatch.setenv("GIT_TOKEN", "wrong-token-of-tests")
        with pytest.raises(ProviderRefused) as raised:
            run(at.open().pins("n"))
        assert "wrong-token" not in f"{raised.value} {raised.value.hint}"
        monkeypatch.setenv("GIT_TOKEN", "s3cret-of-tests")
        made = run(published(at.open()))
        assert run(holds(at.open(), made))


def test_one_token_for_two_hosts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TOKEN", "s3cret-of-tests")
    others = {
        "beside": lambda: ("git:https://one.example/m.git", "git:https://two.example/m.git", "git:/a/b")
    }
    with pytest.raises(ConfigError, match="2 addresses"):
        GitProvider("https://one.example/m.git", others)


def test_missing_repository_is_explained(tmp_path: Path) -> None:
    gone = GitProvider(str(tmp_path / "gone.git"), {"git_cache": tmp_path / "c"})
    with (
        Refused("Plug in the stick or mount the share. Create a new repository first: git init --bare PATH"),
        named("is not there"),
    ):
        run(gone.pins("n"))
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "gone.git"], check=True)
    made = run(published(gone))
    assert run(holds(gone, made))
    (tmp_path / "plain").mkdir()
    with pytest.raises(ProviderRefused, match="there is no such repository"):
        run(GitProvider(str(tmp_path / "plain"), {"git_cache": tmp_path / "c"}).pins("n"))


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", ProviderRefused, "refuses access"),
        ("Host key verification failed.\nfatal: Could not read", ProviderRefused, "ssh key is not known"),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", ProviderRefused, "refuses access"),
        ("remote: Repository not found.\nfatal: repository 'https://h/' not found", ProviderRefused, "no such repository"),
        ("fatal: unable to access 'https://u:pw@h/': Could not resolve host: h", ProviderUnavailable, "cannot be resolved"),
        ("ERROR: The key you are authenticating with has been marked as read only.", ProviderRefused, "may read this repository and not write"),
        ("remote: Gitea: Not allowed to push to protected branch x\n! [remote rejected] x -> x (pre-receive hook declined)\nerror: failed to push some refs to 'https://h/'", ProviderRefused, "rules forbid pushes to this branch (! [remote rejected] x -> x (pre-receive hook declined)"),
        ("remote: GitLab: You are not allowed to push code to protected branches on this project.", ProviderRefused, "rules forbid pushes"),
        ("remote: You are not allowed to push code to this project.", ProviderRefused, "may read this repository and not write"),
        ("remote: error: GH008: Your push referenced at least 1 unknown Git LFS object", ProviderRefused, "requires Git LFS"),
        ("remote: fatal: quota exceeded", ProviderUnavailable, "no space is left"),
        ("fatal: Out of memory, malloc failed", ProviderUnavailable, "more memory than git may use"),
        ("remote: error: GH001: Large files detected.", ProviderRefused, "files of this size"),
        ("ssh: connect to host h port 22: Connection refused", ProviderUnavailable, "does not answer"),
        ("fatal: detected dubious ownership in repository at '/x'", ProviderRefused, "another user owns"),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 503", ProviderUnavailable, "does not answer"),
        ("fatal: mismatched algorithms: client sha1; server sha256", ProviderRefused, "another object format"),
        ("fatal: the receiving end does not support this repository's hash algorithm", ProviderRefused, "another object format"),
        ("", ProviderUnavailable, "no message"),
        ("\x1b[31mremote: \x07evil\x00", ProviderUnavailable, "the git program failed"),
    ],
)  # fmt: skip
def test_message_of_a_host_is_explained(said: str, kind: type[ProviderError], text: str) -> None:
    error = explain("git:h", said)
    assert type(error) is kind and text in str(error) and error.hint
    assert "pw" not in str(error) and str(error).isprintable()


# -- addresses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rest",
    [
        "", "ext::sh -c id", "fd::3", "ssh::git@h:x", "--upload-pack=id", "-oProxyCommand=id@h:x", "ssh://-oProxyCommand=id/x", "git@-h:x",
        "git@h:-x", "ssh://h/-x", "https://h/a b", "https://h/a\nb", "https://u:pw@h/x", "https://token@h/x", "http://h/x", "git://h/x",
        "ftp://h/x", "file://h/x", "https://h", "ssh://h", "h", "C:x", "https://h/x?y", "https://h/x#a..b", "https://h/x#-b",
        "https://h/x#refs/tags/v", "https://h/x#b.lock", "https://h/x#.b", "https://h/x#b@{1}", "/x\0y", "git@h:x y", "https://[::1/x",
        "//h/x", "//u:pw@h/x", "file:////u:pw@h/x",
    ],
)  # fmt: skip
def test_hostile_address_is_refused_without_its_secrets(rest: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        GitProvider(rest, {"git_cache": tmp_path})
    assert (
        "pw" not in f"{raised.value}{raised.value.hint}"
        and "token@" not in f"{raised.value}{raised.value.hint}"
    )


def test_documented_address_forms_are_accepted(tmp_path: Path) -> None:
    with Refused(
        "For instance git:https://github.com/me/memory.git, git:git@host:me/memory.git or git:/media/stick/memory.git."
    ):
        open_provider("git:nothing")
    with Refused("VALUE, each with #branch or #refs/ipfsmem/main."):
        open_provider("git:/media/stick/memory.git#a..b")
    with Refused("Use https:// or ssh."):
        open_provider("git:http://host/me/memory.git")
    for told in ("https://github.com/me/memory.git", "git@host:me/memory.git", "/media/stick/memory.git"):
        for ref in ("", "#branch", "#refs/ipfsmem/main"):
            assert open_provider(f"git:{told}{ref}", {"git_cache": tmp_path}).name == f"git:{told}{ref}"
    for told in ("https://host/me/memory.git", "ssh://host/me/memory.git"):
        assert open_provider(f"git:{told}", {"git_cache": tmp_path}).name == f"git:{told}"


@pytest.mark.parametrize(
    ("rest", "url", "ref"),
    [
        ("https://github.com/me/m.git", "https://github.com/me/m.git", "refs/heads/ipfsmem"),
        ("git@github.com:me/m.git#b/c", "git@github.com:me/m.git", "refs/heads/b/c"),
        ("ssh://git@h:2222/~/m.git#refs/ipfsmem/main", "ssh://git@h:2222/~/m.git", "refs/ipfsmem/main"),
        ("host:m.git", "host:m.git", "refs/heads/ipfsmem"),
        ("file:///a/b%20c.git", "/a/b c.git", "refs/heads/ipfsmem"),
        ("/a/b.git#x", "/a/b.git", "refs/heads/x"),
        ("http://127.0.0.1:8080/m.git", "http://127.0.0.1:8080/m.git", "refs/heads/ipfsmem"),
    ],
)
def test_address_is_parsed_and_shown(rest: str, url: str, ref: str) -> None:
    found = parse(rest)
    assert (found.url, found.ref) == (url, ref)
    assert parse(found.shown) == found
    assert lasting_spec(f"git:{rest}") == f"git:{found.shown}" == shown_spec(f"git:{found.shown}")


@pytest.mark.parametrize(
    "spec",
    [
        "git:https://u:pw@h/x",
        "git:https://secret@h/x#b",
        "git:ssh://u:pw@h/x",
        "git:u:pw@h:x",
        "git://u:pw@h/x",
        "git:////u:pw@h/x",
    ],
)
def test_password_in_an_address_is_not_shown(spec: str) -> None:
    assert "pw" not in shown_spec(spec) and "secret" not in shown_spec(spec)


def test_missing_git_program_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Repository(tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with Refused("Install git: https://git-scm.com"), named("git program is not installed"):
            at.open()
    run(published(at.open()))


def test_copy_of_a_single_writer_is_repacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushes leave loose objects, although no fetch brings anything new."""
    monkeypatch.setattr(repository, "_LOOSE", 0)
    provider = Repository(tmp_path).open(cache="copy")
    made = [run(published(provider, f"text {number}")) for number in range(4)]
    monkeypatch.setattr(repository, "_LOOSE", -1)
    assert run(roots(provider)) == {one.cid for one in made}
    assert list(provider.repository.folder.glob("objects/pack/*.pack"))
    assert all(run(holds(provider, one)) for one in made)
