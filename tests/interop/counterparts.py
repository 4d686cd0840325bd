"""Third-party programs, built or installed once into a cache, for comparison tests.

With IPFSMEM_REQUIRE_COUNTERPARTS=1 (as in CI) missing ones are built with Go and npm, and an unavailable
one fails the test. Otherwise only earlier builds are used, and the test is skipped with the reason. The
cache is IPFSMEM_TEST_CACHE, or `.cache/counterparts` in the checkout; Go and npm store nothing elsewhere."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from ipfsmem.device.lock import file_lock
from ipfsmem.errors import LockedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "web"
#: The user's home, for the registry settings of Go and npm: the tests run with an empty home.
_HOME = Path.home()


def missing(reason: str) -> NoReturn:
    """Skip the running test because of a missing counterpart, or fail it where they are required."""
    if required():
        pytest.fail(f"counterpart required: {reason}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def required() -> bool:
    """Return whether missing counterparts are built, and fail their tests."""
    return os.environ.get("IPFSMEM_REQUIRE_COUNTERPARTS") == "1"


def need_program(name: str) -> str:
    """Return the path of an installed program; skip (or fail) the test without it."""
    found = shutil.which(name)
    if found is None:
        missing(f"{name} is not installed")
    return found


def cache_dir() -> Path:
    """Return the folder of built counterparts."""
    given = os.environ.get("IPFSMEM_TEST_CACHE")
    return Path(given) if given else HERE.parents[1] / ".cache" / "counterparts"


def content_key(files: Iterable[Path]) -> str:
    """Return sixteen hex digits that change with the content of any file."""
    digest = hashlib.sha256()
    for path in sorted(files):
        data = path.read_bytes()
        digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def cached(name: str, key: str, make: Callable[[Path], None], base: Path | None = None) -> Path:
    """Return the directory `<base>/<name>-<key>`, made by `make(empty directory)` if missing.

    It is created completely or not at all. Of several workers one creates it while the others wait."""
    base = base or cache_dir()
    base.mkdir(parents=True, exist_ok=True)
    target = base / f"{name}-{key}"
    with file_lock(base / f".{name}.lock", wait=900):
        if target.is_dir():
            return target
        building = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=base))
        try:
            make(building)
            building.rename(target)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return target


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    timeout: float = 600,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return the stripped standard output of a program. AssertionError with its last output on failure."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, timeout=timeout, check=False, env=env
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace")[-2000:]
        raise AssertionError(f"{Path(command[0]).name} failed with {done.returncode}: {words}")
    return done.stdout.decode().strip()


@functools.cache
def _build(kind: str) -> Path | str:
    """Return the directory of a counterpart, or the reason why there is none; tried once per run."""
    try:
        return (
            _go(kind)
            if kind in ("gopeer", "rclone")
            else _web()
            if kind == "web"
            else _page()
            if kind == "page"
            else _npm(kind)
        )
    except (AssertionError, OSError, LockedError, subprocess.TimeoutExpired) as error:
        return f"{kind} could not be built: {error}"


def cached_where_asked(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """Return a directory of the common cache, created only where counterparts are requested."""
    if not required() and not (cache_dir() / f"{name}-{key}").is_dir():
        raise AssertionError(
            "nobody asked for it (IPFSMEM_REQUIRE_COUNTERPARTS=1 builds it and runs these tests)"
        )
    return cached(name, key, make)


@contextlib.contextmanager
def _builders() -> Iterator[dict[str, str]]:
    """Return the environment of Go and npm: their caches are in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix=".builders-", dir=cache_dir()) as folder:
        own = {
            "HOME": folder, "TMPDIR": folder, "npm_config_cache": f"{folder}/npm",
            "GOPATH": f"{folder}/go", "GOMODCACHE": f"{folder}/go/modules", "GOCACHE": f"{folder}/go/builds",
            "GOFLAGS": "-buildvcs=false -modcacherw",
        }  # fmt: skip
        for variable, file in (("GOENV", ".config/go/env"), ("NPM_CONFIG_USERCONFIG", ".npmrc")):
            if variable not in os.environ and os.path.exists(_HOME / file):
                own[variable] = str(_HOME / file)
        yield {**os.environ, **own}


def _go(name: str) -> Path:
    source = HERE / name
    files = [*source.glob("*.go"), source / "go.mod", source / "go.sum"]

    def make(target: Path) -> None:
        with _builders() as env:
            run(["go", "build", "-o", target / name, "."], cwd=source, env=env, timeout=1200)

    return cached_where_asked(name, content_key(files), make)


def _modules(name: str, source: Path) -> Path:
    """Return a directory with the packages of a lock file."""
    lock = [source / "package.json", source / "package-lock.json"]

    def install(target: Path) -> None:
        for path in lock:
            shutil.copy(path, target)
        with _builders() as env:
            run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=target, env=env)

    return cached_where_asked(name, content_key(lock), install)


