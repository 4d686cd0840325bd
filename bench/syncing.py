"""Cases with a provider: first publish, one changed memory, pull, restore from the wallet, join, peak memory.

The provider is a folder on the same disk. "Beside the provider" is the time of a sync outside the provider's calls.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path
from statistics import median as middle
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench.context import PYTHON, Context, knows
from bench.corpus import changed
from bench.counting import Counting
from bench.measure import Done, folder_bytes, process
from bench.process import PASSPHRASE, VAULT_NAME, WALLET, unlock
from ipfsmem.vault.home import Home

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.sync.report import SyncReport

CHANGED = "publish one changed memory"


_ENV = {"IPFSMEM_PASSPHRASE": PASSPHRASE, "IPFSMEM_CONFIG": os.devnull}


def _run(what: str, home: Path, *args: str | Path) -> list[str | Path]:
    """Run the command that a user would type, or bench.process if there is none."""
    where: list[str | Path] = ["--home", home, "-n", VAULT_NAME]
    if what in ("sync", "import") and (found := knows(what)):
        return [found, what, *where, *args]
    if what == "restore" and (found := knows("init")):
        key = home.parent / "wallet.hex"
        key.write_text(WALLET.hex())
        options = ["--raw-key-fd", "3", "--i-know-raw-keys", "--label", "bench", "--provider"]
        return [
            "sh",
            "-c",
            'key="$1"; shift; exec "$@" 3<"$key"',
            "sh",
            key,
            found,
            "init",
            *where,
            *options,
            *args,
        ]
    return [PYTHON, "-m", "bench.process", what, home, *args]


def _process(command: list[str | Path]) -> Done:
    return process(command, env=_ENV)


def publish(ctx: Context) -> None:
    """Measure whole processes: import, first publish, publish after one change, restore on a new device
    from the wallet."""
    runs = ctx.runs(3) if ctx.size <= 10_000 else 1
    imports, firsts, both = [], [], []
    home, stick = Path(), Path()
    for _ in range(runs):
        home, stick = ctx.fresh("home"), ctx.fresh("stick")
        _process(_run("init", home, stick))
        imports.append(_process(_run("import", home, ctx.folder)))
        firsts.append(_process(_run("sync", home)))
    for _ in range(runs):
        other, place = ctx.fresh("other"), ctx.fresh("place")
        _process(_run("init", other, place))
        both.append(_process(_run("first", other, ctx.folder)))
    shutil.rmtree(other)
    shutil.rmtree(place)
    ctx.add(
        "import",
        middle(d.seconds for d in imports),
        runs=runs,
        rss_mb=round(max(d.rss_mb for d in imports)),
        note="whole process: read, check, sign, seal, one transaction",
    )
    at_ten = ctx.size == 10_000
    ctx.add(
        "first publish",
        middle(d.seconds for d in firsts),
        runs=runs,
        rss_mb=round(max(d.rss_mb for d in firsts)),
        bytes=folder_bytes(stick),
        budget_seconds=1.4 if at_ten else None,
        note="whole process, `ipfsmem sync`, to a folder",
    )
    ctx.add(
        "import and first publish",
        middle(d.seconds for d in both),
        runs=runs,
        rss_mb=round(max(d.rss_mb for d in both)),
        note="one process, like a backup tool's first run",
    )
    _changes(ctx, home, runs=5 if ctx.size <= 10_000 else 3)
    _restore(ctx, stick, runs)
    _memory_use(ctx, home)


def _changes(ctx: Context, home: Path, runs: int) -> None:
    from ipfsmem.memory import Memory

    keys = list(ctx.files)
    done = []
    for i in range(runs):
        key = keys[(i * 41 + 5) % ctx.size]
        with Memory.load(VAULT_NAME, passphrase=PASSPHRASE, home=home) as memory:
            memory.write_text(key, changed(ctx.files[key], i))
        done.append(_process(_run("sync", home)))
    ctx.add(
        f"{CHANGED}, whole process",
        middle(d.seconds for d in done),
        runs=runs,
        rss_mb=round(max(d.rss_mb for d in done)),
        budget_seconds=1.1 if ctx.size == 10_000 else None,
        note="with 0.2 s of Argon2id for the passphrase",
    )


def _restore(ctx: Context, stick: Path, runs: int) -> None:
    done = []
    for _ in range(runs):
        place = ctx.work / "restored-from"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(stick, place)
        home = ctx.fresh("restored")
        done.append(_process(_run("restore", home, place)))
    shutil.rmtree(ctx.work / "restored-from")
    shutil.rmtree(ctx.work / "restored")
    ctx.add(
        "restore from the wallet",
        middle(d.seconds for d in done),
        runs=runs,
        rss_mb=round(max(d.rss_mb for d in done)),
        budget_seconds=1.3 if ctx.size == 10_000 else None,
        note="whole process, `ipfsmem init`, on a device with only a raw key; every signature checked, device enrolled. A keystore file adds its scrypt, about a second",
    )


def _memory_use(ctx: Context, home: Path) -> None:
    done = _process(_run("use", home))
    ctx.add(
        "a session",
        done.seconds,
        rss_mb=round(done.rss_mb),
        budget_rss_mb=600 if ctx.size == 100_000 else None,
        note="whole process: open, list all, read, write, note, MEMORY.md, sync",
    )


def exchange(ctx: Context) -> None:
    """Measure in process what one changed memory costs in bytes, blocks, requests and time, on both sides;
    then a join."""
    from ipfsmem.memory import Memory
    from ipfsmem.provider.contract import open_provider

    stick = ctx.fresh("exchange")
    ways: list[Any] = [Counting(open_provider(str(stick))) for _ in range(2)]
    a = Memory.create(
        VAULT_NAME, "encrypted-ipfs", provider=ways[0], unlock=unlock(), passphrase=False, home=ctx.fresh("a")
    )
    a.bundles.import_(ctx.folder)
    asyncio.run(a.sync())
    b = Memory.load(
        VAULT_NAME, "encrypted-ipfs", provider=ways[1], unlock=unlock(), passphrase=False, home=ctx.fresh("b")
    )
    b.close()
    b = Memory.load(VAULT_NAME, provider=ways[1], home=ctx.work / "b")
    asyncio.run(a.sync())
    asyncio.run(b.sync())
    try:
        _one_change(ctx, a, b, ways)
        _diverged(ctx, a, b, ways)
    finally:
        a.close()
        b.close()


def presence(ctx: Context) -> None:
    """Measure the check that published data still exists: of an idle sync, and of one a day later."""
    from ipfsmem.device.replica import Environment
    from ipfsmem.memory import Memory
    from ipfsmem.sync import upload
    from ipfsmem.sync.repair import keep_present

    stick, passed = ctx.fresh("presence"), [0]
    world = Environment(lambda: time.time_ns() // 1_000_000 + passed[0])
    memory = Memory.create(
        VAULT_NAME,
        "encrypted-ipfs",
        provider=str(stick),
        unlock=unlock(),
        passphrase=False,
        home=Home(folder=ctx.fresh("present"), environment=world),
    )
    spent = [0.0]

    async def timed(*args: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return await keep_present(*args, **options)
        finally:
            spent[0] += time.perf_counter() - began

    def measured(step: int, runs: int) -> tuple[float, float]:
        whole, part = [], []
        for _ in range(runs):
            passed[0] += step
            spent[0] = 0.0
            began = time.perf_counter()
            asyncio.run(memory.sync())
            whole.append(time.perf_counter() - began)
            part.append(spent[0])
        return middle(whole), middle(part)

    with memory, patch.object(upload, "keep_present", timed):
        memory.bundles.import_(ctx.folder)
        asyncio.run(memory.sync())
        asyncio.run(memory.sync())
        idle, part = measured(1_000, 21)
        later, more = measured(86_400_000, 3)
    ctx.add("idle sync", idle, runs=21, note="in process; no changes on either side")
    ctx.add(
        "idle sync: presence check",
        part,
        runs=21,
        budget_seconds=idle / 10,
        note="the folder's listing; the budget is a tenth of the idle sync",
    )
    ctx.add("idle sync, a day later", later, runs=3)
    ctx.add(
        "idle sync, a day later: presence check",
        more,
        runs=3,
        note="reads all structure and a sixth of all texts, once a day",
    )


def _sync(memory: Memory, way: Counting) -> tuple[SyncReport, float, float]:
    way.reset()
    started = time.perf_counter()
    report = asyncio.run(memory.sync())
    took = time.perf_counter() - started
    return report, took, took - way.seconds


def _one_change(ctx: Context, a: Memory, b: Memory, ways: list[Counting]) -> None:
    keys = list(ctx.files)
    sent, pulled = [], []
    for i in range(7):
        key = keys[(i * 31 + 3) % ctx.size]
        a.write_text(key, changed(ctx.files[key], i))
        report, took, own = _sync(a, ways[0])
        sent.append((took, own, report.bytes_sent, report.blocks_sent, ways[0].requests))
        report, took, own = _sync(b, ways[1])
        assert report.entries_changed == 1, report
        pulled.append((took, own, report.bytes_received, report.blocks_received, ways[1].requests))
    limits = {10_000: 32 * 1024, 100_000: 48 * 1024}
    for name, found, limit in (
        (CHANGED, sent, limits.get(ctx.size)),
        ("pull one changed memory", pulled, None),
    ):
        took, own, size, blocks, requests = (middle(column) for column in zip(*found[1:], strict=True))
        timed = 0.05 if name == CHANGED and limit else None
        ctx.add(
            f"{name}",
            took,
            runs=6,
            bytes=int(size),
            blocks=int(blocks),
            requests=int(requests),
            budget_bytes=limit,
            note="in process, the whole sync; a folder flushes three files",
        )
        ctx.add(f"{name}, excluding the provider", own, runs=6, budget_seconds=timed)


def _diverged(ctx: Context, a: Memory, b: Memory, ways: list[Counting]) -> None:
    keys = list(ctx.files)
    some = max(2, ctx.size // 100)
    times = []
    for turn in range(3):
        for i in range(some):
            key, other = keys[(i * 97 + turn) % ctx.size], keys[(i * 97 + (i % 2) * 5 + turn) % ctx.size]
            a.write_text(key, changed(ctx.files[key], 100 + turn))
            b.write_text(other, changed(ctx.files[other], 200 + turn))
        asyncio.run(a.sync())
        report, took, own = _sync(b, ways[1])
        times.append((took, own, report.bytes_received, report.blocks_received, ways[1].requests))
        asyncio.run(a.sync())
    took, own, size, blocks, requests = (middle(column) for column in zip(*times, strict=True))
    ctx.add(
        "sync of two diverged devices",
        took,
        runs=3,
        bytes=int(size),
        blocks=int(blocks),
        requests=int(requests),
        note=f"{some} memories changed on each side, half of them the same: fetch, verify, join, publish",
    )
    ctx.add("sync of two diverged devices, excluding the provider", own, runs=3)
