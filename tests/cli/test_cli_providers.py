"""`ipfsmem provider` and `vault move`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.http import blocks
from ipfsmem.memory import Memory
from tests.interop.counterparts import need_program
from tests.servers.threaded import serve
from tests.support.cli_lab import KEY, Cli
from tests.support.ports import free_port
from tests.unit.providers.git_lab import git


def test_provider_is_added_listed_and_removed(sealed: Cli, stick: Path, tmp_path: Path) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    added = sealed.ok("provider", "add", str(usb)).out
    assert added.splitlines() == [
        f"Providers: {stick}, {usb}",
        f"{usb} was not contacted. To publish there: ipfsmem sync",
    ]
    assert not list(usb.iterdir())
    first, second = sealed.ok("provider", "list", "--json").json["providers"]
    assert (first["spec"], first["kind"], second["spec"]) == (str(stick), "directory", str(usb))
    assert first["capabilities"]["partial_car"] and not first["capabilities"]["dag"]
    assert first["root"] and first["at"] > 0 and second["root"] is None
    sealed.ok("write", "tone", "--body", "direct")
    root = sealed.ok("sync", "--json").json["report"]["root"]
    assert [one["root"] for one in sealed.ok("provider", "list", "--json").json["providers"]] == [root, root]
    assert list((usb / "packs").glob("*.car"))
    assert sealed.ok("provider", "remove", str(usb)).out.endswith(f"\nProviders: {stick}\n")
    (line,) = sealed.ok("provider", "list").out.splitlines()
    kind, spec, can, last, when = line.split("\t")
    assert (kind, spec, can) == ("directory", str(stick), "full")
    assert last[:6] == root[:6] and when.startswith("20")
    sealed.fails(3, "provider", "remove", str(usb))
    sealed.fails(3, "provider", "add", "nonsense")


def test_provider_check_suggests_a_fix_where_retrying_cannot_help(
    sealed: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    monkeypatch.setenv("PINATA_JWT", "a.token.of-somebody")
    sealed.ok("provider", "add", "pinata")
    monkeypatch.delenv("PINATA_JWT")

    def told(refusal: ProviderError | None) -> str:
        with monkeypatch.context() as patch:
            if refusal is not None:

                async def listing(_: DirectoryProvider) -> dict[str, int]:
                    raise refusal

                patch.setattr(DirectoryProvider, "listing", listing)
            done = sealed("provider", "check")
        assert done.code == 7, done
        return done.err.splitlines()[-1]

    assert "set PINATA_JWT" in told(None) and "later" not in told(None)
    sealed.ok("provider", "remove", "pinata")
    assert told(ProviderUnavailable("busy")) == "Check again later: ipfsmem provider check"
    assert told(ProviderRefused("not allowed", hint="Use a key that may list.")) == "Use a key that may list."
    assert told(ProviderRefused("not allowed")) == "Test the provider: ipfsmem provider test SPEC"


def test_moved_vault_is_restored_from_the_new_provider(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: object
) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    moved = sealed.ok("vault", "move", str(usb), "--json").json
    assert (
        moved["providers"] == [str(usb)]
        and moved["moved"]["checked"] > 0
        and not moved["moved"]["incomplete"]
    )
    shutil.rmtree(stick)
    other = Cli(tmp_path / "other", sealed._monkeypatch)
    other.ok("init", "--unprotected-keys", "--provider", str(usb), key=KEY)
    assert other.ok("read", "tone", "--body").out == "direct\n"


def test_move_from_a_provider_not_in_use_is_refused(sealed: Cli, stick: Path, tmp_path: Path) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    found = sealed.fails(3, "vault", "move", str(usb), "--from", "/no/such")
    assert "/no/such is not a provider" in found.err and str(stick) in found.err
    sealed.fails(2, "vault", "move", str(stick), "--from", str(stick))
    assert [one["spec"] for one in sealed.ok("provider", "list", "--json").json["providers"]] == [str(stick)]
    assert not list(usb.iterdir())


def test_provider_test_runs_without_a_vault(bare: Cli, tmp_path: Path) -> None:
    assert bare.ok("provider", "test", str(tmp_path)).out.count("✓") >= 6
    assert not bare.home.exists()


def test_provider_test_reports_each_step(sealed: Cli, tmp_path: Path) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    found = sealed.ok("provider", "test", str(usb), "--json").json
    assert found["failed"] == 0 and {"ok"} >= {s["outcome"] for s in found["steps"]} - {"cannot"}
    assert "✓ overall" in sealed.ok("provider", "test", str(usb)).out
    assert sealed("provider", "test", str(tmp_path / "not-there")).code in (40, 41)


def test_provider_without_its_token_blocks_no_local_command(
    sealed: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINATA_JWT", "a.token.of-somebody")
    sealed.ok("provider", "add", "pinata")
    monkeypatch.delenv("PINATA_JWT")
    sealed.ok("write", "tone", "--body", "direct")
    assert sealed.ok("read", "tone", "--body").out == "direct\n"
    sealed.ok("status")
    done = sealed("sync", "--json")  # the folder accepts it, and no other provider is contacted
    synced = done.json["report"]
    assert done.code == done.json["exit_code"] == 7 and synced["not_placed"] == [
        "pinata"
    ]  # one of two providers is not all
    assert synced["published"] and "PINATA_JWT is not set" in json.dumps(synced["notices"])
    listed = sealed.ok("provider", "list", "--json").json["providers"]
    assert [one["problem"] for one in listed] == ["", "PINATA_JWT is not set"]
    assert "PINATA_JWT is not set" in sealed.ok("provider", "list").out
    sealed.fails(3, "provider", "add", "pinata")
    sealed.fails(3, "sync", "--provider", "pinata")
    sealed.ok("provider", "remove", str(stick))
    assert "PINATA_JWT is not set" in sealed.fails(42, "sync").err
    assert "nowhere" in sealed.ok("provider", "remove", "pinata").out


def test_provider_folder_is_stored_as_an_absolute_path(
    sealed: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vault must also sync from the working folder of a scheduled job."""
    (tmp_path / "here" / "usb").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    usb = str(tmp_path / "here" / "usb")
    monkeypatch.chdir(tmp_path / "here")
    for spec in ("./usb", "usb", "directory:usb", f"{usb}/", f"directory:{usb}"):
        assert sealed.ok("provider", "add", spec, "--json").json == {
            "providers": [str(stick), usb],
            "warning": "",
        }
    monkeypatch.chdir(tmp_path / "there")
    sealed.ok("write", "tone", "--body", "direct")
    root = sealed.ok("sync", "--json").json["report"]["root"]
    assert [one["root"] for one in sealed.ok("provider", "list", "--json").json["providers"]] == [root, root]
    monkeypatch.chdir(tmp_path / "here")
    sealed.fails(2, "vault", "move", usb, "--from", "./usb")
    assert sealed.ok("provider", "remove", "./usb", "--json").json == {"providers": [str(stick)]}
    other = Cli(tmp_path / "other", sealed._monkeypatch)
    other.ok("init", "--unprotected-keys", "--provider", "./usb", key=KEY)
    assert [one["spec"] for one in other.ok("provider", "list", "--json").json["providers"]] == [usb]


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A peer that this device may read but not write: the peer's token is another one."""
    monkeypatch.setenv("PEER_TOKEN", "a token that is not the server's")
    (tmp_path / "theirs").mkdir()
    with serve(lambda: blocks.app(DirectoryProvider(tmp_path / "theirs"), token="the server's token")) as url:
        yield f"peer:{url}"


