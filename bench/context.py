"""Shared by the cases of one run: the folder, the corpus, the baseline, and the table."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from bench.corpus import corpus, write_folder
from bench.measure import Row, median, process, read_and_hash

PYTHON = sys.executable


class Context:
    """One size of one run."""

    #: A Python with InitRunner's store, and the file of the MCP reference server, if named.
    initrunner: Path | None = None
    mcp_memory: Path | None = None

    def __init__(self, size: int, work: Path, *, quick: bool, say: Callable[[str], None]) -> None:
        self.size = size
        self.work = work / str(size)
        self.quick = quick
        self.say = say
        self.rows: list[Row] = []
        self.files = corpus(size)
        self.folder = write_folder(self.files, self.work / "corpus" / "memory")
        self.bytes = sum(map(len, self.files.values()))
        self.base = median(lambda: read_and_hash(self.folder), self.runs(7))
        self.add(
            "read and hash",
            self.base,
            runs=self.runs(7),
            bytes=self.bytes,
            note="every file read, SHA-256; the baseline",
        )

    def runs(self, most: int) -> int:
        """Return the number of repetitions: fewer for slow cases."""
        if self.quick:
            most = min(most, 3)
        return most if self.size <= 10_000 else min(most, 3)

    def add(self, name: str, seconds: float | None, **more: object) -> Row:
        """Add a row, with its ratio to the baseline."""
        row = Row(name, self.size, seconds, seconds / self.base if seconds is not None else None, **more)  # type: ignore[arg-type]
        self.rows.append(row)
        self.say(
            f"{self.size:>7}  {name}: " + (f"{seconds * 1000:.1f} ms" if seconds is not None else row.note)
        )
        return row

    def skip(self, name: str, why: str) -> None:
        """Record that something could not be measured here."""
        self.add(name, None, note=f"skipped: {why}")

    def fresh(self, name: str) -> Path:
        """Return an empty directory."""
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path


@functools.cache
def program() -> str | None:
    """Return the installed `ipfsmem` command, None if it does not start."""
    found = shutil.which("ipfsmem", path=str(Path(PYTHON).parent)) or shutil.which("ipfsmem")
    if found is None:
        return None
    try:
        process([found, "--help"])
    except (RuntimeError, OSError):
        return None
    return found


@functools.cache
def knows(command: str) -> str | None:
    """Return the installed `ipfsmem` if it has this subcommand."""
    found = program()
    if found is None:
        return None
    try:
        process([found, command, "--help"])
    except (RuntimeError, OSError):
        return None
    return found
