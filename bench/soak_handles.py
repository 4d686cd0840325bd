"""No acknowledged write is lost while a long-running process and commands use one vault at the same time.

A case draws one interface that keeps running (`ui`, `api`, `mcp --sync`, `sync --every`, Python with two memories, Python with
autosync) and steps on both sides: writes, lists, syncs, dreams, reindexing, vacuums, second loads, commands of other processes. The
running side ends by SIGTERM or SIGKILL; before a SIGTERM the log and its index are sometimes removed by hand. A model holds what was acknowledged; both sides and a new process must show all of it, and
no process may hold a database file that was removed.

Commands are forks of this process, which has imported the package already. Linux only (it reads /proc).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import importlib
import importlib.util
import io
import json
import os
import pkgutil
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import ipfsmem
from ipfsmem.api.page import PageFiles
from ipfsmem.cli import main as command_line
from ipfsmem.device.database_file import DATABASE_FILES
from ipfsmem.memory import Memory
from ipfsmem.open_vault.advising import WritingAdvice

_TOKEN = "tok-0123456789abcdef0123456789abcdef"
#: Timeout in seconds of one answer on a loaded machine.
_PATIENCE = 60.0
_ENVIRONMENT = {"IPFSMEM_API_TOKEN": _TOKEN, "IPFSMEM_EMBEDDINGS": "off", "PYTHONWARNINGS": "ignore"}


class Failed(Exception):
    """An invariant was violated."""


#: Started processes that have not been awaited.
_CHILDREN: list[Child] = []


class Child:
    """A fork of this process that runs `work`; its standard streams are pipes."""

    def __init__(self, work: Callable[[], int | None]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        to_read, to_write = os.pipe()
        out_read, out_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(to_write)
            os.close(out_read)
            _become(to_read, out_write, work)
        os.close(to_read)
        os.close(out_write)
        self.input = os.fdopen(to_write, "w", buffering=1)
        self.output = os.fdopen(out_read, "r")
        self.code: int | None = None
        _CHILDREN.append(self)

    def wait(self) -> int:
        """Return its exit code, -N after signal N."""
        if self.code is None:
            with contextlib.suppress(OSError):
                self.input.close()
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
            _CHILDREN.remove(self)
        return self.code

    def end(self, number: int) -> int:
        """Send a signal and wait; a child that does not end within the timeout is killed, and the case has
        failed."""
        if self.code is None:
            os.kill(self.pid, number)
            until = time.monotonic() + _PATIENCE
            while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                if time.monotonic() > until:
                    os.kill(self.pid, signal.SIGKILL)
                    self.wait()
                    raise Failed(f"it did not end within {_PATIENCE:.0f} s of signal {number}")
                time.sleep(0.005)
        code = self.wait()
        self.output.close()
        return code


def _become(stdin: int, stdout: int, work: Callable[[], int | None]) -> NoReturn:
    """In the child: use the pipes as standard streams, do the work, exit."""
    code = 70
    try:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(stdout, 2)
        os.closerange(3, 256)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        code = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


def command(home: Path, *arguments: str) -> tuple[int, str]:
    """Run one command in its own process; return the exit code and its output."""
    child = Child(lambda: command_line([*arguments, "--home", str(home)]))
    with contextlib.suppress(OSError):
        child.input.close()
    text = child.output.read()
    child.output.close()
    return child.wait(), text


class Side:
    """The running side. Each call returns whether it was acknowledged."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.child: Child = self.start()

    def start(self) -> Child:
        """Start it and wait until it serves."""
        raise NotImplementedError

    def write(self, key: str, body: str) -> bool:
        """Write; return whether the text was acknowledged."""
        raise NotImplementedError

    def keys(self) -> set[str] | None:
        """Return the listed keys; None if unknown."""
        raise NotImplementedError

    def work(self, name: str) -> None:
        """Use a second handle: sync, dream, reindex, vacuum, load."""
        raise NotImplementedError

    def begin_write(self, key: str, body: str) -> None:
        """Request a write without waiting for the answer."""
        raise NotImplementedError

    def closes(self) -> None:
        """Make it close the vault, where SIGTERM does not."""