def test_provider_test_refuses_a_bare_repository_as_a_folder(bare: Cli, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "memory.git"], check=True)
    before = sorted((tmp_path / "memory.git").iterdir())
    said = bare("provider", "test", str(tmp_path / "memory.git"))
    assert said.code == 40 and "is a bare git repository" in said.out
    assert f"Store in one of its branches: git:{tmp_path / 'memory.git'}" in said.err
    assert sorted((tmp_path / "memory.git").iterdir()) == before
    bare.ok("provider", "test", f"git:{tmp_path / 'memory.git'}")


@pytest.mark.usefixtures("short_pauses")
def test_provider_test_of_a_closed_port_suggests_checking_the_address(bare: Cli) -> None:
    said = bare("provider", "test", f"peer:http://127.0.0.1:{free_port()}")
    assert said.code == 40 and "connection refused" in said.out
    assert said.err == "Check the address, or try again later.\n"


def test_provider_test_prints_the_hint_of_a_failed_step(bare: Cli, closed: str) -> None:
    said = bare("provider", "test", closed)
    line, overall = said.out.splitlines()
    assert "unreliable: upload failed" in overall
    assert said.code == 40 and line.startswith("✗ upload") and "401" in line
    assert said.err == "The token is wrong or missing. Set PEER_TOKEN.\n"
    steps = bare("provider", "test", closed, "--json").json["steps"]
    assert [step["hint"] for step in steps if step["hint"]] == [
        "The token is wrong or missing. Set PEER_TOKEN."
    ]


