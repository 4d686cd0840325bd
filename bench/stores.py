"""What a folder at an SSH or a WebDAV server, a bucket and a git branch cost, next to restic at the same SSH and S3 servers.

    python -m bench.stores [--sizes 1000,10000] [--only sftp] [--report]

Each step is a whole process. A relay in front of the server counts the bytes of the connections both ways, so they include the
overhead of SSH and HTTP; the device or the relay counts its requests. OpenSSH, Apache, SeaweedFS, git and restic are needed; a
missing one is reported, and its rows are left out. `processor` is the time of the process and of the programs that it starts,
which other work on the machine disturbs less. The import of the files is a step of its own: a vault is published when its
memories have long been in it. The last lines compare first publishes, and imports with them, with restic's first backup: in a
bucket with its own there, elsewhere with that at the SSH server. Nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from rich.console import Console
from rich.table import Table

from bench.context import PYTHON
from bench.corpus import changed, corpus, write_folder
from bench.measure import process
from bench.report import machine
from bench.wire import Wire

if TYPE_CHECKING:
    from tests.servers.sshd import Sshd

#: The steps of one device, and of another one with only the wallet.
STEPS = ("first publish", "idle", "idle again", "one change", "restore")
#: The device's job for each step of another name.
_JOBS = {"first publish": "publish", "idle again": "idle", "one change": "one", "restore": "fetch"}
_MODE = "encrypted-ipfs"
_KEY, _BUCKET = "bench", "bench"


class Cost(msgspec.Struct):
    """The cost of one step as a whole process. `requests`: None if not counted."""

    store: str
    size: int
    step: str
    seconds: float
    cpu: float
    sent: int
    received: int
    requests: int | None
    #: Largest memory of the process, in MB.
    rss_mb: float
    #: Bytes of all files at the server afterwards.
    stored: int


class Store(msgspec.Struct):
    """A folder at a server behind a relay."""

    name: str
    folder: Path
    wire: Wire
    spec: str = ""
    settings: dict[str, Any] = {}
    env: dict[str, str] = {}
    #: Options of restic for this server; empty if not compared.
    restic: tuple[str, ...] = ()

    def stored(self) -> int:
        """Return the bytes of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


@contextlib.contextmanager
def sftp(work: Path) -> Iterator[Store]:
    """A folder at an OpenSSH server."""
    from tests.servers.sshd import sshd

    with sshd(work / "sshd") as server:
        wire = Wire()
        port = _relayed(server, wire)
        folder = work / "stored"
        folder.mkdir()
        command = ["ssh", "-F", str(server.config), "-p", str(port), f"{server.user}@127.0.0.1", "-s", "sftp"]
        yield Store(
            "sftp",
            folder,
            wire,
            f"sftp:{server.user}@127.0.0.1:{port}/{folder}",
            env={"PATH": f"{server.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"},
            restic=("-o", f"sftp.command={shlex.join(command)}", "-r", f"sftp:x:{work / 'restic'}"),
        )


def _relayed(server: Sshd, wire: Wire) -> int:
    """Return the port of a relay to an SSH server, which `ssh` knows."""
    port = urlsplit(wire.relay(f"http://127.0.0.1:{server.port}")).port
    assert port is not None
    known = server.folder / "known_hosts"
    known.write_text(f"{known.read_text()}[127.0.0.1]:{port} {(server.folder / 'host.pub').read_text()}")
    return port


@contextlib.contextmanager
def git(work: Path) -> Iterator[Store]:
    """A branch of a repository at an OpenSSH server."""
    from tests.servers.sshd import sshd
    from tests.unit.providers.git_lab import Repository

    with sshd(work / "sshd") as server:
        wire, repository = Wire(), Repository(work)
        port = _relayed(server, wire)
        yield Store(
            "git",
            repository.path,
            wire,
            f"git:ssh://{server.user}@127.0.0.1:{port}{repository.path}",
            env={"GIT_SSH_COMMAND": f"ssh -F {server.config}"},
        )


