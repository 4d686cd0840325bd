"""Cases that need no provider: packing, sealing, durable writes, opening, the pure join."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median as middle

from bench.context import PYTHON, Context, knows, program
from bench.corpus import changed
from bench.measure import fsync_once, median, median_process
from bench.process import VAULT_NAME, unlock

_PACK = (
    "import sys; from ipfsmem.files.pack import pack_tree; "
    "out = open(sys.argv[2], 'wb'); print(pack_tree(sys.argv[1], out).root); out.close()"
)


def pack(ctx: Context) -> None:
    """Pack a folder to a CAR and its root CID, next to the Go IPFS library on the same folder."""
    car = ctx.work / "ours.car"
    found = knows("format")
    command: list[str | Path] = (
        [found, "format", "cid", ctx.folder, "--car", car]
        if found
        else [PYTHON, "-c", _PACK, ctx.folder, car]
    )
    runs = ctx.runs(5)
    done = median_process(lambda _: command, runs)
    ours = ctx.add(
        "pack to a CAR",
        done.seconds,
        runs=runs,
        rss_mb=round(done.rss_mb),
        bytes=car.stat().st_size,
        budget_seconds=0.5 if ctx.size == 10_000 else None,
        note="whole process, " + ("`ipfsmem format cid DIR --car F`" if found else "no command line yet"),
    )
    go = go_peer()
    if isinstance(go, str):
        ctx.skip("Go IPFS library: pack", go)
        return
    other = ctx.work / "go.car"
    done = median_process(lambda _: [go, "pack", ctx.folder, other], runs)
    ctx.add(
        "Go IPFS library: pack",
        done.seconds,
        runs=runs,
        rss_mb=round(done.rss_mb),
        bytes=other.stat().st_size,
        note="whole process, same folder",
    )
    if ctx.size >= 10_000:  # below this, both only measure the start of a process
        ours.budget_seconds = min(x for x in (ours.budget_seconds, 2 * done.seconds) if x)
        ours.budget_ratio_to = "twice the Go library"
    _same_root(ctx, command, [go, "cid", ctx.folder])
    car.unlink()
    other.unlink()


def _same_root(ctx: Context, ours: list[str | Path], theirs: list[str | Path]) -> None:
    from bench.measure import process

    mine, peer = process(ours).output.decode(), process(theirs).output.decode()
    if peer.split()[0] not in mine:
        raise RuntimeError(f"the Go library finds root {peer.split()[0]}, ipfsmem says {mine.strip()}")


def go_peer() -> Path | str:
    """Return the Go counterpart of the tests, or the reason why there is none."""
    import shutil

    if shutil.which("go") is None:
        return "Go is not installed"
    try:
        from tests.interop.counterparts import gopeer_program

        return gopeer_program()
    except BaseException as error:  # pytest's skip is one
        return f"the Go counterpart could not be built: {error}"[:200]


def seal(ctx: Context) -> None:
    """Seal and open every memory."""
    from ipfsmem.seal.objects import MEMORY, Sealer, epoch_key

    tag = bytes(range(16))
    sealer = Sealer(epoch_key(1, bytes(range(32)), tag), tag)
    runs = ctx.runs(5)
    limit = 1.5 if ctx.size == 10_000 else None
    seconds = median(lambda: [sealer.seal(MEMORY, key, data) for key, data in ctx.files.items()], runs)
    sealed = {key: sealer.seal(MEMORY, key, data) for key, data in ctx.files.items()}
    ctx.add("seal all", seconds, runs=runs, bytes=sum(map(len, sealed.values())), budget_seconds=limit)
    seconds = median(lambda: [sealer.open(MEMORY, key, data) for key, data in sealed.items()], runs)
    ctx.add("open all", seconds, runs=runs, budget_seconds=limit)


def writes(ctx: Context) -> None:
    """Measure one durable memory or event in a vault of this size, and the disk's part of it."""
    from ipfsmem.memory import Memory

    home = ctx.fresh("writes")
    memory = Memory.create(VAULT_NAME, "encrypted-ipfs", unlock=unlock(), passphrase=False, home=home)
    memory.bundles.import_(ctx.folder)
    memory.close()
    memory = Memory.load(VAULT_NAME, home=home)
    keys = list(ctx.files)
    memory.write_text(keys[-1], changed(ctx.files[keys[-1]], 0))
    count = 60
    disk, own, notes = [], [], []
    for i in range(count):
        key = keys[i * 37 % ctx.size]
        data = changed(ctx.files[key], i + 1)
        started = time.perf_counter()
        fsync_once(home, data)
        disk.append(time.perf_counter() - started)
        started = time.perf_counter()
        memory.write_text(key, data)
        own.append(time.perf_counter() - started)
        started = time.perf_counter()
        memory.note("measured", turn=i)
        notes.append(time.perf_counter() - started)
    one = middle(disk)
    ctx.add("one fsync", one, runs=count, note="append the same text to a file, wait for the disk")
    limit = one + 0.003 if ctx.size == 10_000 else None
    ctx.add(
        "durable write",
        middle(own),
        runs=count,
        budget_seconds=limit,
        note="encrypted mode; the budget is one fsync and 3 ms",
    )
    ctx.add("durable note", middle(notes), runs=count, budget_seconds=limit, note="an event of the timeline")
    ctx.add(
        "list, first time", median(memory.list, 1, warm=False), note="opens every body to read its header"
    )
    ctx.add("list", median(memory.list, 5))
    memory.close()
    memory = Memory.load(VAULT_NAME, home=home)
    note = "after a list of an earlier process: with the headers that it kept"
    ctx.add("list, in the next process", median(memory.list, 1, warm=False), note=note)
    memory.close()
    runs = ctx.runs(9)
    ctx.add(
        "open",
        median(lambda: Memory.load(VAULT_NAME, home=home).close(), runs),
        runs=runs,
        note="in process, with unprotected keys: the passphrase adds 0.2 s of Argon2id",
    )