def test_provider_check_counts_lost_blocks_and_repair_uploads_them(sealed: Cli, stick: Path) -> None:
    for n in range(3):
        sealed.ok("write", f"k{n}", "--body", f"text {n}")
        sealed.ok("sync")
    assert "✓ directory:" in sealed.ok("provider", "check").out
    assert "parts are there" in sealed.ok("status").out
    for pack in (stick / "packs").iterdir():
        pack.unlink()
    lost = sealed("provider", "check", "--json")
    assert lost.code == 44 and lost.json["missing"] == lost.json["providers"][0]["missing"] > 5
    assert "provider check --repair" in sealed("provider", "check").err
    assert "missing" in sealed.ok("status").out
    mended = sealed.ok("provider", "check", "--repair", "--json").json
    assert mended["missing"] == 0 and mended["providers"][0]["sent"] > 5
    sealed.ok("provider", "check")
    sealed.ok("provider", "check", "--repair", "--full")  # the older roots that are retained there
    full = sealed.ok("provider", "check", "--full", "--json").json
    assert full["providers"][0]["read"] == full["providers"][0]["total"] > 5
    for pack in (stick / "packs").iterdir():
        pack.unlink()
    assert "repaired: " in sealed.ok("sync").out
    assert sealed.ok("sync", "--json").json["report"]["missing"] == 0


def test_sync_reports_blocks_that_no_device_here_has(sealed: Cli, second: Cli, stick: Path) -> None:
    """Exit code 44 until a device with the blocks syncs."""
    from ipfsmem.content.cid import raw_cid
    from ipfsmem.memory import Memory

    second.ok("write", "tone", "--body", "direct")
    second.ok("sync")
    sealed.ok("sync")
    with Memory.load("default", home=sealed.home) as memory:
        ((_, value),) = memory.replica.store.entry("m/tone").items()
        assert value.loc is not None
        digest = bytes.fromhex(value.loc.sha)
        with memory.replica.transaction():
            memory.replica.db.connection.execute("DELETE FROM blocks WHERE digest=?", (digest,))
    for pack in (stick / "packs").iterdir():
        pack.unlink()
    for _ in range(2):
        said = sealed("sync", "--json")
        report = said.json["report"]
        assert said.code == 44 and report["missing"] == 1
        (told,) = [one["text"] for one in report["notices"] if one["kind"] == "missing"]
        assert str(raw_cid(digest)) in told
    second.ok("sync")
    assert sealed.ok("sync", "--json").json["report"]["missing"] == 0


