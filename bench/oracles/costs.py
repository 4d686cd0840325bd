"""Costs: calls, functions, modules and SQL statements of everyday work; modules and time of each command; lines of each room."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.corpus import corpus, write_folder
from bench.oracles.shapes import leaves
from ipfsmem.cli.app import group
from ipfsmem.memory import Memory

ROOT = Path(__file__).parents[2]
_OURS = str(ROOT / "ipfsmem") + "/"
#: Numbers of memories for `work` and `times`.
SIZES = (60, 10_000)
#: Runs of each measurement; the least is recorded.
RUNS = 5
#: Runs a command, then prints its exit code and the loaded modules as the last line on stderr.
_LOADED = """
import json, sys
from ipfsmem.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(n for n in sys.modules if n.startswith("ipfsmem"))]), file=sys.stderr)
"""
#: Commands as agents call them, on a sealed memory.
EVERYDAY = (
    ("read", "note_00"),
    ("write", "note_01", "--body", "short"),
    ("timeline", "add", "said"),
    ("list",),
    ("context",),
    ("recall", "direct tone"),
    ("forget", "note_02"),
    ("status",),
    ("sync",),
)


@contextmanager
def _memory(size: int) -> Iterator[Memory]:
    """A sealed memory on a new device with this many texts and one session, published to a folder."""
    with tempfile.TemporaryDirectory() as base:
        _filled(Path(base), size)
        with Memory.load("default", home=Path(base) / "home") as memory:
            yield memory


def _filled(base: Path, size: int) -> None:
    stick = base / "stick"
    stick.mkdir()
    with Memory.create(
        "default", "encrypted-ipfs", provider=str(stick), passphrase=False, home=base / "home"
    ) as memory:
        for n in range(min(size, 60)):
            text = f"Text {n} about a direct tone, music and ships."
            memory.write(f"note_{n:02}", text, type="user", description="Useful when work is measured.")
        if size > 60:
            memory.bundles.import_(write_folder(corpus(size - 60), base / "corpus"))
            shutil.rmtree(base / "corpus")
        memory.sessions.add(
            "chat", [{"role": "user", "content": "Hello music"}, {"role": "assistant", "content": "Yes."}]
        )
        memory.recall("music")
        asyncio.run(memory.sync())


def _counted(memory: Memory, work: Callable[[], object]) -> dict[str, int]:
    """Count the calls of the package's functions during `work`, and the SQL statements."""
    calls: Counter[tuple[str, str]] = Counter()
    statements: list[str] = []

    def entered(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            calls[frame.f_code.co_filename, frame.f_code.co_qualname] += 1

    connection = memory.replica.db.connection
    connection.set_trace_callback(statements.append)
    sys.setprofile(entered)
    try:
        work()
    finally:
        sys.setprofile(None)
        connection.set_trace_callback(None)
    return {
        "calls": sum(calls.values()),
        "functions": len(calls),
        "modules": len({file for file, _ in calls}),
        "statements": len(statements),
    }


def work() -> dict[str, Any]:
    """Costs of one warm call of each everyday method, the least of `RUNS`. Ids are random, so a figure varies by a few percent."""
    found: dict[str, Any] = {}
    for size in SIZES:
        with _memory(size) as memory:
            for name, call in _everyday(memory).items():
                call()
                runs = [_counted(memory, call) for _ in range(RUNS)]
                found[f"{name}, {size:,} memories"] = {
                    what: min(run[what] for run in runs) for what in runs[0]
                }
    return found


def _everyday(memory: Memory) -> dict[str, Callable[[], object]]:
    made = count()

    def published() -> None:
        asyncio.run(memory.sync())

    def write_and_publish() -> None:
        memory.write("note_05", f"Published as number {next(made)}.")
        published()

    return {
        "write": lambda: memory.write("note_03", f"Another text {next(made)} about music"),
        "write a new one": lambda: memory.write(f"new_{next(made)}", "A new text about music"),
        "read": lambda: memory.read("note_04"),
        "recall": lambda: memory.recall("music and tone"),
        "list": memory.list,
        "context": memory.context,
        "note": lambda: memory.note("said", text="x"),
        "forget": lambda: memory.forget(f"note_{10 + next(made)}"),
        "facts.add": lambda: memory.facts.add(f"User likes the number {next(made)}"),
        "sessions.add": lambda: memory.sessions.add("chat", [{"role": "user", "content": "x"}]),
        "sessions.resume": lambda: memory.sessions.resume("chat"),
        "write and sync": write_and_publish,
        "sync of nothing": published,
    }


def _environment(base: Path) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("IPFSMEM_")}
    return plain | {"HOME": str(base), "XDG_CONFIG_HOME": str(base), "IPFSMEM_EMBEDDINGS": "off"}


def modules() -> dict[str, int]:
    """Number of the package's modules that each command loads for `--help`, and each everyday command for its work."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        _filled(base, 60)
        calls = [(*words.split(), "--help") for words, _ in leaves(group)] + list(EVERYDAY)
        for call in calls:
            command = [sys.executable, "-c", _LOADED, "--home", str(base / "home"), *call]
            done = subprocess.run(command, capture_output=True, text=True, env=_environment(base), check=True)
            code, loaded = json.loads(done.stderr.splitlines()[-1])
            assert not code, (call, done.stderr)
            found[" ".join(call)] = len(loaded)
    return found


def times() -> dict[str, Any]:
    """Milliseconds of processor and wall time, the least of `RUNS`: of `--help` of each command, and of the everyday commands."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        for words, _ in leaves(group):
            found[f"{words} --help"] = _timed(base, (*words.split(), "--help"))
        for size in SIZES:
            home = base / str(size)
            home.mkdir()
            _filled(home, size)
            for call in EVERYDAY:
                found[f"{' '.join(call)}, {size:,} memories"] = _timed(home, call)
    return found


def _timed(base: Path, call: tuple[str, ...]) -> dict[str, float]:
    command = [sys.executable, "-m", "ipfsmem", "--home", str(base / "home"), *call]
    processor, wall = [], []
    for _ in range(RUNS):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        subprocess.run(command, capture_output=True, env=_environment(base), stdin=subprocess.DEVNULL)
        wall.append(perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"processor": round(min(processor) * 1000, 1), "wall": round(min(wall) * 1000, 1)}


def lines() -> dict[str, Any]:
    """Files and lines of each room, by file type."""
    kept = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Counter[str]] = {}
    for name in kept.stdout.split("\0"):
        path = ROOT / name
        if not name or path.suffix not in (".py", ".ts", ".md") or not path.is_file():
            continue
        parts = name.split("/")
        room = "/".join(parts[:2]) if len(parts) > 2 else parts[0] if len(parts) > 1 else "."
        here = found.setdefault(f"{room} {path.suffix}", Counter())
        here["files"] += 1
        here["lines"] += path.read_text("utf-8").count("\n")
    return {room: dict(found[room]) for room in sorted(found)}
