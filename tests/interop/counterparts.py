"""Programs that are not ours, built or installed once into a cache, for tests that compare with them.

A counterpart that cannot be had skips the test with the reason; with IPFSMEM_REQUIRE_COUNTERPARTS=1 (as in CI) it fails
the test instead. The cache is IPFSMEM_TEST_CACHE, or `ipfsmem-tests` in the user's cache directory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

HERE = Path(__file__).parent


def missing(reason: str) -> NoReturn:
    """Skip the running test because of a missing counterpart, or fail it where they are required."""
    if os.environ.get("IPFSMEM_REQUIRE_COUNTERPARTS") == "1":
        pytest.fail(f"counterpart required: {reason}", pytrace=False)
    pytest.skip(reason)


def need_program(name: str) -> str:
    """Path of an installed program, or the test is skipped (or fails)."""
    found = shutil.which(name)
    if found is None:
        missing(f"{name} is not installed")
    return found


def cache_dir() -> Path:
    """Where built counterparts are kept between runs."""
    given = os.environ.get("IPFSMEM_TEST_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(given) if given else base / "ipfsmem-tests"
    path.mkdir(parents=True, exist_ok=True)
    return path


def content_key(files: Iterable[Path]) -> str:
    """Sixteen hex digits that change when a file does."""
    digest = hashlib.sha256()
    for path in sorted(files):
        data = path.read_bytes()
        digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def cached(name: str, key: str, make: Callable[[Path], None], base: Path | None = None) -> Path:
    """The directory `<base>/<name>-<key>`, made by `make(empty directory)` when it is not there.

    It appears whole or not at all, so test runs side by side do not disturb each other.
    """
    base = base or cache_dir()
    target = base / f"{name}-{key}"
    if target.is_dir():
        return target
    building = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=base))
    try:
        make(building)
        building.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def run(command: Sequence[str | Path], *, cwd: Path | None = None, timeout: float = 600) -> str:
    """Standard output of a program, stripped. AssertionError with its last words when it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, timeout=timeout, check=False
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace")[-2000:]
        raise AssertionError(f"{Path(command[0]).name} failed with {done.returncode}: {words}")
    return done.stdout.decode().strip()


@functools.cache
def _build(kind: str) -> Path | str:
    """The directory of a counterpart, or why there is none; tried once a run."""
    try:
        return _BUILDERS[kind]() if kind in _BUILDERS else _npm(kind)
    except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
        return f"{kind} could not be built: {error}"


def _go() -> Path:
    source = HERE / "gopeer"
    files = [*source.glob("*.go"), source / "go.mod", source / "go.sum"]

    def make(target: Path) -> None:
        run(["go", "build", "-o", target / "gopeer", "."], cwd=source)

    return cached("gopeer", content_key(files), make)


def _npm(folder: str) -> Path:
    source = HERE / folder
    lock = [source / "package.json", source / "package-lock.json"]

    def install(target: Path) -> None:
        for path in lock:
            shutil.copy(path, target)
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=target)

    modules = cached(folder, content_key(lock), install)
    scripts = sorted(source.glob("*.mjs"))

    def copy(target: Path) -> None:
        for path in scripts:
            shutil.copy(path, target)

    # Below the installed modules, where Node looks for them.
    return cached("scripts", content_key(scripts), copy, modules)


_BUILDERS: dict[str, Callable[[], Path]] = {"gopeer": _go}


def gopeer(*args: str | Path) -> str:
    """Run a command of the Go counterpart (tests/interop/gopeer); what it prints."""
    return run([gopeer_program(), *args])


def gopeer_program() -> Path:
    """The built Go counterpart, for tests that keep it running."""
    need_program("go")
    built = _build("gopeer")
    if isinstance(built, str):
        missing(built)
    return built / "gopeer"


def node(script: str, *args: str | Path) -> str:
    """Run a script of the JavaScript counterpart (tests/interop/node); what it prints."""
    return run([need_program("node"), npm_folder("node") / script, *args])


def npm_folder(folder: str) -> Path:
    """Where the scripts of tests/interop/<folder> lie, with the packages of its lock file installed above them."""
    need_program("npm")
    built = _build(folder)
    if isinstance(built, str):
        missing(built)
    return built


@contextlib.contextmanager
def process(command: Sequence[str | Path]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The first line that a program prints, usually a URL, and its process; it is ended afterwards."""
    started = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        line = started.stdout.readline().strip()
        assert line, f"{Path(command[0]).name} ended without a word"
        yield line, started
    finally:
        started.terminate()
        started.wait(10)


@contextlib.contextmanager
def server(command: Sequence[str | Path]) -> Iterator[str]:
    """The same for who needs the line alone."""
    with process(command) as (line, _):
        yield line


def after(direction: str, size: int, work: Callable[[], object]) -> Callable[[str, int], None]:
    """A progress hook that does `work` once, when so many bytes have gone that way."""
    passed = [0]

    def progress(way: str, count: int) -> None:
        before = passed[0]
        passed[0] += count if way == direction else 0
        if before < size <= passed[0]:
            work()

    return progress