def test_provider_follow_adopts_an_announced_move(
    sealed: Cli, second: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usb = tmp_path / "usb"
    usb.mkdir()
    for device in (sealed, second):
        device.ok("sync")
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    said = sealed.ok("vault", "move", str(usb)).out
    assert "provider follow" in said and str(stick) in said
    assert f"to {usb}" in second.ok("sync").out and "provider follow" in second.ok("status").out
    second.fails(2, "provider", "follow", "--decline", str(usb))
    second.fails(4, "provider", "follow", str(tmp_path))
    assert f"Publishes at: {usb}" in second.ok("provider", "follow").out
    assert second.ok("provider", "list", "--json").json["providers"][0]["spec"] == str(usb)
    second.fails(4, "provider", "follow")
    second.fails(4, "provider", "follow", "--decline")
    assert "moved" not in second.ok("sync").out


def test_risks_of_a_repository_are_in_each_answer(
    sealed: Cli, second: Cli, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repository contains other work; it is named by its address, or by the device that moved there."""
    need_program("git")
    there = tmp_path / "code.git"
    subprocess.run(["git", "init", "-q", "--bare", there], check=True)
    spec, risk = f"git:{there}#refs/ipfsmem/main", f"{there} is a repository of other work"
    for device in (sealed, second):
        device.ok("sync")
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    moved = sealed.ok("vault", "move", spec, "--json")
    assert risk in moved.json["warning"] and risk in moved.err
    second.ok("sync")
    with Memory.load("default", home=second.home) as memory:
        added = memory.providers.add(spec)
        assert risk in added.warning and spec in added.providers
        assert memory.providers.add(str(stick)).warning == ""
        memory.providers.remove(spec)
    followed = second.ok("provider", "follow", "--json")
    assert risk in followed.json["warning"] and risk in followed.err


def test_removed_provider_is_not_shown_as_used(
    sealed: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("sync")
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    removed = sealed.ok("provider", "remove", str(stick))
    assert removed.out == (
        f"Removed: {stick}. Its data stays there.\nProviders: none, so this device publishes nowhere\n"
    )
    sealed.fails(3, "sync")


def test_vault_at_a_remote_is_found_from_every_folder(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_program("git")
    there, work = tmp_path / "code.git", tmp_path / "work"
    subprocess.run(["git", "init", "-q", "--bare", there], check=True)
    subprocess.run(["git", "clone", "-q", there, work], check=True, capture_output=True)
    monkeypatch.chdir(work)
    spec = f"git:{there}#refs/ipfsmem/main"
    made = bare.ok("init", "--unprotected-keys", "--provider", "git:origin", "--json", key=KEY)
    assert "warning: " in made.err and "can push there can delete it" in made.err
    assert made.json["root"]
    monkeypatch.chdir(tmp_path)
    bare.ok("write", "tone", "--body", "direct")
    done = bare.ok("sync")
    assert "warning" not in done.err and "kB sent" in done.out
    assert bare.ok("provider", "list", "--json").json["providers"][0]["spec"] == spec
    refused = bare.fails(3, "provider", "add", "git:origin")
    assert "is not in a git repository" in refused.err
    monkeypatch.chdir(work)
    added = bare.ok("provider", "add", "git:origin#notes", "--json")
    assert "each clone does" in added.err
    assert added.json["providers"] == [spec, f"git:{there}#notes"]
    tried = bare.ok("provider", "test", "git:origin#tried", "--json")
    for said in (added, tried):
        assert (
            "repository of other work" in said.err
            and f"{there} (origin) is a repository" in said.json["warning"]
        )
    removed = bare.ok("provider", "remove", "git:origin").out
    assert removed == f"Removed: {spec}. Its data stays there.\nProviders: git:{there}#notes\n"
    refs = git(there, "for-each-ref")
    bare.ok("write", "tone", "--body", "polite")
    refused = bare.fails(3, "sync", "--provider", "git:origin")
    assert "names a remote of the repository" in refused.err
    with Memory.load(home=bare.home) as memory, pytest.raises(ConfigError, match="names a remote"):
        memory.providers.add("git:origin")
    assert git(there, "for-each-ref") == refs  # every push had a warning
    moved = bare.ok("vault", "move", "git:origin")
    assert "can push there can delete it" in moved.err
    assert [one["spec"] for one in bare.ok("provider", "list", "--json").json["providers"]] == [spec]
    moved = bare.ok("vault", "move", "git:origin#moved")
    assert "repository of other work" in moved.err
    assert "repository of other work" in bare("provider", "follow", "git:origin#moved").err
