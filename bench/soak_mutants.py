"""Small faults that no test finds: `python -m bench.soak mutants --count 300 --seed 1`.

The faults (`bench.mutating`) are drawn from the seed over four packages. First each test runs once, and which lines of
these it ran is recorded. Then each fault is tried on the tests that ran its statement, the cheapest first, up to the first
that fails, in a fork of one process that has imported everything: the code of the function is replaced there, and no file is
changed. A fault outside of a function, and one that survived so, is tried in a new process that imports the module with it. A
test that takes far more processor time than it did, or sleeps on, has found the fault, too.

A program that a test starts runs the code as it is, unless it is a fork. Survivors that change nothing that could be noticed
are listed in `equivalent_mutants.json` with the reason. Linux only (it reads /proc).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest

from bench.mutating import Mutant, drawn, import_mutated, mutants, mutated
from tests import at_length
from tests.quick import function_of

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("causal", "ring", "sync", "device")
#: Maintained by hand: the name of a mutant and why it cannot be noticed.
EQUIVALENT: Final = Path(__file__).with_name("equivalent_mutants.json")
#: Folders of tests that mostly run in this process.
TESTS: Final = ("tests/unit", "tests/property", "tests/traces", "tests/faults", "tests/cli")
#: Tests that start other proofs, builds, browsers or servers add nothing about these packages.
_LEFT_OUT: Final = (
    "tests/faults/test_second_handles.py",
    "tests/faults/test_git_races.py",
    "tests/faults/test_mutants.py",
)
#: Tests that a short run omits; here they run last.
LONG: Final = at_length.FUNCTIONS
#: Records of earlier runs on the same files.
_CACHE: Final = ROOT / ".cache" / "mutants"
#: Maximum recorded processor seconds of the tests of one fault together.
_BUDGET: Final = 120.0
#: A test may take this multiple of its recorded time, plus these seconds.
_TIMES, _MORE = 10, 15
#: Seconds without any processor time, beyond five times the recorded duration, after which a test hangs.
_ASLEEP: Final = 45.0
_JOBS: Final = 2
_KILLED, _SURVIVED, _UNTOUCHED, _SKIPPED = "killed", "survived", "no test ran it", "not reached in time"


#: Variables of this process that the tests must not have: the caller's effort, and required counterparts.
_DIFFERENT: Final = ("HYPOTHESIS_PROFILE", "IPFSMEM_REQUIRE", "PYTEST_")
#: From this number of faults on a run uses all packages and tests; a shorter one uses these modules, which
#: have vectors.
_AT_LENGTH = 100
_SHORT: Final = ("causal/clock.py", "causal/entries.py", "causal/merge3.py", "causal/value.py")
_SHORT_TESTS: Final = ("tests/unit/causal", "tests/property/test_causal_merge3_laws.py")
#: No workers, no cache, no timeout except the one here.
_OPTIONS: Final = (f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), "-q", "-s",
    "-p", "no:xdist", "-p", "no:cacheprovider", "-o", "timeout=0")  # fmt: skip


@dataclass
class Trial:
    """The result of one fault."""

    mutant: Mutant
    state: str
    test: str = ""
    hung: bool = False
    #: Tests that run it and were skipped for lack of time.
    left: int = 0
    cold: bool = False


@dataclass
class Recorded:
    """One test without a fault."""

    processor: float
    seconds: float
    lines: dict[str, set[int]] = field(default_factory=dict)


def run(seed: int, count: int, seconds: float, *, as_json: bool = False) -> int:
    """Try `count` faults within `seconds` after the recording (0: no limit); fewer than a hundred: in the
    rules of `causal`. Returns 1 if one survived that is not equivalent."""
    short = 0 < count < _AT_LENGTH
    packages, tests = (_SHORT, _SHORT_TESTS) if short else (PACKAGES, TESTS)
    trials = try_faults(seed, count, seconds, packages=packages, tests=tests, keep=not short)
    return report(trials, as_json=as_json)


def report(trials: Sequence[Trial], *, as_json: bool = False) -> int:
    """Print a table, or one JSON object; return the exit code."""
    known: dict[str, str] = json.loads(EQUIVALENT.read_text("utf-8"))
    survivors = [one for one in trials if one.state in (_SURVIVED, _UNTOUCHED)]
    real = [one for one in survivors if one.mutant.name not in known]
    table = {
        "drawn": len(trials),
        "killed by short tests": sum(
            one.state == _KILLED and function_of(one.test) not in LONG for one in trials
        ),
        "killed by long tests only": sum(
            one.state == _KILLED and function_of(one.test) in LONG for one in trials
        ),
        "of these by a hang": sum(one.hung for one in trials),
        "equivalent": len(survivors) - len(real),
        "survivors": sum(one.state == _SURVIVED for one in real),
        "run by no test": sum(one.state == _UNTOUCHED for one in real),
        "not reached in time": sum(one.state == _SKIPPED for one in trials),
    }
    if as_json:
        found = [
            {"name": one.mutant.name, "line": one.mutant.line, "state": one.state, "test": one.test, "left": one.left, "hung": one.hung}
            for one in trials
        ]  # fmt: skip
        print(json.dumps({**table, "mutants": found}), flush=True)
    else:
        for one in real:
            more = f" ({one.left} tests not tried)" if one.left else ""
            print(f"{one.state}{more}: line {one.mutant.line}: {one.mutant.name}")
        print(", ".join(f"{name}: {number}" for name, number in table.items()), flush=True)
    return 1 if real else 0


def try_faults(
    seed: int,
    count: int,
    seconds: float,
    *,
    packages: Sequence[str],
    tests: Sequence[str],
    choose: Callable[[Mutant], bool] = lambda mutant: True,
    keep: bool = False,
) -> list[Trial]:
    """Draw from the faults in these packages (or modules: `causal/clock.py`), and try each on these tests; `keep` the record of
    what they run for the next time. Errors: RuntimeError if the tests could not be run."""
    files = []
    for name in packages:
        path = ROOT / "ipfsmem" / name
        files += [path] if path.is_file() else sorted(path.rglob("*.py"))
    names = [path.relative_to(ROOT).as_posix() for path in files]
    chosen = drawn([one for one in mutants(ROOT, names) if choose(one)], seed, count)
    with tempfile.TemporaryDirectory(dir=_in_memory(), ignore_cleanup_errors=True) as folder:
        asked, answer = Path(folder) / "asked.json", Path(folder) / "answer.jsonl"
        places = [(one.file, one.place) for one in chosen]
        asked.write_text(
            json.dumps({"mutants": places, "seconds": seconds, "tests": list(tests), "keep": keep})
        )
        # As in a short run, with the long tests; in its own process, so that no module of the caller is
        # imported.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_DIFFERENT)}
        done = subprocess.run(
            [sys.executable, "-m", "bench.soak_mutants", "warm", str(asked), str(answer)],
            cwd=ROOT, env=environment, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines = answer.read_text("utf-8").splitlines() if answer.exists() else []
        if done.returncode or len(lines) != len(chosen):
            raise RuntimeError(
                f"the tests could not be run (exit code {done.returncode}):\n{done.stdout[-2000:]}"
            )
    by_place = {(one.file, one.place): one for one in chosen}
    trials = []
    for line in lines:
        told: dict[str, Any] = json.loads(line)
        trials.append(Trial(by_place[told.pop("file"), told.pop("place")], **told))
    return trials


# --- what each test runs ---------------------------------------------------------------------------------------------


class Recorder:
    """Records which lines of some files run, in this process, its threads and its forks."""

    def __init__(self, prefix: str, file: Path) -> None:
        self._prefix = prefix
        self._ours: dict[CodeType, bool] = {}
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._test = ""
        self._seen: set[tuple[str, int]] = set()
        self._add: Callable[[tuple[str, int]], None] = self._seen.add
        os.register_at_fork(after_in_child=self._forked)

    def begin(self, test: str) -> None:
        self._test = test
        self._seen.clear()
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def end(self, processor: float, seconds: float, passed: bool) -> None:
        """Write a line about the test."""
        sys.settrace(None)
        threading.settrace(None)
        lines: dict[str, list[int]] = defaultdict(list)
        for path, line in list(self._seen):
            lines[path.removeprefix(str(ROOT) + "/")].append(line)
        self._write(
            {"test": self._test, "processor": processor, "seconds": seconds, "passed": passed, "lines": lines}
        )

    def _write(self, told: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(told).encode() + b"\n")

    def _forked(self) -> None:
        seen = self._seen

        def add(at: tuple[str, int]) -> None:
            if at not in seen:
                seen.add(at)
                self._write({"test": self._test, "file": at[0].removeprefix(str(ROOT) + "/"), "line": at[1]})

        if self._test:
            self._add = add

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        ours = self._ours.get(code)
        if ours is None:
            parts = code.co_filename.removeprefix(self._prefix)
            ours = self._ours[code] = parts != code.co_filename and parts.startswith(
                tuple(f"{one}/" for one in PACKAGES)
            )
        if not ours:
            return None
        self._add((code.co_filename, frame.f_lineno))
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def _read_record(path: Path) -> dict[str, Recorded]:
    """Return the tests that passed."""
    found: dict[str, Recorded] = {}
    forks: list[dict[str, Any]] = []
    for line in path.read_text("utf-8").splitlines():
        told = json.loads(line)
        if "file" in told:
            forks.append(told)
        elif told["passed"]:
            lines = {file: set(numbers) for file, numbers in told["lines"].items()}
            found[told["test"]] = Recorded(told["processor"], told["seconds"], lines)
    for told in forks:
        if told["test"] in found:
            found[told["test"]].lines.setdefault(told["file"], set()).add(told["line"])
    return found


def _tests_of(mutant: Mutant, record: dict[str, Recorded]) -> list[str]:
    """Return the tests that ran the statement, or anything of its module if it is outside of functions;
    short ones first, cheapest first."""
    within = range(mutant.first, mutant.last + 1)
    found = [
        test
        for test, one in record.items()
        if (lines := one.lines.get(mutant.file)) and (not mutant.inside or not lines.isdisjoint(within))
    ]
    return sorted(found, key=lambda test: (function_of(test) in LONG, record[test].processor))


# --- forks -----------------------------------------------------------------------------------------------------------


class Progress:
    """A plugin that reports each test to the parent, and ends at the first failure."""

    def __init__(self, fd: int) -> None:
        self._fd, self.failed = fd, False

    def tell(self, **told: Any) -> None:
        os.write(self._fd, json.dumps(told).encode() + b"\n")

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell(begun=nodeid)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = True
            self.tell(failed=report.nodeid)


@dataclass
class _Child:
    pid: int
    fd: int
    trial: Trial
    record: dict[str, Recorded]
    folder: Path
    buffer: bytes = b""
    test: str = ""
    failed: str = ""
    complete: bool = False
    broken: bool = False
    since: float = field(default_factory=time.monotonic)
    awake: float = field(default_factory=time.monotonic)
    used: float = 0.0
    at_begin: float = 0.0

    def read(self) -> None:
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                break
            if not data:
                break
            self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            told = json.loads(line)
            self.test = told.get("begun", self.test)
            self.failed = self.failed or told.get("failed", "")
            self.complete = self.complete or told.get("complete", False)
            self.broken = self.broken or told.get("broken", False)
            self.since = self.awake = time.monotonic()
            self.at_begin = self.used

    def hangs(self) -> bool:
        """Return whether the test takes far more processor time than recorded, or sleeps."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        used = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
        now = time.monotonic()
        if used > self.used or stat[0] in "RD":
            self.awake = now
        self.used = used
        one = self.record.get(self.test) or Recorded(10.0, 20.0)
        if self.used - self.at_begin > _TIMES * one.processor + _MORE:
            return True
        if now - self.awake <= _ASLEEP or now - self.since <= _ASLEEP + 5 * one.seconds:
            return False
        if _is_any_running(self.pid):
            self.awake = now
        return self.awake < now


