"""How the suite runs: effort, cores, and where it writes. See docs/internals/suite.md.

Whole directories run on all cores, named files and single tests in this process (so `--pdb`, `-s` and
prints work); `-n` overrides this. Tests write to RAM where the system has a folder for that, else to the
temporary folder; `--basetemp` overrides this. The user's home is never used: the tests get an empty one."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import at_length, quick
from tests.support import database_opens, effort, passed_before

if TYPE_CHECKING:
    from tests.support.device_lab import Lab

effort.load()
#: Otherwise every worker and every program that the tests start would compile all tests and the package
#: again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
#: No collected object is freed before the first test, and garbage collections would take a quarter of the
#: time.
gc.disable()

#: Days are those of the machine's time zone; expectations of tests hold in any.
os.environ["TZ"] = "UTC"
if hasattr(time, "tzset"):
    time.tzset()

#: Set by a hook or a shell that names a repository, which git programs of the tests would change.
for _name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[_name]

#: Linux keeps these files in memory. A container may limit it to 64 MiB, which is too little.
_RAM = Path("/dev/shm")
_RAM_BYTES = 1 << 30
#: Settings folders of agent programs of the user who runs the tests.
_PROGRAMS = (
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "VSCODE_APPDATA",
    "VSCODE_PORTABLE", "FLATPAK_XDG_CONFIG_HOME",
)  # fmt: skip
#: More workers only compete for the disk.
_WORKERS = 8
#: Recursion limit of a program that imports the package: see `ipfsmem.wallet.signers`.
_DEPTH = sys.getrecursionlimit()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run whole directories on all cores, unless the command line sets a number; needs pytest-xdist."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    alone = option.usepdb or option.trace or option.collectonly or option.capture == "no"
    if option.numprocesses is None and not option.tx and not alone and any(map(os.path.isdir, config.args)):
        # One more than the cores: a worker waits an eighth of the time for a server, a process or a lock.
        option.numprocesses = min(config.hook.pytest_xdist_auto_num_workers(config=config) + 1, _WORKERS)
    if option.numprocesses and option.dist == "no":
        option.dist = "loadgroup"  # tests that share a server or a program run in one worker


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Distribute tests in batches."""
    from tests.support.dealing import Handfuls

    return Handfuls(config, log) if config.option.dist == "loadgroup" else None


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary folders into RAM, where pytest makes and removes them as elsewhere; refuse to open
    databases in the package."""
    database_opens.refuse()
    if not hasattr(config, "workerinput") and _is_roomy(_RAM):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_RAM))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m quick` reads no file without quick tests."""
    if config.option.markexpr != "quick" or not collection_path.match("test_*.py"):
        return None
    return None if quick.is_quick(collection_path.relative_to(config.rootpath).as_posix()) else True


class _FromAPlaceOfItsOwn(pytest.Dir):
    """A folder in which each worker starts reading at another file, so that compiled modules are shared."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        found = list(super().collect())
        worker = self.config.workerinput  # type: ignore[attr-defined]
        at = len(found) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        yield from found[at:] + found[:at]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Give the workers the same order of tests, whatever their order of reading."""
    return (
        _FromAPlaceOfItsOwn.from_parent(parent, path=path) if hasattr(parent.config, "workerinput") else None
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
    """Make no items of the long tests in a short run: with their parameters these are a quarter of all."""
    is_left_out = at_length.is_short_run(collector.config.args) and at_length.is_long(
        f"{collector.nodeid}::{name}"
    )
    return [] if is_left_out else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort by file; select the quick subset: tests/quick.py without the tests that are marked slow."""
    items.sort(key=lambda item: item.path)
    for item in items:
        if quick.is_quick(item.nodeid) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)
    if known := os.environ.get(passed_before.SKIP):
        passed = passed_before.read(Path(known))
        items[:] = [item for item in items if item.nodeid not in passed or passed_before.repeats(item)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record passed tests in the controller, if the caller names a file."""
    known = os.environ.get(passed_before.RECORD)
    if known and report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(known).open("a", encoding="utf-8") as file:
            file.write(report.nodeid + "\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report what a short run omitted."""
    if at_length.is_short_run(config.args) and config.option.markexpr != "quick":
        terminalreporter.write_line(
            f"long tests not run: {len(at_length.FUNCTIONS)} functions of tests/length_tests.txt; `HYPOTHESIS_PROFILE=ci pytest` "
            "runs them, as .ci/run does, and so does the name of their file"
        )


def pytest_collection_finish() -> None:
    """Exclude the 300,000 objects of imported tests from garbage collection, which some tests trigger
    often (0.2 seconds each)."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_runtest_call() -> None:
    """Reset the recursion limit. A wallet library raises it beyond the C stack when it is imported, and a
    test of deep JSON would then end the process."""
    sys.setrecursionlimit(_DEPTH)


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty home and a temporary folder below the run's own, for the tests and their child processes."""
    home, temporary = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("tmp")
    for folder in (temporary, *temporary.parents):
        if folder.stat().st_mode & 0o011 == 0o011:
            break
        folder.chmod(folder.stat().st_mode | 0o011)  # some tests continue as another user
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("XDG_") or name in _PROGRAMS]:
            patch.delenv(name)
        for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
            patch.setenv(name, str(home))
        for name in ("TMPDIR", "TEMP", "TMP"):
            patch.setenv(name, str(temporary))
        runtime = tmp_path_factory.mktemp("runtime")
        runtime.chmod(0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        patch.setenv("IPFSMEM_EMBEDDINGS", "off")  # a model's hits depend on when its vectors are ready
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _passphrases_cost_little() -> Iterator[None]:
    """Make passphrases cheap, because they protect nothing in tests. `at_full_cost` is for tests of the
    cost itself."""
    from tests.support import passphrase_cost

    passphrase_cost.make_cheap()
    yield
    passphrase_cost.make_full()


@pytest.fixture(scope="session", autouse=True)
def _a_wallet_signs_a_text_once() -> Iterator[None]:
    """Cache signatures: each curve operation takes 10 to 20 ms without coincurve, and the result is always
    the same (RFC 6979). Tests of the operations import them by name."""
    from ipfsmem.wallet import secp256k1

    with pytest.MonkeyPatch.context() as patch:
        for step in (secp256k1.account_of, secp256k1.sign_hash, secp256k1.recover_account):
            patch.setattr(secp256k1, step.__name__, functools.cache(step))
        yield


@pytest.fixture(scope="session", autouse=True)
def _control_c_is_heard() -> Iterator[None]:
    """Restore SIGINT, which a parent may have ignored (`nohup`, `command &` in a script) and child
    processes inherit."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def _three_devices() -> None:
    """Make the vaults that `lab.three` copies before any test has patched anything."""
    from tests.support import device_lab

    device_lab.prepare_lab(device_lab.Lab, device_lab.Lab._three)


@pytest.fixture
def lab(tmp_path: Path, _three_devices: None) -> Iterator[Lab]:
    """Devices on one simulated provider; closes their files."""
    from tests.support.device_lab import lab_in

    with lab_in(tmp_path) as made:
        yield made


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten providers' pauses between attempts to a hundredth, for tests of the outcome."""
    from tests.support import pauses

    pauses.shorten(monkeypatch)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory for this test alone."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))


def _is_roomy(folder: Path) -> bool:
    """Return whether the suite has enough room there."""
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= _RAM_BYTES
    except OSError:
        return False
