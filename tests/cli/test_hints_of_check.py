"""Following the hints of `check` removes its findings."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from ipfsmem.causal.clock import FAR_AHEAD_MS, hlc
from ipfsmem.device.state import StateHeader
from ipfsmem.errors import NotPublishedError
from ipfsmem.memory import Memory
from ipfsmem.ring import operations
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.cli_lab import KEY, Cli, pipe
from tests.support.hints import hinted

HOUR = 3_600_000
WALLET = Unlock(RawKeySigner(bytes.fromhex(KEY)))
NOT_HERE = "Run: ipfsmem sync."


def found(device: Cli, code: str) -> str:
    """Return the finding of `check` on one subject, with its hint; empty if in order."""
    findings = device("vault", "check", "--json").json["findings"]
    return " ".join(f"{one['text']}\n{one['hint']}" for one in findings if one["code"] == code)


def delete_texts(device: Cli) -> None:
    """Delete the bytes of every text from disk."""
    with contextlib.closing(sqlite3.connect(device.home / "default" / "state.db")) as db, db:
        assert db.execute("UPDATE blocks SET data = zeroblob(length(data))").rowcount


def date_last_write(device: Cli, ahead: int) -> None:
    """Date the last write of this device `ahead` milliseconds after now."""
    with Memory.load("default", home=device.home) as memory, memory.replica.transaction():
        frame = memory.replica.store.frame
        memory.replica.store.apply(
            {}, StateHeader(frame.ctx, frame.seen, hlc(memory.replica.environment.now() + ahead))
        )
    device.ok("write", "dated", "--body", "x")


@pytest.mark.skipif(os.name != "posix", reason="no such permissions")
def test_hint_about_file_permissions_works(
    bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint is a shell line, and the folder's name has a space."""
    device = Cli(tmp_path / "my home", monkeypatch)
    device.ok("init", "--mode", "local")
    (device.home / "default" / "state.db").chmod(0o644)
    told = found(device, "permissions")
    hinted("Run: chmod 600 VALUE", told)
    subprocess.run(shlex.split(told.split("Run: ")[1]), check=True)
    assert found(device, "permissions") == ""


def test_hint_about_keys_without_a_passphrase_works(sealed: Cli) -> None:
    told = found(sealed, "unprotected-keys")
    hinted("Set one: ipfsmem key passphrase", told)
    sealed.ok("key", "passphrase", "--new-passphrase-fd", str(pipe("four plain words here")))
    assert (
        sealed.ok("vault", "check", "--json", "--passphrase-fd", str(pipe("four plain words here"))).json[
            "errors"
        ]
        == 0
    )


def test_hint_about_a_copied_vault_folder_works(
    sealed: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sealed.home, tmp_path / "copy")
    copy = Cli(tmp_path / "copy", monkeypatch)
    hinted("Run: ipfsmem sync. It gives this device a new id.", found(copy, "moved"))
    copy.ok("sync")
    assert found(copy, "moved") == ""
    assert copy.ok("status", "--json").json["device"] != sealed.ok("status", "--json").json["device"]


def test_hint_about_a_lost_text_of_a_local_vault_works(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "direct")
    delete_texts(cli)
    file = cli.home / "default" / "memory"
    for told in (found(cli, "blocks"), found(cli, "not-fetched"), cli.fails(4, "read", "tone").err):
        hinted("Its plain file may still be there: ipfsmem import {folder}", told)
        assert f"import {file}" in told and "sync" not in told
    cli.ok("import", str(file))
    assert cli.ok("vault", "check", "--json").json["errors"] == 0 and found(cli, "not-fetched") == ""
    assert cli.ok("read", "tone", "--body").out == "direct\n"


def test_hint_about_a_text_not_fetched_works(sealed: Cli, second: Cli) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    with Memory.load("default", home=sealed.home) as memory, memory.replica.transaction():
        ((_, value),) = memory.replica.store.entry("m/tone").items()
        assert value.loc is not None
        memory.replica.db.connection.execute(
            "DELETE FROM blocks WHERE digest=?", (bytes.fromhex(value.loc.sha),)
        )
    hinted(NOT_HERE, found(sealed, "not-fetched"))
    sealed.ok("sync")
    assert found(sealed, "not-fetched") == ""