def _is_any_running(session: int) -> bool:
    """Return whether a process of the session waits for the processor or the disk only."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[3]) == session and stat[0] in "RD":
            return True
    return False


def _watch(children: list[_Child]) -> Iterator[_Child]:
    """Return and remove the ended children; end those that found their fault or hang."""
    for child in list(children):
        child.read()
        done, _ = os.waitpid(child.pid, os.WNOHANG)
        if not done:
            hung = child.hangs()
            if not hung and not child.failed:
                continue
            child.trial.hung = hung and not child.failed
        _end(child)
        if not done:
            os.waitpid(child.pid, 0)
        child.read()
        os.close(child.fd)
        shutil.rmtree(child.folder, ignore_errors=True)
        children.remove(child)
        trial = child.trial
        if child.broken or not (child.test or child.failed or child.complete or trial.hung):
            raise RuntimeError(f"no test was begun: {trial.mutant.name}")
        if child.failed or trial.hung or not child.complete:
            # A process that died in a test did not pass it.
            trial.state, trial.test = _KILLED, child.failed or child.test
        else:
            trial.state = _SURVIVED
        yield child


def _end(child: _Child) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Warm:
    """A plugin that replaces the test run: it records, then tries the faults in forks."""

    def __init__(self, told: dict[str, Any], answer: Path) -> None:
        self._asked: list[tuple[str, int]] = [(file, place) for file, place in told["mutants"]]
        self._seconds: float = told["seconds"]
        self._tests: list[str] = told["tests"]
        self._keep: bool = told["keep"]
        self._answer, self._scratch = answer, answer.parent
        self._number = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            one
            for one in items
            if not one.nodeid.startswith(_LEFT_OUT) and not one.get_closest_marker("interop")
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        possible = {
            (one.file, one.place): one for one in mutants(ROOT, sorted({file for file, _ in self._asked}))
        }
        chosen = [possible[one] for one in self._asked]
        for file in sorted({one.file for one in chosen}):
            importlib.import_module(file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
        record = self._recorded(session)
        _say(
            f"{len(record)} tests recorded, {sum(one.processor for one in record.values()):.0f} s of processor time"
        )
        items = {one.nodeid: one for one in session.items}
        self._paths = {one.nodeid: one.path for one in session.items}
        codes = _functions()
        started = time.monotonic()
        running: list[_Child] = []
        waiting = [Trial(one, _SKIPPED) for one in chosen]
        trials, done = list(waiting), 0
        again: list[Trial] = []
        while waiting or running or again:
            while (again or waiting) and len(running) < _JOBS:
                if self._seconds and time.monotonic() - started > self._seconds:
                    waiting, again = [], []
                    break
                trial = again.pop() if again else waiting.pop(0)
                tests, trial.left = _within_budget(_tests_of(trial.mutant, record), record)
                if not tests:
                    trial.state = _UNTOUCHED
                    done += 1
                elif trial.cold:
                    running.append(self._start_cold(trial, tests, record))
                elif not (found := _replacements(trial.mutant, codes)):
                    trial.cold = True
                    running.append(self._start_cold(trial, tests, record))
                else:
                    work = partial(_try_warm, session, [items[one] for one in tests], found)
                    running.append(self._fork(trial, work, record))
            for child in _watch(running):
                if child.trial.state == _SURVIVED and not child.trial.cold:
                    child.trial.state, child.trial.cold = _SKIPPED, True
                    again.append(child.trial)  # only a new process shows what its import made of the function
                    continue
                done += 1
                one = child.trial
                _say(
                    f"{done}/{len(trials)} {one.state}{' (hung)' * one.hung} {one.mutant.name[:150]} {one.test}"
                )
            time.sleep(0.02)
        with self._answer.open("w", encoding="utf-8") as answers:
            for one in trials:
                told = {name: getattr(one, name) for name in ("state", "test", "hung", "left", "cold")}
                answers.write(json.dumps({"file": one.mutant.file, "place": one.mutant.place, **told}) + "\n")
        return True

    def _recorded(self, session: pytest.Session) -> dict[str, Recorded]:
        kept = (
            _CACHE / f"{_state_of_files(self._tests)}.jsonl" if self._keep else self._scratch / "record.jsonl"
        )
        if kept.exists():
            return _read_record(kept)
        kept.parent.mkdir(parents=True, exist_ok=True)
        path = kept.with_suffix(f".{os.getpid()}")
        by_file: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            by_file[item.path].append(item)
        shares: list[list[pytest.Item]] = [[] for _ in range(_JOBS)]
        for items in by_file.values():
            min(shares, key=len).extend(items)
        pids = []
        for items in filter(None, shares):
            basetemp = self._basetemp()
            if not (pid := os.fork()):
                _in_child(session, basetemp, partial(_record, items, path))
            pids.append(pid)
        for pid in pids:
            if os.waitpid(pid, 0)[1]:
                raise RuntimeError("the tests could not be recorded")
        for earlier in _CACHE.glob("*.jsonl") if self._keep else ():
            earlier.unlink(missing_ok=True)
        path.replace(kept)
        return _read_record(kept)

    def _basetemp(self) -> Path:
        self._number += 1
        return self._scratch / f"t{self._number}"

    def _fork(self, trial: Trial, work: Callable[[int], None], record: dict[str, Recorded]) -> _Child:
        read, write = os.pipe()
        basetemp = self._basetemp()
        if not (pid := os.fork()):
            _in_child(work.args[0], basetemp, partial(work, write))  # type: ignore[attr-defined]
        os.close(write)
        os.set_blocking(read, False)
        return _Child(pid, read, trial, record, basetemp)

    def _start_cold(self, trial: Trial, tests: Sequence[str], record: dict[str, Recorded]) -> _Child:
        read, write = os.pipe()
        basetemp = self._basetemp()
        asked = basetemp.with_suffix(".json")
        paths = list(dict.fromkeys(str(self._paths[one]) for one in tests))
        told = {"file": trial.mutant.file, "place": trial.mutant.place, "tests": list(tests), "paths": paths}
        asked.write_text(json.dumps(told))
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.soak_mutants", "cold", str(asked), str(write), str(basetemp)],
            cwd=ROOT, pass_fds=[write], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(write)
        os.set_blocking(read, False)
        process.returncode = 0  # awaited by its pid
        return _Child(process.pid, read, trial, record, basetemp)


def _within_budget(tests: list[str], record: dict[str, Recorded]) -> tuple[list[str], int]:
    total = 0.0
    taken: list[str] = []
    for test in tests:
        total += record[test].processor
        if total > _BUDGET and taken:
            break
        taken.append(test)
    return taken, len(tests) - len(taken)


def _in_child(session: pytest.Session, basetemp: Path, work: Callable[[], None]) -> None:
    """Run in a fork, without terminal output and with separate temporary files; never return."""
    code = 70
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        basetemp.mkdir(parents=True)
        factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = basetemp
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work()
        code = 0
    except BaseException as error:
        (basetemp.parent / "error.txt").write_text(repr(error))
    finally:
        os._exit(code)


def _record(items: Sequence[pytest.Item], file: Path) -> None:
    class Passed:
        passed = True

        @pytest.hookimpl
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            self.passed = self.passed and report.passed

    plugin = Passed()
    recorder = Recorder(f"{ROOT}/ipfsmem/", file)
    items[0].config.pluginmanager.register(plugin)
    for item, following in zip(items, [*items[1:], None], strict=True):
        plugin.passed = True
        processor, seconds = sum(os.times()[:4]), time.monotonic()
        recorder.begin(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        recorder.end(sum(os.times()[:4]) - processor, time.monotonic() - seconds, plugin.passed)


def _functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return the live functions of the package, by file, qualified name and first line."""
    gc.unfreeze()  # frozen objects are not listed
    found: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
    prefix = f"{ROOT}/ipfsmem/"
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename.startswith(prefix):
            found[_key(one.__code__)].append(one)
    gc.freeze()
    return found


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _all_codes(one)


