"""How the suite runs: effort, cores, where it writes. See docs/internals/suite.md.

Whole directories run on all cores, named files and single tests in this process (so `--pdb`, `-s` and prints work as
ever); `-n` says otherwise. What the tests write lies in RAM where the system has a folder for that, else in the
temporary folder; `--basetemp` says otherwise. Nothing is written to the user's home: the tests get an empty one.
"""

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
#: Else every worker would compile all tests and the package again, and so would each of the programs that the tests start.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
#: Nothing of what is collected goes again before the first test; to look for garbage in it took a quarter of the time.
gc.disable()

#: Days are those of the machine's time zone; what a test says of one holds everywhere.
os.environ["TZ"] = "UTC"
if hasattr(time, "tzset"):
    time.tzset()

#: Of a hook or a shell that names a repository; git programs of the tests would change that one.
for _name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[_name]

#: Linux keeps these files in memory. A container may give it 64 MiB, which is too little.
_RAM = Path("/dev/shm")
_RAM_BYTES = 1 << 30
#: Where agents' programs of whoever runs the tests keep their settings.
_PROGRAMS = (
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "VSCODE_APPDATA",
    "VSCODE_PORTABLE", "FLATPAK_XDG_CONFIG_HOME",
)  # fmt: skip
#: More workers than this only share the disk.
_WORKERS = 8
#: How deep calls may go in a program that imports the package: see `ipfsmem.wallet.signers`.
_DEPTH = sys.getrecursionlimit()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Whole directories on all cores, unless the command line says how many; without pytest-xdist as ever."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    alone = option.usepdb or option.trace or option.collectonly or option.capture == "no"
    if option.numprocesses is None and not option.tx and not alone and any(map(os.path.isdir, config.args)):
        # One more than there are cores: an eighth of the time a worker waits, for a server, a process or a lock.
        option.numprocesses = min(config.hook.pytest_xdist_auto_num_workers(config=config) + 1, _WORKERS)
    if option.numprocesses and option.dist == "no":
        option.dist = "loadgroup"  # tests that share a server or a program go to one worker


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A handful of tests at a time."""
    from tests.support.dealing import Handfuls

    return Handfuls(config, log) if config.option.dist == "loadgroup" else None


def pytest_configure(config: pytest.Config) -> None:
    """Temporary folders in RAM, which pytest makes and removes as it does elsewhere; no open of a database by the package."""
    database_opens.refuse()
    if not hasattr(config, "workerinput") and _is_roomy(_RAM):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_RAM))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m quick` reads no file that has none of it."""
    if config.option.markexpr != "quick" or not collection_path.match("test_*.py"):
        return None
    return None if quick.is_quick(collection_path.relative_to(config.rootpath).as_posix()) else True


class _FromAPlaceOfItsOwn(pytest.Dir):
    """A folder in which each worker begins to read elsewhere: what one has compiled, the others need not compile again."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        found = list(super().collect())
        worker = self.config.workerinput  # type: ignore[attr-defined]
        at = len(found) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        yield from found[at:] + found[:at]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Whichever order the workers read in, they have the tests in one."""
    return (
        _FromAPlaceOfItsOwn.from_parent(parent, path=path) if hasattr(parent.config, "workerinput") else None
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
    """A short run makes no items of the long tests: with their parameters these are a quarter of all."""
    is_left_out = at_length.is_short_run(collector.config.args) and at_length.is_long(
        f"{collector.nodeid}::{name}"
    )
    return [] if is_left_out else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The order of the files; the subset for a first look: what tests/quick.py chooses, without the tests that are marked slow."""
    items.sort(key=lambda item: item.path)
    for item in items:
        if quick.is_quick(item.nodeid) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)
    if known := os.environ.get(passed_before.SKIP):
        passed = passed_before.read(Path(known))
        items[:] = [item for item in items if item.nodeid not in passed or passed_before.repeats(item)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The process that deals the tests hears of each of them, and records what passed where the caller names a file."""
    known = os.environ.get(passed_before.RECORD)
    if known and report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(known).open("a", encoding="utf-8") as file:
            file.write(report.nodeid + "\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what a short run left out."""
    if at_length.is_short_run(config.args) and config.option.markexpr != "quick":
        terminalreporter.write_line(
            f"long tests not run: {len(at_length.FUNCTIONS)} functions of tests/length_tests.txt; `HYPOTHESIS_PROFILE=ci pytest` "
            "runs them, as .ci/run does, and so does the name of their file"
        )


def pytest_collection_finish() -> None:
    """What is there before the first test stays to the end: a search for garbage, of which some tests ask for many, need
    not go through 300,000 objects of imported tests each time (0.2 seconds)."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_runtest_call() -> None:
    """A library for wallets, which a module or an earlier test imported, raises the limit beyond what the C stack holds: a test of deep
    JSON would then end the process."""
    sys.setrecursionlimit(_DEPTH)


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty home and a temporary folder below the run's own, for the tests and for what they start."""
    home, temporary = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("tmp")
    for folder in (temporary, *temporary.parents):
        if folder.stat().st_mode & 0o011 == 0o011:
            break
        folder.chmod(folder.stat().st_mode | 0o011)  # some tests go on as another user
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
        patch.setenv("IPFSMEM_EMBEDDINGS", "off")  # what a model finds depends on when its vectors are ready
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _passphrases_cost_little() -> Iterator[None]:
    """What a test writes under a passphrase protects nothing. `at_full_cost` is for tests of the cost itself."""
    from tests.support import passphrase_cost

    passphrase_cost.make_cheap()
    yield
    passphrase_cost.make_full()


@pytest.fixture(scope="session", autouse=True)
def _a_wallet_signs_a_text_once() -> Iterator[None]:
    """Each step on the wallet's curve takes 10 to 20 ms without coincurve, and the answer is always the same one (RFC 6979). Tests of
    the steps themselves import them by name."""
    from ipfsmem.wallet import secp256k1

    with pytest.MonkeyPatch.context() as patch:
        for step in (secp256k1.account_of, secp256k1.sign_hash, secp256k1.recover_account):
            patch.setattr(secp256k1, step.__name__, functools.cache(step))
        yield


@pytest.fixture(scope="session", autouse=True)
def _control_c_is_heard() -> Iterator[None]:
    """A parent may have left SIGINT ignored (`nohup`, `command &` in a script); what the tests start inherits that."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def _three_devices() -> None:
    """What `lab.three` copies, made before any test has patched anything."""
    from tests.support import device_lab

    device_lab.prepare_lab(device_lab.Lab, device_lab.Lab._three)


@pytest.fixture
def lab(tmp_path: Path, _three_devices: None) -> Iterator[Lab]:
    """Devices on one simulated provider, whose files are closed in the end."""
    from tests.support.device_lab import lab_in

    with lab_in(tmp_path) as made:
        yield made


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers pause a hundredth of the time between attempts, for tests of what follows the last one."""
    from tests.support import pauses

    pauses.shorten(monkeypatch)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory of this test alone."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))


def _is_roomy(folder: Path) -> bool:
    """Whether the suite can write there."""
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= _RAM_BYTES
    except OSError:
        return False