@contextlib.contextmanager
def bucket(work: Path) -> Iterator[Store]:
    """A bucket of SeaweedFS."""
    from tests.interop.seaweed import seaweed

    folder = work / "seaweed"
    folder.mkdir()
    with seaweed(folder, _KEY, _KEY) as server:
        asyncio.run(server.make_bucket(_BUCKET))
        wire = Wire()
        url = f"{wire.relay(server.url)}/{_BUCKET}"
        account = {"AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _KEY}
        yield Store(
            "bucket", folder, wire, f"bucket:{url}/memories", env=account, restic=("-r", f"s3:{url}/restic")
        )


@contextlib.contextmanager
def webdav(work: Path) -> Iterator[Store]:
    """A folder behind Apache's mod_dav."""
    from tests.interop.test_webdav_servers import webdav_at_apache

    with contextlib.ExitStack() as stack:
        at = webdav_at_apache(work, stack)
        wire, url = Wire(), urlsplit(at.url)
        relayed = wire.relay(f"{url.scheme}://{url.netloc}")
        yield Store("webdav", at.folder, wire, f"webdav:{relayed}{url.path}", dict(at.account))


STORES: dict[str, Callable[[Path], contextlib.AbstractContextManager[Store]]] = {
    "sftp": sftp,
    "bucket": bucket,
    "webdav": webdav,
    "git": git,
}

#: Maximum ratio of our first publish to restic's.
GOALS = {"sftp": 1.5, "bucket": 1.5, "webdav": 2.5, "git": 2.5}


def measure(store: Store, size: int, work: Path) -> Iterator[Cost]:
    """Yield the cost of each step."""
    files = corpus(size)
    folder = write_folder(files, work / "memories")

    def step(name: str, what: str, home: str) -> Cost:
        cache = {"git_cache": str(work / f"{home}-cache")} if store.name == "git" else {}
        job = {
            "what": what,
            "home": str(work / home),
            "mode": _MODE,
            "providers": [[store.spec, store.settings | cache]],
            "count": size,
            "folder": str(folder),
        }
        store.wire.reset()
        command = [PYTHON, "-m", "bench.network_device", json.dumps(job)]
        done = process(command, env=store.env, cwd=Path(__file__).parents[1])
        counted = json.loads(done.output.splitlines()[-1])
        wire = store.wire
        requests = counted["requests"] or wire.requests or None
        return Cost(
            store.name, size, name, done.seconds, done.cpu, wire.sent, wire.received, requests, done.rss_mb, store.stored()
        )  # fmt: skip

    step("init", "init", "one")
    for name in ("import", *STEPS):
        yield step(name, _JOBS.get(name, name), "two" if name == "restore" else "one")


def restic(store: Store, size: int, work: Path) -> Iterator[Cost]:
    """Yield the cost of the same steps for restic."""
    source = write_folder(corpus(size), work / "source")
    cache = work / "restic-cache"
    env = {**store.env, "RESTIC_PASSWORD": "a passphrase of the bench", "RESTIC_CACHE_DIR": str(cache)}

    def run(name: str, *args: str | Path) -> Cost:
        store.wire.reset()
        done = process(["restic", "-q", *store.restic, *args], env=env)
        stored = sum(path.stat().st_size for path in (work / "restic").rglob("*") if path.is_file())
        wire = store.wire
        return Cost(
            f"restic, {store.name}", size, name, done.seconds, done.cpu, wire.sent, wire.received, None, done.rss_mb, stored
        )  # fmt: skip

    run("init", "init")
    for name in STEPS:
        if name == "one change":
            path = sorted(source.iterdir())[5]
            path.write_bytes(changed(path.read_bytes(), 1))
        if name == "restore":
            shutil.rmtree(cache)  # a new device has none
        yield run(name, *(("restore", "latest", "--target", work / "out") if name == "restore" else ("backup", source)))  # fmt: skip


def run(sizes: list[int], names: list[str], work: Path, say: Callable[[str], None]) -> list[Cost]:
    """Measure each store at each size; a missing program is reported."""
    import pytest

    found: list[Cost] = []
    for name in names:
        for size in sizes:
            place = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work))
            try:
                with STORES[name](place) as store:
                    ways = [measure(store, size, place)]
                    if store.restic and shutil.which("restic"):
                        ways.append(restic(store, size, place))
                    for way in ways:
                        for cost in way:
                            say(f"{cost.store} {cost.size:,}: {cost.step} {cost.seconds:.2f} s")
                            found.append(cost)
            except (pytest.skip.Exception, pytest.fail.Exception) as missing:
                say(f"{name} is left out: {missing}")
                break
            finally:
                shutil.rmtree(place, ignore_errors=True)
    return found


