"""`ipfsmem sync`, `status`, `vault log`, `vault diff`, `vault compact`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ipfsmem.errors import DamagedError
from ipfsmem.memory import Memory
from tests.interop.counterparts import need_program
from tests.support.cli_lab import KEY, OTHER_KEY, Cli
from tests.support.ports import free_port


def test_two_devices_sync_to_the_same_root(sealed: Cli, second: Cli) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    assert "Published: " in sealed.ok("sync").out
    said = second.ok("sync", "--json").json["report"]
    assert said["entries_changed"] == 1 and said["notices"] == []
    second.ok("write", "role", "--body", "engineer")
    for device in (second, sealed, second):
        device.ok("sync")
    roots = {device.ok("status", "--json").json["root"] for device in (sealed, second)}
    assert len(roots) == 1
    assert "Up to date." in sealed.ok("sync").out


def test_sync_reports_uploads_after_an_outage(sealed: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    sealed.ok("provider", "add", str(other))
    sealed.ok("sync")
    shutil.rmtree(other)
    sealed.ok("write", "tone", "--body", "direct")
    without = sealed("sync")
    assert without.code == 7 and "Published: " in without.out
    other.mkdir()
    out = sealed.ok("sync").out
    assert "that a provider lacked" in out
    again = sealed.ok("sync").out
    assert "Up to date." in again and "lacked" not in again


def test_status_shows_pending_changes(sealed: Cli) -> None:
    assert "no unpublished changes" in sealed.ok("status").out
    sealed.ok("write", "tone", "--body", "direct")
    assert "unpublished changes; run ipfsmem sync" in sealed.ok("status").out
    sealed.ok("sync")
    found = sealed.ok("status", "--json").json
    assert (found["memories"], found["unpublished"], found["mode"]) == (1, False, "encrypted-ipfs")
    assert found["vault"]["tag"] == "3973bff87388964db243992eeb7c6506"


def test_sync_of_a_local_vault_is_refused(cli: Cli) -> None:
    cli.fails(2, "sync")
    assert "published" not in cli.ok("status").out


def test_sync_without_the_usb_stick_suggests_plugging_it_in(sealed: Cli, stick: Path) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    shutil.rmtree(stick)
    assert "Plug in the stick" in sealed.fails(41, "sync").err
    assert sealed.ok("read", "tone", "--body").out == "direct\n"
    stick.mkdir()
    sealed.ok("sync")


def test_sync_with_another_wallet_is_refused(sealed: Cli) -> None:
    sealed.fails(24, "sync", key=OTHER_KEY)
    sealed.ok("sync", key=KEY)
    sealed.fails(24, "sync", "--wallet-vault", "another", key=KEY)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at open files")
def test_vault_is_closed_after_a_failed_unlock(sealed: Cli) -> None:
    from ipfsmem.errors import WrongWalletError
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.signers import RawKeySigner

    with pytest.raises(WrongWalletError) as kept:
        Memory.load("default", home=sealed.home, unlock=Unlock(RawKeySigner(bytes.fromhex(OTHER_KEY))))
    assert kept.tb is not None
    held = [os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    assert not [path for path in held if path.startswith(str(sealed.home))]


def test_vault_of_another_person_in_the_same_folder_is_ignored(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = Cli(tmp_path / "stranger", monkeypatch)
    stranger.ok("init", "--unprotected-keys", key=OTHER_KEY)
    stranger.ok("write", "theirs", "--body", "x")
    stranger.ok("sync")
    assert sealed.ok("sync", "--json").json["report"]["entries_changed"] == 0
    assert sealed.ok("list").out == ""


def test_sync_reports_a_damaged_block_and_does_not_use_it(sealed: Cli, second: Cli, stick: Path) -> None:
    before = {p: p.read_bytes() for p in (stick / "packs").iterdir()}
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    new = [p for p in (stick / "packs").glob("*.car") if p not in before]
    for pack in new:
        data = bytearray(pack.read_bytes())
        data[-40] ^= 1
        pack.write_bytes(data)
    said = second("sync")
    assert said.code == DamagedError.exit_code and "not used: " in said.out
    assert second.ok("list").out == ""


def test_log_and_diff_show_versions_and_changes(sealed: Cli, second: Cli) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    sealed.ok("write", "tone", "--body", "more direct")
    sealed.ok("write", "role", "--body", "engineer")
    changed = {line["key"]: line for line in sealed.ok("vault", "diff", "--json").json}
    assert (changed["tone"]["change"], changed["role"]["change"]) == ("changed", "added")
    assert "more direct" in changed["tone"]["after"] and changed["role"]["before"] is None
    text = sealed.ok("vault", "diff").out
    assert "-direct" in text and "+more direct" in text
    assert sealed.ok("vault", "diff", "--names").out.splitlines() == ["added\trole", "changed\ttone"]
    sealed.ok("sync")
    entries = sealed.ok("vault", "log", "--json").json
    assert entries[0]["own"] and entries[0]["label"] == "first" and entries[0]["c"] > entries[-1]["c"]
    back = sealed.ok("vault", "diff", entries[0]["root"], entries[1]["root"], "--names").out.splitlines()
    assert back == ["removed\trole", "changed\ttone"]
    assert sealed.ok("vault", "diff").out == ""
    assert len(sealed.ok("vault", "log", "--limit", "1").out.splitlines()) == 1
    sealed.fails(4, "vault", "diff", "bafynothing")


def test_compact_explains_retained_versions_and_freed_space(sealed: Cli) -> None:
    said = sealed.ok("vault", "compact", "--dry-run")
    assert "the newest of a device" in said.out
    for part in ("versions: ", "leftovers: ", "files: at least "):
        assert f"\n{part}" in said.out
    assert sealed.ok("vault", "compact", "--json").json["dry_run"] is False


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", [("--daily",), ("--by-hand",), ("--drop-guarded", "all"), ("--provider", "./folder")]
)
def test_compact_of_a_local_vault_refuses_version_options(cli: Cli, option: tuple[str, ...]) -> None:
    assert "is never published" in cli.fails(2, "vault", "compact", *option).err
    assert "files: " in cli.ok("vault", "compact").out


def test_compact_releases_only_the_named_mass_delete(sealed: Cli, second: Cli) -> None:
    """A mass delete is named by its root or by the device that published it."""
    for n in range(12):
        sealed.ok("write", f"k{n}", "--body", f"text {n}")
    sealed.ok("sync")
    second.ok("sync")
    for n in range(12):
        second.ok("forget", f"k{n}")
    second.ok("sync")
    said = sealed.ok("sync").out
    root = said.split("--drop-guarded ")[1].split()[0]
    sealed.ok("write", "more", "--body", "x")
    listed = sealed.ok("vault", "compact").out
    assert f"guarded {root}" in listed and "before 12 texts of first (" in listed
    assert " from second (" in listed and f"ipfsmem vault compact --drop-guarded {root}" in listed
    assert "first" in sealed.fails(4, "vault", "compact", "--drop-guarded", "first").err
    for word in (root, "second", "all"):
        assert (
            f"would be released {root}"
            in sealed.ok("vault", "compact", "--dry-run", "--drop-guarded", word).out
        )
    (one,) = sealed.ok("vault", "compact", "--json").json["versions"]["guards"]
    assert (one["root"], one["gone"], one["of"][0][:5], one["by"][0][:6], one["dropped"]) == (
        root,
        12,
        "first",
        "second",
        False,
    )
    assert f"released {root}" in sealed.ok("vault", "compact", "--drop-guarded", "second").out
    assert sealed.ok("vault", "compact", "--json").json["versions"]["guards"] == []


def test_sync_that_could_not_publish_has_its_own_exit_code(sealed: Cli, second: Cli) -> None:
    """It pulled, but this device is no longer a member of the vault."""
    second.ok("sync")
    sealed.ok("sync")
    others = [m for m in sealed.ok("member", "list", "--json").json["members"] if m["label"] == "second"]
    sealed.ok(
        "member",
        "revoke",
        others[0]["id"] if others else second.ok("status", "--json").json["device"],
        key=KEY,
    )
    second.ok("write", "tone", "--body", "nobody gets this")
    said = second("sync", "--json")
    assert said.code == said.json["exit_code"] == 27 and said.json["report"]["blocked"] == "revoked"
    assert said.json["report"]["notices"]


def test_unavailable_provider_is_reported_in_one_line(sealed: Cli) -> None:
    need_program("git")
    address = f"git:ssh://me@127.0.0.1:{free_port()}/x.git"
    sealed.ok("provider", "add", address)
    sealed.ok("write", "tone", "--body", "direct")
    done = sealed("sync")
    assert done.code == 7
    told = done.out
    (line,) = [one for one in told.splitlines() if address in one]
    assert line.startswith(f"not reached: {address}: the host does not answer (")
    assert line.endswith("not read, and new texts of this device were not published there; the next sync tries again")  # fmt: skip
    assert len(sealed("sync", "--json").json["report"]["notices"]) > 1


def test_init_and_test_at_a_closed_port_do_not_suggest_a_sync(bare: Cli) -> None:
    need_program("git")
    address = f"git:ssh://me@127.0.0.1:{free_port()}/x.git"
    refused = bare("init", "--unprotected-keys", "--provider", address, key=KEY)
    assert refused.code == 41
    assert "Nothing was created on this device. Try again in a while." in refused.err
    tried = bare("provider", "test", address)
    assert tried.code != 0 and "Sync again" not in tried.err
