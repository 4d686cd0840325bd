"""`ipfsmem sync --every`: a process that keeps syncing, prints lines and exits cleanly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli_lab import KEY, Cli
from tests.support.keeping import PATIENCE, Keeping

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ends by signals")


@pytest.fixture
def keep() -> Iterator[Callable[..., Keeping]]:
    running: list[Keeping] = []

    def begin(cli: Cli, *arguments: str) -> Keeping:
        running.append(Keeping(cli, *arguments))
        return running[-1]

    yield begin
    for each in running:
        each.process.kill()
        each.process.wait()


def test_sync_every_prints_received_changes_and_hides_idle_syncs(
    sealed: Cli, second: Cli, keep: Callable[..., Keeping]
) -> None:
    sealed.ok("sync")
    second.ok("sync")
    kept = keep(second, "--every", "1s")
    first = kept.line(lambda line: True)
    assert "Nothing new from other devices." in first and first[:2] == "20"
    sealed.ok("write", "tone", "--body", "direct")
    sealed.ok("sync")
    line = kept.line(lambda line: True)
    assert "1 change from first: tone" in line
    assert second.ok("read", "tone", "--body").out == "direct\n"
    assert kept.end() == (0, [])


@pytest.mark.parametrize(
    ("number", "before"),
    [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGTERM, (signal.SIGTERM,)), (signal.SIGHUP, ())],
)
def test_sync_every_publishes_pending_writes_at_its_end(
    sealed: Cli, keep: Callable[..., Keeping], number: signal.Signals, before: tuple[signal.Signals, ...]
) -> None:
    """Also when `timeout` sends its signal twice, and when a terminal is closed."""
    sealed.ok("sync")
    kept = keep(sealed, "--every", "1h")
    kept.line(lambda line: "Nothing new" in line)
    sealed.ok("write", "tone", "--body", "direct")
    assert sealed.ok("status", "--json").json["unpublished"]
    for each in before:
        kept.process.send_signal(each)
    code, rest = kept.end(number)
    assert code == 0 and len(rest) == 1 and "Published: " in rest[0]
    assert not sealed.ok("status", "--json").json["unpublished"]


def test_sync_every_reports_an_outage_with_its_retry_delay(
    sealed: Cli, stick: Path, keep: Callable[..., Keeping]
) -> None:
    sealed.ok("sync")
    away = stick.rename(stick.with_name("away"))
    sealed.ok("write", "tone", "--body", "direct")
    kept = keep(sealed, "--every", "1s")
    assert kept.line(lambda line: "not reached: " in line).endswith("; next try in 1 s")
    assert kept.line(lambda line: "not reached: " in line).endswith("; next try in 2 s")
    away.rename(stick)
    assert "Published: " in kept.line(lambda line: "Published" in line)
    assert kept.end()[0] == 0


def test_sync_every_exits_with_an_error_while_the_provider_is_unavailable(
    sealed: Cli, stick: Path, keep: Callable[..., Keeping]
) -> None:
    sealed.ok("sync")
    shutil.rmtree(stick)
    sealed.ok("write", "tone", "--body", "direct")
    kept = keep(sealed, "--every", "1h")
    kept.line(lambda line: "next try in 30 s" in line)
    code, rest = kept.end()
    assert code == 41 and "Traceback" not in str(rest)
    assert rest[-2].startswith("ipfsmem: ") and "Plug in the stick" in rest[-1]


def test_sync_every_prints_one_json_object_per_line(
    sealed: Cli, stick: Path, keep: Callable[..., Keeping]
) -> None:
    sealed.ok("sync")
    kept = keep(sealed, "--every", "1s", "--json")
    first = kept.json(lambda found: True)
    assert first["report"]["root"].startswith("bafy") and 0 < first["again_in"] <= 1 and first["at"] > 1.7e12
    sealed.ok("write", "tone", "--body", "direct")
    assert kept.json(lambda found: found["report"]["published"])["report"]["blocks_sent"] > 0
    away = stick.rename(stick.with_name("away"))
    failed = kept.json(lambda found: "error" in found)
    assert failed["error"]["kind"] == "ProviderUnavailable" and failed["error"]["exit_code"] == 41
    away.rename(stick)
    kept.json(lambda found: "report" in found)
    code, rest = kept.end()
    assert code == 0 and all(json.loads(line) for line in rest)


def test_sync_every_ends_when_its_reader_closes_the_pipe(sealed: Cli) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "sync", "--every", "1s", "--json"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env={**os.environ, "IPFSMEM_HOME": str(sealed.home)},
    )
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 141 and b"Traceback" not in said


def test_sync_every_reports_a_likely_secret_and_continues(
    bare: Cli, stick: Path, keep: Callable[..., Keeping]
) -> None:
    bare.ok("init", "--mode", "ipfs", "--label", "first", "--yes-public", key=KEY)
    bare.ok("sync")
    bare.ok("write", "aws", "--body", "AKIA" + "ABCDEFGHIJKLMNOP")
    kept = keep(bare, "--every", "1s")
    assert "AWS access key" in kept.line(lambda line: "failed: " in line)
    bare.ok("write", "other", "--body", "x")
    bare.ok("write", "aws", "--body", "gone")
    assert "Published" in kept.line(lambda line: "failed: " not in line and "Published" in line)
    assert kept.end()[0] == 0


def test_invalid_sync_intervals_are_refused(cli: Cli, tmp_path: Path) -> None:
    for wrong in ("0", "0m", "soon", "5 m", "1.5h", "1w", "", "99999999d", "٣m", "-5m", "-5"):
        assert "invalid duration" in cli.fails(2, "sync", "--every", wrong).err, wrong
    assert "is never published" in cli.fails(2, "sync", "--every", "5m").err


def test_sync_every_without_an_interval_prints_the_chosen_one(
    sealed: Cli, keep: Callable[..., Keeping]
) -> None:
    kept = keep(sealed, "--every", "--json")
    kept.line(
        lambda line: "Syncing every 5 minutes: no provider here is known to charge for requests." in line
    )
    kept.line(lambda line: '"report"' in line)
    assert kept.end()[0] == 0
    assert "member admit" in sealed.fails(2, "sync", "--every", key=KEY).err


def test_sync_every_with_a_wallet_is_refused(sealed: Cli) -> None:
    assert "member admit" in sealed.fails(2, "sync", "--every", "5m", key=KEY).err


def test_sync_every_without_a_provider_is_refused(
    sealed: Cli, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed.ok("provider", "remove", str(stick))
    monkeypatch.delenv("IPFSMEM_PROVIDER")
    assert "no provider" in sealed.fails(3, "sync", "--every", "5m").err