_HEADINGS = (
    "store", "memories", "step", "time", "processor", "sent", "received", "requests", "memory", "stored",
)  # fmt: skip


def rows(costs: list[Cost]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for cost in costs:
        yield (
            cost.store, f"{cost.size:,}", cost.step, f"{cost.seconds:.2f} s", f"{cost.cpu:.2f} s", f"{cost.sent:,}", f"{cost.received:,}",
            "" if cost.requests is None else f"{cost.requests:,}", f"{cost.rss_mb:.0f} MB", f"{cost.stored:,}",
        )  # fmt: skip


def show(costs: list[Cost]) -> Table:
    """Return the table for a terminal."""
    table = Table(*_HEADINGS)
    for row in rows(costs):
        table.add_row(*row)
    return table


def report(costs: list[Cost]) -> str:
    """Return RESULTS_STORES.md."""
    return "\n".join([
        "# Cost of remote folders, buckets and git, compared with restic",
        "",
        f"Generated by `python -m bench.stores --report` on {datetime.now(UTC).date().isoformat()}; do not edit. Machine: {machine()}. "
        "Everything runs on this machine, over loopback: OpenSSH, Apache, SeaweedFS, and git over OpenSSH.",
        "",
        "Each step is a whole process, measured once. `sent` and `received` are bytes on the connections, including the overhead of SSH "
        "and HTTP; `requests` are those that the device or the relay counts. The import of the files is a separate step. restic's first "
        "backup also reads the files, so the last lines compare it with the publish alone and with import and publish. restic compresses "
        "its blocks; ipfsmem compresses texts only.",
        "",
        f"| {' | '.join(_HEADINGS)} |",
        f"|{' --- |' * len(_HEADINGS)}",
        *(f"| {' | '.join(row)} |" for row in rows(costs)),
        "",
        *(f"- {line}" for line in compared(costs)),
        "",
    ])  # fmt: skip


def compared(costs: list[Cost]) -> Iterator[str]:
    """Yield a line on each first publish next to restic's first backup, alone and with the import before it."""
    by_step = {(cost.store, cost.size, cost.step): cost for cost in costs}
    for store, size, step in by_step:
        theirs = by_step.get((f"restic, {store}", size, step)) or by_step.get(("restic, sftp", size, step))
        if store not in GOALS or step != "first publish" or theirs is None:
            continue
        publish, before = by_step[store, size, step], by_step[store, size, "import"]
        times, processor = publish.seconds / theirs.seconds, publish.cpu / theirs.cpu
        verdict = "met" if times <= GOALS[store] else "missed"
        whole, all_processor = (
            (before.seconds + publish.seconds) / theirs.seconds,
            (before.cpu + publish.cpu) / theirs.cpu,
        )
        yield (
            f"{store}, {size:,}: {times:.2f} times {theirs.store} ({processor:.2f} by processor time), goal {GOALS[store]}: {verdict}; "
            f"with the import {whole:.2f} ({all_processor:.2f})"
        )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description=__doc__)
    parser.add_argument("--sizes", default="1000,10000", help="numbers of memories")
    parser.add_argument(
        "--only", action="append", choices=sorted(STORES), help="only this store (may be repeated)"
    )
    parser.add_argument("--json", type=Path, help="also write all numbers here")
    parser.add_argument("--report", action="store_true", help="also write bench/RESULTS_STORES.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ipfsmem-stores-") as work:
        costs = run(
            [int(size) for size in asked.sizes.split(",")],
            asked.only or list(STORES),
            Path(work),
            lambda text: print(text, file=sys.stderr, flush=True),
        )
    Console(width=max(Console().width, 130)).print(show(costs))
    for line in compared(costs):
        print(line)
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(costs)))
    if asked.report:
        Path(__file__).with_name("RESULTS_STORES.md").write_text(report(costs), encoding="utf-8")


if __name__ == "__main__":
    main()
