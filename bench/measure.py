"""Timing: medians after a warm-up, whole processes with their peak memory, and the rows of the table."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec


class Row(msgspec.Struct, omit_defaults=True):
    """One line of the table; `seconds` is a median, `ratio` is relative to reading and hashing the same
    corpus."""

    name: str
    size: int
    seconds: float | None = None
    ratio: float | None = None
    runs: int = 1
    bytes: int | None = None
    blocks: int | None = None
    requests: int | None = None
    rss_mb: float | None = None
    #: Maximum of `seconds`, `bytes` or `rss_mb`.
    budget_seconds: float | None = None
    budget_ratio_to: str | None = None
    budget_bytes: int | None = None
    budget_rss_mb: float | None = None
    note: str = ""

    def verdicts(self) -> list[bool]:
        """Return whether each budget of this row holds."""
        pairs = (
            (self.seconds, self.budget_seconds),
            (self.bytes, self.budget_bytes),
            (self.rss_mb, self.budget_rss_mb),
        )
        return [got <= limit for got, limit in pairs if got is not None and limit is not None]


class Done(msgspec.Struct):
    """A finished process."""

    seconds: float
    rss_mb: float
    output: bytes
    #: Processor seconds of the process and its children; less disturbed by other programs than `seconds`.
    cpu: float = 0.0


def median(work: Callable[[], object], runs: int, *, warm: bool = True) -> float:
    """Return the median seconds of `runs` calls, after one that is not counted."""
    if warm:
        work()
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def least_cpu(work: Callable[[], object], runs: int = 7) -> float:
    """Return the processor seconds of the fastest of `runs` calls, after one that is not counted: for work
    so short that other programs would disturb it."""
    work()
    times = []
    for _ in range(runs):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


@functools.cache
def _launcher() -> subprocess.Popen[str]:
    """Start it on first use, which must be early: see launcher.py."""
    script = Path(__file__).with_name("launcher.py")
    # Compiled modules are kept, as for an installed package, but not in the source tree.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "ipfsmem-bench-pycache")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )


def process(
    command: Sequence[str | Path], *, env: dict[str, str] | None = None, cwd: Path | None = None
) -> Done:
    """Run a program to its end. Raises RuntimeError with its last output if it fails."""
    launcher = _launcher()
    assert launcher.stdin is not None and launcher.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        asked = {
            "command": [str(part) for part in command],
            "env": env or {},
            "cwd": str(cwd) if cwd else None,
            "out": str(out),
            "err": str(err),
        }
        print(json.dumps(asked), file=launcher.stdin, flush=True)
        seconds, peak, cpu, code = json.loads(launcher.stdout.readline())
        if code:
            words = err.read_bytes()[-600:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(map(str, command[:4]))} ended with {code}: {words}")
        return Done(seconds, peak / 1024, out.read_bytes(), cpu)


def median_process(command: Callable[[int], Sequence[str | Path]], runs: int, **options: object) -> Done:
    """Return the median of several runs of a program; `command` gets the number of the run."""
    done = [process(command(i), **options) for i in range(runs)]  # type: ignore[arg-type]
    done.sort(key=lambda one: one.seconds)
    best = done[len(done) // 2]
    return Done(statistics.median(one.seconds for one in done), max(one.rss_mb for one in done), best.output)


def read_and_hash(folder: Path) -> int:
    """Read and hash every file of a folder: the minimum for any program. Return the bytes read."""
    total = 0
    for entry in sorted(os.scandir(folder), key=lambda found: found.name):
        with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - the plainest way there is
            data = file.read()
        hashlib.sha256(data).digest()
        total += len(data)
    return total


def fsync_once(folder: Path, data: bytes) -> None:
    """Append bytes to a file and flush it: the minimum of a durable write."""
    fd = os.open(folder / "fsync.probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