def test_hint_about_a_damaged_text_works(sealed: Cli, second: Cli) -> None:
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    second.ok("sync")
    with Memory.load("default", home=sealed.home) as memory, memory.replica.transaction():
        ((_, value),) = memory.replica.store.entry("m/tone").items()
        assert value.loc is not None
        memory.replica.db.connection.execute(
            "UPDATE blocks SET data = zeroblob(length(data)) WHERE digest=?", (bytes.fromhex(value.loc.sha),)
        )
    hinted("Run: ipfsmem sync, then check again.", found(sealed, "blocks"))
    sealed.ok("sync")
    assert "intact" in found(sealed, "blocks")
    assert sealed.ok("read", "tone", "--body").out == "direct\n"


def test_hint_about_a_device_without_the_current_key_works(sealed: Cli, second: Cli) -> None:
    second.ok("write", "tone", "--body", "direct")
    with Memory.load("default", home=sealed.home) as memory:
        before = memory.replica.ring
    rotated = operations.rotate(before, WALLET.root(twice=False).admin, bytes([9]) * 32)
    with Memory.load("default", home=second.home) as memory, memory.replica.transaction():
        memory.replica.set_ring(memory.replica.ring.join(type(before)(before.vault, rotated.statements, ())))
    told = found(second, "no-key")
    hinted("Run: VALUE", told)
    assert "ipfsmem member admit --wallet FILE" in told
    refused = second("sync")
    assert refused.code == NotPublishedError.exit_code and "ipfsmem member admit" in refused.out
    hinted(
        "The notice has the reason and the next step, usually: ipfsmem member admit.",
        NotPublishedError.hint,
    )
    second.ok("member", "admit", key=KEY)
    assert found(second, "no-key") == ""
    second.ok("sync")
    sealed.ok("sync")
    assert sealed.ok("read", "tone", "--body").out == "direct\n"


def test_hint_about_a_conflict_works(clash: tuple[Cli, Cli]) -> None:
    one, _ = clash
    told = found(one, "conflicts")
    hinted("See: ipfsmem conflicts.", told)
    (item,) = one.ok("conflicts", "--json").json["conflicts"]
    one.ok("resolve", item["key"], "--seen", item["seen"], "--keep")
    assert found(one, "conflicts") == ""


def test_hint_about_a_clock_set_back_works(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    date_last_write(cli, HOUR)
    hinted("Set the clock, or wait until it has caught up.", found(cli, "clock"))
    set_clock(monkeypatch, 2 * HOUR)
    assert found(cli, "clock") == ""


def set_clock(monkeypatch: pytest.MonkeyPatch, by: int) -> None:
    """Set the clock of this machine."""
    import time

    real = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: real() + by * 1_000_000)


def test_hint_about_a_clock_reset_from_the_future_works(cli: Cli) -> None:
    date_last_write(cli, 2 * FAR_AHEAD_MS)
    told = found(cli, "clock")
    hinted(
        "If this machine's clock is right now: ipfsmem vault check --clock-is-right. Otherwise set it.", told
    )
    cli.ok("vault", "check", "--clock-is-right")
    assert found(cli, "clock") == ""


def test_hint_about_another_devices_clock_works(
    sealed: Cli, second: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    date_last_write(second, 2 * FAR_AHEAD_MS)
    second.ok("sync")
    sealed.ok("sync")
    hinted(
        "If this machine's clock is right, on that device: ipfsmem vault check.", found(sealed, "clock-of")
    )
    assert "--clock-is-right" in found(second, "clock")
    second.ok("vault", "check", "--clock-is-right")
    assert found(second, "clock") == ""
    # With a correct clock, all others would be behind except `second`.
    date_last_write(sealed, 2 * FAR_AHEAD_MS)
    hinted("Set it.", found(sealed, "clock"))
    set_clock(monkeypatch, 2 * FAR_AHEAD_MS)
    assert found(sealed, "clock") == ""
