"""Where the time and the bytes of a first run and of a restore go: the bench's answer to "why not less".

Time is sampled inside the measured process: what passes between two samples counts for the innermost frame that is named
here, so work in C counts for who called it, and waiting for threads for who waits. Bytes are counted in what was published.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType

from bench.context import PYTHON, Context
from bench.measure import folder_bytes, process
from bench.process import PASSPHRASE, VAULT_NAME

_LOADING = "loading modules"
_REST = "the rest"
#: Categories of a frame: a suffix or part of its file's path, and its functions (none: all). The first match
#: is used.
_KINDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Argon2id of the passphrase", "ipfsmem/seal/primitives.py", ("argon2id",)),
    ("signatures", "ipfsmem/seal/primitives.py", ("sign", "verify")),
    ("signatures", "ipfsmem/causal/value.py", ("sign_value", "verify_value", "identity")),
    ("signatures", "ipfsmem/device/writing.py", ("sign_entry", "commit")),
    ("signatures", "ipfsmem/sync/join_head.py", ("checked", "_checked")),
    ("secret scan", "ipfsmem/bundle/secrets.py", ()),
    ("compressing", "ipfsmem/seal/compression.py", ()),
    ("sealing and opening", "ipfsmem/seal/objects.py", ()),
    (
        "compressing, secret scan and sealing, in threads",
        "ipfsmem/device/writing.py",
        ("seal_ahead",),
    ),
    ("the database", "ipfsmem/device/database.py", ()),
    ("presence check", "ipfsmem/sync/presence.py", ()),
    ("the provider's files", "/ipfsmem_providers/", ()),
    ("fetching", "ipfsmem/sync/fetch.py", ()),
    ("reading files", "ipfsmem/device/atomic_files.py", ()),
    ("reading files", "ipfsmem/memories/containers.py", ()),
    ("names and headers", "ipfsmem/memories/bundle_tree.py", ()),
    ("names and headers", "/ipfsmem/bundle/", ()),
    ("trees and folders", "ipfsmem/causal/tree.py", ()),
    ("trees and folders", "ipfsmem/device/root_folders.py", ()),
    ("trees and folders", "/ipfsmem/content/", ()),
    ("trees and folders", "ipfsmem/sync/commits.py", ()),
    ("trees and folders", "ipfsmem/sync/sending.py", ()),
    ("entries and values", "/ipfsmem/causal/", ()),
    ("entries and values", "/ipfsmem/device/", ()),
    ("entries and values", "/ipfsmem/memories/", ()),
)
#: Functions that wait for threads.
_PASSED_OVER = "ipfsmem/device/bulk.py"
_EVERY = 0.002


class _Samples:
    """Seconds by category in the main thread of this process."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._last = time.perf_counter()

    def take(self, _: int, frame: FrameType | None) -> None:
        """Signal handler: the time since the last sample belongs to the running frame."""
        now = time.perf_counter()
        self.spent[_kind(frame)] += now - self._last
        self._last = now


def _kind(frame: FrameType | None) -> str:
    found = ""
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if path.startswith("<frozen importlib"):
            return _LOADING
        if not found and _PASSED_OVER not in path:
            found = next(
                (kind for kind, part, names in _KINDS if part in path and (not names or name in names)), ""
            )
        frame = frame.f_back
    return found or _REST


def main(what: str, home: str, *args: str) -> None:
    """Do what `bench.process` does, and print the seconds by category as JSON."""
    samples = _Samples()
    signal.signal(signal.SIGALRM, samples.take)
    signal.setitimer(signal.ITIMER_REAL, _EVERY, _EVERY)
    from bench.process import main as work

    work(what, Path(home), *args)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(json.dumps(samples.spent))


def shares(ctx: Context) -> None:
    """Measure the time by category of a first run and of a restore, whole processes, and the published
    bytes by category."""
    home, stick = ctx.fresh("shares-home"), ctx.fresh("shares-stick")
    _process("bench.process", "init", home, stick)
    _time(ctx, "first run", _process("bench.shares", "first", home, ctx.folder))
    found = _bytes(home, stick)
    whole = sum(found.values())
    for kind, size in found.items():
        ctx.add(
            f"bytes of a first run: {kind}",
            None,
            bytes=size,
            note=f"{size:,} bytes, {size / whole:.0%} of what was published",
        )
    copy = ctx.work / "shares-copy"
    shutil.copytree(stick, copy)
    _time(ctx, "restore", _process("bench.shares", "restore", ctx.fresh("shares-restored"), copy))
    for path in (home, stick, copy, ctx.work / "shares-restored"):
        shutil.rmtree(path)


def _process(module: str, what: str, home: Path, *args: Path) -> tuple[float, dict[str, float]]:
    done = process([PYTHON, "-m", module, what, home, *args], env={"IPFSMEM_CONFIG": os.devnull})
    return done.seconds, json.loads(done.output or b"{}")


def _time(ctx: Context, what: str, found: tuple[float, dict[str, float]]) -> None:
    whole, spent = found
    spent["starting and ending Python"] = whole - sum(spent.values())
    for kind, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        ctx.add(f"time of a {what}: {kind}", seconds, note=f"{seconds / whole:.0%} of one process, sampled")


def _bytes(home: Path, stick: Path) -> dict[str, int]:
    """Return all bytes in the folder `stick` by category."""
    from ipfsmem.content.cid import DAG_PB
    from ipfsmem.memory import Memory
    from ipfsmem.published.live_set import live_set
    from ipfsmem.seal.objects import OVERHEAD, deflate_if_smaller, padded_size
    from ipfsmem.sync.commits import waiting_root

    found: Counter[str] = Counter()
    packed = 0
    with Memory.load(VAULT_NAME, passphrase=PASSPHRASE, home=home) as memory:
        replica = memory.replica
        root = waiting_root(replica)
        assert root is not None
        for name, entry in replica.store.entries():
            for value in entry.values():
                body = replica.store.body(name, value)
                if body is None or value.loc is None:
                    continue
                stream = deflate_if_smaller(body)
                text = len(body)
                if stream is not None and value.loc.size < OVERHEAD + padded_size(4 + len(body)):
                    text = len(stream)
                found["texts, compressed if that saves a size step"] += text
                found["nonces, tags, lengths"] += OVERHEAD + 4
                found["padding that hides sizes"] += value.loc.size - OVERHEAD - 4 - text
                packed += value.loc.size
        for cid in live_set(replica.db, root).structure:
            block = replica.db.block(cid.digest)
            assert block is not None
            kind = "folders" if cid.codec == DAG_PB else "state: hashes, clocks and signatures of values"
            found[kind] += len(block)
            packed += len(block)
    packs = sum(path.stat().st_size for path in stick.glob("packs/*.car"))
    found["CIDs of blocks in the pack, and the root of the ring"] = packs - packed
    found["the pack's index"] = sum(path.stat().st_size for path in stick.glob("packs/*.idx"))
    found["names and pins"] = folder_bytes(stick) - packs - found["the pack's index"]
    return dict(found.most_common())


if __name__ == "__main__":
    main(*sys.argv[1:])