class Served(Side):
    """`ipfsmem serve api`."""

    arguments: tuple[str, ...] = ("serve", "api", "--port", "0")

    def start(self) -> Child:
        child = Child(lambda: command_line([*self.arguments, "--home", str(self.home)]))
        line = ""
        while "http://" not in line:
            line = child.output.readline()
            if not line:
                raise Failed(f"the server ended with {child.wait()}")
        self.port = int(line.split("http://127.0.0.1:")[1].split("/")[0].split()[0].rstrip("."))
        self.token = self.sign_in(line)
        return child

    def sign_in(self, line: str) -> str:
        """Return the token for requests."""
        return _TOKEN

    def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        """Send one request; return status and answer."""
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)
        with contextlib.closing(wire):
            self.send(wire, method, path, body, headers)
            answer = wire.getresponse()
            text = answer.read()
        return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text

    def send(
        self,
        wire: http.client.HTTPConnection,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send one request without waiting for its answer."""
        given = {
            "Authorization": f"Bearer {getattr(self, 'token', _TOKEN)}",
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body)
        wire.request(method, f"/v1{path}", data, given | (headers or {}))

    def write(self, key: str, body: str) -> bool:
        status, answer = self.ask("PUT", f"/memories/{key}", {"body": body}, {"If-None-Match": "*"})
        if status not in (200, 201):
            raise Failed(f"a write was refused: {status} {answer}")
        return True

    def begin_write(self, key: str, body: str) -> None:
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)
        self.send(wire, "PUT", f"/memories/{key}", {"body": body}, {"If-None-Match": "*"})

    def keys(self) -> set[str]:
        found: set[str] = set()
        cursor = ""
        while True:
            status, page = self.ask("GET", f"/memories?limit=200{cursor}")
            if status != 200:
                raise Failed(f"a list was refused: {status} {page}")
            found |= {item["key"] for item in page["memories"]}
            if not page.get("next"):
                return found
            cursor = f"&cursor={page['next']}"

    def work(self, name: str) -> None:
        if name == "load":
            return
        status, answer = self.ask("POST", f"/{name}", {})
        if status not in (200, 202, 409, 429):
            raise Failed(f"{name} was refused: {status} {answer}")


class Page(Served):
    """`ipfsmem ui`, which syncs when it starts."""

    arguments = ("ui", "--no-open", "--port", "0")

    def sign_in(self, line: str) -> str:
        code = line.split("code=")[1].split()[0]
        status, answer = self.ask("POST", "/session", {"code": code})
        if status != 201:
            raise Failed(f"no session: {status} {answer}")
        return str(answer["token"])


class Tools(Side):
    """`ipfsmem serve mcp --sync`: JSON-RPC over standard streams."""

    def start(self) -> Child:
        self.number = 0
        child = Child(lambda: command_line(["serve", "mcp", "--sync", "--home", str(self.home)]))
        self.child = child
        opening = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "soak", "version": "1"},
        }
        self.ask("initialize", opening)
        self.tell("notifications/initialized", {})
        return child

    def tell(self, method: str, params: object, number: int | None = None) -> None:
        """Send one message."""
        message = {"jsonrpc": "2.0", "method": method, "params": params} | (
            {} if number is None else {"id": number}
        )
        self.child.input.write(json.dumps(message) + "\n")
        self.child.input.flush()

    def ask(self, method: str, params: object) -> Any:
        """Return the result of one request."""
        self.number += 1
        number = self.number
        self.tell(method, params, number)
        while line := self.child.output.readline():
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                if isinstance(answer, dict) and answer.get("id") == number:
                    return answer.get("result") or answer
        raise Failed(f"the tools ended with {self.child.wait()}")

    def call(self, tool: str, given: dict[str, object]) -> Any:
        """Call one tool."""
        return self.ask("tools/call", {"name": tool, "arguments": given})

    def write(self, key: str, body: str) -> bool:
        answer = self.call("remember", _remembered(key, body))
        if answer.get("isError") or "error" in answer:
            raise Failed(f"remember was refused: {str(answer)[:300]}")
        return True

    def begin_write(self, key: str, body: str) -> None:
        self.number += 1
        self.tell("tools/call", {"name": "remember", "arguments": _remembered(key, body)}, self.number)

    def keys(self) -> None:
        return None  # models get pages with texts

    def work(self, name: str) -> None:
        self.call("list_memories", {})


def _remembered(key: str, body: str) -> dict[str, object]:
    return {"key": key, "body": body, "name": key, "description": key, "type": "reference"}


class Every(Side):
    """`ipfsmem sync --every 1s`, which `ipfsmem service` runs as well. It writes nothing itself."""

    def start(self) -> Child:
        return Child(lambda: command_line(["sync", "--every", "1s", "--home", str(self.home)]))

    def write(self, key: str, body: str) -> bool:
        return False

    def begin_write(self, key: str, body: str) -> None:
        """Does nothing."""

    def keys(self) -> None:
        return None

    def work(self, name: str) -> None:
        time.sleep(0.05)


class Program(Side):
    """A Python program that loads the vault more than once."""

    autosync = False

    def start(self) -> Child:
        self.unanswered = 0
        child = Child(lambda: asyncio.run(self.serve()))
        self.child = child
        self.answer()
        return child

    async def serve(self) -> None:
        """In the child: answer one request per line."""
        with Memory.load("default", home=self.home) as memory, contextlib.ExitStack() as more:
            async with contextlib.AsyncExitStack() as running:
                if self.autosync:
                    await running.enter_async_context(memory.autosync())
                print("=" + json.dumps("ready"), flush=True)
                while line := await asyncio.to_thread(sys.stdin.readline):
                    name, *given = json.loads(line)
                    try:
                        answer: object = await self.done(memory, more, name, given)
                    except Exception as error:
                        answer = {"error": f"{type(error).__name__}: {error}"}
                    print("=" + json.dumps(answer), flush=True)

    async def done(self, memory: Memory, more: contextlib.ExitStack, name: str, given: list[str]) -> object:
        """In the child: run one request."""
        if name == "write":
            memory.write(given[0], given[1])
            return True
        if name == "keys":
            return [item.key for item in memory.list()]
        if name == "load":
            more.enter_context(Memory.load("default", home=self.home)).list()
            if random.random() < 0.5:
                more.close()
            return True
        with Memory.load("default", home=self.home) as second:
            if name == "sync":
                await second.sync()
            else:
                calls: dict[str, Callable[[], object]] = {
                    "dream": second.dreams.run,
                    "reindex": second.maintenance.reindex,
                    "vacuum": second.maintenance.vacuum,
                }
                calls[name]()
        return True

    def answer(self) -> Any:
        """Return its next answer."""
        while line := self.child.output.readline():
            if line.startswith("="):
                return json.loads(line[1:])
        raise Failed(f"the program ended with {self.child.wait()}")

    def ask(self, *request: str) -> Any:
        """Make one request. Raises Failed if it was refused."""
        self.child.input.write(json.dumps(request) + "\n")
        while self.unanswered:  # answers that were not awaited
            self.answer()
            self.unanswered -= 1
        answer = self.answer()
        if isinstance(answer, dict):
            raise Failed(f"{request[0]} was refused: {answer['error']}")
        return answer

    def write(self, key: str, body: str) -> bool:
        return bool(self.ask("write", key, body))

    def begin_write(self, key: str, body: str) -> None:
        self.child.input.write(json.dumps(["write", key, body]) + "\n")
        self.unanswered += 1

    def closes(self) -> None:
        self.child.input.close()
        self.child.output.read()

    def keys(self) -> set[str]:
        return set(self.ask("keys"))

    def work(self, name: str) -> None:
        self.ask(name)


class Autosync(Program):
    """The same, with autosync."""

    autosync = True


SIDES: dict[str, type[Side]] = {
    "api": Served,
    "ui": Page,
    "mcp --sync": Tools,
    "sync --every": Every,
    "two memories": Program,
    "autosync": Autosync,
}
_WORK = ("sync", "dream", "reindex", "vacuum", "load")
_COMMANDS = (
    ("list",),
    ("status",),
    ("vault", "check"),
    ("sync",),
    ("recall", "text"),
    ("vault", "compact", "--only", "files"),
)
#: Permitted exit codes of commands next to a running side: success, or a conflict with another process.
_MAY_WAIT = {"sync", "vacuum", "vault", "status"}


class Case:
    """One vault, one running side, steps from a seed."""

    def __init__(self, folder: Path, seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.home = folder / "home"
        (folder / "stick").mkdir()
        with Memory.create(
            "default", "encrypted-ipfs", provider=str(folder / "stick"), passphrase=False, home=self.home
        ) as memory:
            memory.write("first", "text of first")
        self.name = name
        self.acknowledged = {"first": "text of first"}
        self.asked: set[str] = set()
        self.number = 0
        self.steps: Counter[str] = Counter()

    def new(self) -> tuple[str, str]:
        """Return an unused key, and a text for it."""
        self.number += 1
        return f"key_{self.number}", f"text {self.number} {self.random.random()}"

    def play(self) -> None:
        """Run all steps. Raises Failed with the steps so far."""
        try:
            side = SIDES[self.name](self.home)
            for _ in range(self.random.randint(4, 9)):
                self.step(side)
                self.look_for_removed(side)
            self.compare(side)
            if self.random.random() < 0.4:
                key, body = self.new()
                self.asked.add(key)
                side.begin_write(key, body)
            number = self.random.choice((signal.SIGTERM, signal.SIGKILL))
            if self.random.random() < 0.4:
                self.remove_log(side)
                number = signal.SIGTERM  # a kill loses the removed log too
                side.closes()
            self.steps[number.name] += 1
            side.child.end(number)
        finally:
            for child in list(_CHILDREN):
                with contextlib.suppress(OSError):
                    os.kill(child.pid, signal.SIGKILL)
                child.wait()
        self.compare(None)

    def step(self, side: Side) -> None:
        """Run one step of either side."""
        kind = self.random.choice(("write", "write", "work", "work", "command", "command", "foreign write"))
        if kind == "write":
            key, body = self.new()
            self.asked.add(key)
            if side.write(key, body):
                self.acknowledged[key] = body
        elif kind == "work":
            name = self.random.choice(_WORK)
            self.steps[name] += 1
            side.work(name)
        elif kind == "command":
            arguments = self.random.choice(_COMMANDS)
            code, text = command(self.home, *arguments)
            if code and arguments[0] not in _MAY_WAIT:
                raise Failed(f"{arguments[0]} ended with {code}: {text[-300:]}")
        else:
            self.foreign_write()
        self.steps[kind] += 1

    def foreign_write(self) -> None:
        """Write with a command."""
        key, body = self.new()
        self.asked.add(key)
        code, text = command(self.home, "write", key, "--body", body)
        if code:
            raise Failed(f"write ended with {code}: {text[-300:]}")
        self.acknowledged[key] = body

    def remove_log(self, side: Side) -> None:
        """Remove the log and its index by hand; another process writes first, and then perhaps the running
        side, which may refuse."""
        for name in DATABASE_FILES[1:]:
            (self.home / "default" / name).unlink(missing_ok=True)
        self.steps["both removed by hand"] += 1
        self.foreign_write()
        if self.random.random() < 0.5:
            key, body = self.new()
            self.asked.add(key)
            with contextlib.suppress(Failed):
                if side.write(key, body):
                    self.acknowledged[key] = body

    def look_for_removed(self, side: Side) -> None:
        """Check that no process holds a deleted database file."""
        folder = Path(f"/proc/{side.child.pid}/fd")
        with contextlib.suppress(FileNotFoundError):
            for one in folder.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    target = str(one.readlink())
                    if "state.db" in target and "(deleted)" in target:
                        raise Failed(f"it holds {target}")

    def compare(self, side: Side | None) -> None:
        """Check that the running side and a new process show everything acknowledged, and nothing else."""
        seen = side.keys() if side is not None else None
        if seen is not None:
            self.check("the running side", seen)
        code, text = command(self.home, "list", "--json")
        if code:
            raise Failed(f"list ended with {code}: {text[-300:]}")
        # After warnings, which are on the same pipe.
        listed = json.loads(re.sub(r"\A([^\[{].*\n)*", "", text))
        listed = listed if isinstance(listed, list) else listed["memories"]
        self.check("a new process", {item["key"] for item in listed})
        if side is None:
            with Memory.load("default", home=self.home) as memory:
                for key, body in self.acknowledged.items():
                    found = memory.read(key)
                    if found is None or found.readable.body.strip() != body:
                        raise Failed(f"{key} reads {found}")
                broken = [one for one in memory.check() if one.level == "error"]
                if broken:
                    raise Failed(f"check: {broken}")

    def check(self, who: str, seen: set[str]) -> None:
        """Compare a list with the model."""
        if lost := self.acknowledged.keys() - seen:
            raise Failed(f"{who} lost {sorted(lost)}")
        if strange := seen - self.acknowledged.keys() - self.asked:
            raise Failed(f"{who} has {sorted(strange)}")


@contextlib.contextmanager
def _environment(folder: Path) -> Iterator[None]:
    before = dict(os.environ)
    (folder / "runtime").mkdir(mode=0o700)
    for name in [name for name in os.environ if name.startswith(("XDG_", "IPFSMEM_"))]:
        del os.environ[name]
    os.environ |= _ENVIRONMENT | {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "runtime")}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _import_all() -> None:
    """Import the modules that each child would otherwise import, except optional packages."""
    for name in ("rich.table", "ipfsmem_providers.directory"):
        importlib.import_module(name)
    for found in pkgutil.walk_packages(ipfsmem.__path__, "ipfsmem."):
        if not found.name.startswith(("ipfsmem.adapters", "ipfsmem.mcp")) and not found.name.endswith(
            ("__main__", "_arrays")  # these need NumPy
        ):
            importlib.import_module(found.name)
    gc.freeze()


def run(seed: int, count: int, seconds: float) -> int:
    """Draw `count` cases from `seed`, at most for `seconds`; print a table. Returns 1 if a case failed."""
    if not sys.platform.startswith("linux"):
        print("skipped: this proof reads /proc, which only Linux has")
        return 0
    _import_all()
    warnings.simplefilter("ignore", WritingAdvice)
    # `ui` is called as its page does; the files it serves do not matter.
    PageFiles.built = lambda: PageFiles({"index.html": b""})  # type: ignore[assignment, misc]
    names = [name for name in SIDES if name != "mcp --sync" or importlib.util.find_spec("mcp")]
    if len(names) < len(SIDES):
        print("skipped: mcp --sync (the extra mcp is not installed)")
    until = time.monotonic() + seconds if seconds else float("inf")
    cases: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    failures: list[str] = []
    number = 0
    while (not count or number < count) and time.monotonic() < until:
        name = names[number % len(names)]
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        case_seed = seed * 1_000_003 + number
        number += 1
        try:
            with _environment(folder):
                case = Case(folder, case_seed, name)
                case.play()
            steps += case.steps
        except Failed as error:
            failures.append(f"{name}, case {case_seed}: {error}")
            print(failures[-1], flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        cases[name] += 1
        if number % 50 == 0:
            print(f"{number} cases, {len(failures)} failed", flush=True)
    out = io.StringIO()
    print(f"{'running side':<16}{'cases':>7}", file=out)
    for name in names:
        print(f"{name:<16}{cases[name]:>7}", file=out)
    print(f"steps: {', '.join(f'{value} {key}' for key, value in sorted(steps.items()))}", file=out)
    print(f"{number} cases from seed {seed}: {len(failures)} failed", file=out)
    print(out.getvalue(), end="", flush=True)
    return 1 if failures or not number else 0