def _replacements(
    mutant: Mutant, codes: dict[tuple[str, str, int], list[FunctionType]]
) -> list[tuple[FunctionType, CodeType]]:
    """Return which functions get which code; nothing if the fault is not in the code of a live function."""
    if not mutant.chain:
        return []
    path = str(ROOT / mutant.file)
    source = (ROOT / mutant.file).read_text("utf-8")
    before = {_key(one): one for one in _all_codes(compile(source, path, "exec", dont_inherit=True))}
    keys = Counter(_key(one) for one in _all_codes(mutated(source, path, mutant.place)))
    found = []
    for one in _all_codes(mutated(source, path, mutant.place)):
        old = before.get(_key(one))
        if old is None or old == one or keys[_key(one)] > 1:
            continue
        for function in codes.get(_key(one), ()):
            if len(one.co_freevars) != len(function.__code__.co_freevars):
                return []
            found.append((function, one))
    return found


def _try_warm(
    session: pytest.Session, items: Sequence[pytest.Item], found: list[tuple[FunctionType, CodeType]], fd: int
) -> None:
    for function, code in found:
        function.__code__ = code
    progress = Progress(fd)
    session.config.pluginmanager.register(progress)
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if progress.failed:
            return
    progress.tell(complete=True)


def _cold(asked: Path, fd: int, basetemp: Path) -> int:
    """Import the module with the fault, then run the tests."""
    told = json.loads(asked.read_text("utf-8"))
    mutant = next(one for one in mutants(ROOT, [told["file"]]) if one.place == told["place"])
    import_mutated(ROOT, mutant)
    progress = Progress(fd)

    class Order:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            by_name = {item.nodeid: item for item in items}
            items[:] = [by_name[name] for name in told["tests"] if name in by_name]
            if not items and not progress.failed:
                progress.tell(broken=True)  # a fault does not do that

        @pytest.hookimpl
        def pytest_internalerror(self) -> None:
            progress.tell(failed="(pytest)")

        @pytest.hookimpl
        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                progress.tell(failed=report.nodeid)

    try:
        code = pytest.main(
            ["-x", *_OPTIONS, f"--basetemp={basetemp}", *told["paths"]], plugins=[progress, Order()]
        )
    except BaseException:
        progress.tell(failed="(import)")
        raise
    if code == pytest.ExitCode.USAGE_ERROR and not progress.failed:
        progress.tell(failed="(import)")  # imports of conftest.py
    if code == pytest.ExitCode.OK:
        progress.tell(complete=True)
    return int(code)


def _state_of_files(tests: Sequence[str]) -> str:
    """Return a digest of the requested tests and of every file that they may depend on."""
    digest = sha256(json.dumps([sys.version, list(tests)]).encode())
    for folder in ("ipfsmem", "providers", "tests", "fixtures"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and not path.is_symlink():
                digest.update(path.as_posix().encode() + b"\0" + sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:24]


def _in_memory() -> Path | None:
    """Return a folder where temporary files are cheapest: tests write many, and each is flushed to the
    disk."""
    folder = Path("/dev/shm")
    return folder if "TMPDIR" not in os.environ and os.access(folder, os.W_OK) else None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Entry point of the processes that `try_faults` and `Warm` start."""
    kind, asked, *rest = arguments
    if kind == "cold":
        return _cold(Path(asked), int(rest[0]), Path(rest[1]))
    told = json.loads(Path(asked).read_text("utf-8"))
    at_length.FUNCTIONS = frozenset()
    return int(pytest.main([*_OPTIONS, *told["tests"]], plugins=[Warm(told, Path(rest[0]))]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