def _page() -> Path:
    """Build the page of `ipfsmem ui` as a wheel's build does."""
    sources = [path for path in (WEB / "src").rglob("*") if path.is_file()]
    sources += [WEB / name for name in ("package.json", "tsconfig.json")]
    sources += [
        *WEB.glob("*.html"),
        *WEB.glob("vite.*.config.ts"),
        WEB / "icon.svg",
        WEB / "service_worker.js",
    ]
    modules = _modules("web", WEB)

    def build(target: Path) -> None:
        work = target / "web"
        for path in sources:
            copy = work / path.relative_to(WEB)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        (work / "node_modules").symlink_to(modules / "node_modules")
        with _builders() as env:
            run(["npm", "run", "page"], cwd=work, env=env)
        shutil.rmtree(work)

    return cached_where_asked("page", content_key(sources), build) / "ipfsmem" / "page"


def _web() -> Path:
    """Build the browser client with its tests: types checked, modules for Node and browsers."""
    sources = [path for folder in ("src", "tests") for path in (WEB / folder).rglob("*.ts")]
    sources += [*WEB.glob("*.ts"), WEB / "tsconfig.json"]
    modules = _modules("web", WEB)

    def build(target: Path) -> None:
        for path in sources:
            copy = target / path.relative_to(WEB)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        with _builders() as env:
            run([modules / "node_modules/.bin/tsc", "--noEmit"], cwd=target, env=env)
            for config in ("vite.vectors.config.ts", "vite.config.ts"):
                run([modules / "node_modules/.bin/vite", "build", "--config", config], cwd=target, env=env)

    return cached("built", content_key(sources), build, modules) / "build" / "vectors"


def _npm(folder: str) -> Path:
    source = HERE / folder
    modules = _modules(folder, source)
    scripts = sorted(source.glob("*.mjs"))

    def copy(target: Path) -> None:
        for path in scripts:
            shutil.copy(path, target)

    # Below the installed modules, where Node finds them.
    return cached("scripts", content_key(scripts), copy, modules)


def gopeer(*args: str | Path) -> str:
    """Run a command of the Go counterpart (tests/interop/gopeer); return its output."""
    return run([gopeer_program(), *args])


def gopeer_program() -> Path:
    """Return the built Go counterpart, for tests that keep it running."""
    return _go_program("gopeer")


def rclone_program() -> Path:
    """The current rclone, built from its Go module (tests/interop/rclone)."""
    return _go_program("rclone")


def _go_program(name: str) -> Path:
    need_program("go")
    built = _build(name)
    if isinstance(built, str):
        missing(built)
    return built / name


def node(script: str, *args: str | Path) -> str:
    """Run a script of the JavaScript counterpart (tests/interop/node); return its output."""
    return run([need_program("node"), npm_folder("node") / script, *args])


def built_web() -> Path:
    """Return the folder of the browser client's built tests; the library is next to it, in `lib`."""
    need_program("npm")
    built = _build("web")
    if isinstance(built, str):
        missing(built)
    return built


def need_web() -> None:
    """Skip (or fail) the test before any setup if neither the browser client nor the page is built."""
    need_program("npm")
    built = [_build(kind) for kind in ("web", "page")]
    if all(isinstance(one, str) for one in built):
        missing(str(built[0]))


def of_web_packages(path: str) -> str:
    """Return a file of the packages that the browser client is built and tested with."""
    need_program("npm")
    try:
        return (_modules("web", WEB) / "node_modules" / path).read_text("utf-8")
    except (AssertionError, OSError, LockedError, subprocess.TimeoutExpired) as error:
        missing(f"the packages of web/ are not here: {error}")


def built_page() -> Path:
    """Return the folder of the built page of `ipfsmem ui`."""
    need_program("npm")
    built = _build("page")
    if isinstance(built, str):
        missing(built)
    return built


def npm_folder(folder: str) -> Path:
    """Return the folder of the scripts of tests/interop/<folder>, with the packages of its lock file
    installed above them."""
    need_program("npm")
    built = _build(folder)
    if isinstance(built, str):
        missing(built)
    return built


def npm_packages(folder: str) -> Path:
    """Return the `node_modules` of the lock file in tests/interop/<folder>."""
    return npm_folder(folder).parent / "node_modules"


@contextlib.contextmanager
def process(command: Sequence[str | Path]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the first line that a program prints, usually a URL, and its process; end it afterwards."""
    started = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        line = started.stdout.readline().strip()
        assert line, f"{Path(command[0]).name} ended without a word"
        yield line, started
    finally:
        started.terminate()
        started.wait(60)


@contextlib.contextmanager
def server(command: Sequence[str | Path]) -> Iterator[str]:
    """Yield only the first line that a program prints."""
    with process(command) as (line, _):
        yield line


def after(direction: str, size: int, work: Callable[[], object]) -> Callable[[str, int], None]:
    """Return a progress hook that calls `work` once, after so many bytes in that direction."""
    passed = [0]

    def progress(way: str, count: int) -> None:
        before = passed[0]
        passed[0] += count if way == direction else 0
        if before < size <= passed[0]:
            work()

    return progress


@contextlib.contextmanager
def meanwhile(seconds: float, work: Callable[[], object]) -> Iterator[None]:
    """Call `work` after so many seconds, during the block; it has returned when the block ends."""
    timer = threading.Timer(seconds, work)
    timer.start()
    try:
        yield
    finally:
        timer.join()