def join(ctx: Context) -> None:
    """Join two states that each changed one memory in a hundred; half of the changes are equal."""
    from ipfsmem.causal.state import (
        EntryDifference,
        JoinResult,
        State,
        join_changes,
        limit_values,
        location_chooser,
    )
    from ipfsmem.causal.value import LIVE, MAX_VALUES, Loc, Value
    from ipfsmem.ring.authority import BY_ROOT

    def value(i: int) -> Value:
        return Value(
            b=(), body=f"{i:064x}", h=f"{i + 1:016x}", kind=LIVE, loc=Loc("", f"{i:064x}", 900), s="A" * 86
        )

    first, second, third = "0" * 15 + "1", "0" * 15 + "2", "0" * 15 + "3"
    size = ctx.size
    some = max(1, size // 100)
    start = {f"m/memory_{i:06d}": {f"{first}-{i + 1}": value(i)} for i in range(size)}
    mine, theirs = dict(start), dict(start)
    for n in range(some):
        mine[f"m/memory_{n * 50 % size:06d}"] = {f"{second}-{n + 1}": value(size + n)}
        theirs[f"m/memory_{n * 100 % size:06d}"] = {f"{third}-{n + 1}": value(2 * size + n)}
    left = State({first: size, second: some}, mine)
    right = State({first: size, third: some}, theirs)
    choose = location_chooser(lambda loc, body: True, lambda ek: 0)

    def joined() -> JoinResult:
        changes = [
            EntryDifference(name, left.entries.get(name, {}), entry)
            for name, entry in right.entries.items()
            if entry is not left.entries.get(name)
        ]
        changes += [
            EntryDifference(name, entry, {})
            for name, entry in left.entries.items()
            if name not in right.entries
        ]
        return join_changes(
            changes,
            left.ctx,
            right.ctx,
            lambda name: choose,
            lambda entry: limit_values(entry, lambda device: BY_ROOT, MAX_VALUES),
        )

    ctx.add(
        "join of two diverged states",
        median(joined, 5),
        runs=5,
        budget_seconds=0.05 if size == 10_000 else None,
        note="pure: in memory, no signatures; 1 % changed on each side",
    )


def start(ctx: Context) -> None:
    """Measure the time of `--help`."""
    found = program()
    if found is None:
        ctx.skip("ipfsmem --help", "there is no command line yet")
        return
    runs = ctx.runs(9)
    done = median_process(lambda _: [found, "--help"], runs)
    ctx.add(
        "ipfsmem --help",
        done.seconds,
        runs=runs,
        rss_mb=round(done.rss_mb),
        budget_seconds=0.12,
        note="whole process",
    )
    done = median_process(lambda _: [PYTHON, "-c", "pass"], runs)
    ctx.add("python -c pass", done.seconds, runs=runs, note="whole process: the part of Python itself")
