"""`state.db-wal` and `state.db-shm` are removed by hand while a process has them open, and another process
writes."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.device.connection import Connection
from ipfsmem.device.database import Database
from ipfsmem.errors import StorageError
from ipfsmem.memory import Memory

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows does not remove an open file")

TOKEN = "tok-0123456789abcdef0123456789abcdef"
#: A program with an open vault: it writes one text for each line of input, and closes at the end.
PROGRAM = """
import json, sys
from ipfsmem.memory import Memory
memory = Memory.load("default", home=sys.argv[1])
print("open", flush=True)
for line in sys.stdin:
    name, *given = json.loads(line)
    if name == "event":
        memory.note(*given)
    elif name == "forget":
        memory.forget(*given)
    elif name == "attach":
        memory.folders.attach(*given)
    else:
        memory.write(*given)
    print("done", flush=True)
memory.close()
"""


class Program:
    """The running program."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer("open")

    def _answer(self, wanted: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == wanted

    def ask(self, *request: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        self._answer("done")

    def end(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()


def remove_log(home: Path, *names: str) -> None:
    for name in names or ("state.db-wal", "state.db-shm"):
        (home / "default" / name).unlink()


@pytest.fixture(params=["local", "encrypted-ipfs"])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    home = tmp_path / "home"
    (tmp_path / "stick").mkdir()
    given: dict[str, Any] = {} if request.param == "local" else {"provider": str(tmp_path / "stick")}
    with Memory.create("default", request.param, passphrase=False, home=home, **given) as memory:
        memory.write("first", "text of first")
        memory.write("second", "text of second")
        memory.note("begun")
    return home


@pytest.fixture
def running(home: Path) -> Iterator[Program]:
    program = Program(home)
    yield program
    if program.process.poll() is None:
        program.process.kill()
        program.process.wait()
    for pipe in (program.process.stdin, program.process.stdout):
        assert pipe is not None
        with closing(pipe):
            pass


def texts(home: Path) -> dict[str, str]:
    with Memory.load("default", home=home) as memory:
        assert [one for one in memory.check() if one.level == "error"] == []
        return {item.key: memory.read(item.key).readable.body.strip() for item in memory.list()}


def test_writes_of_a_removed_log_are_merged_with_later_writes(home: Path, running: Program) -> None:
    running.ask("write", "third", "text of third")
    running.ask("write", "second", "text of second, changed")
    running.ask("event", "seen")
    remove_log(home)
    with Memory.load("default", home=home) as memory:
        memory.write("foreign", "text of foreign")
        memory.write("first", "text of first, changed")
        memory.note("other")
    running.end()
    assert texts(home) == {
        "first": "text of first, changed",
        "second": "text of second, changed",
        "third": "text of third",
        "foreign": "text of foreign",
    }
    with Memory.load("default", home=home) as memory:
        assert [
            one["type"] for one in memory.timeline.read() if one["type"] in ("begun", "seen", "other")
        ] == [
            "begun",
            "seen",
            "other",
        ]
        assert not memory.conflicts()
        # In mode local the files in the folder memory/ had it too.
        local = (home / "default" / "memory").exists()
        assert local or "third" in str([one for one in memory.check() if one.level == "warn"])
    assert not list((home / "default").glob("state-left-*"))


def test_folder_linked_in_a_removed_log_is_linked_again(
    home: Path, running: Program, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    linked, detached, gone = (tmp_path / name for name in ("linked", "detached", "gone"))
    for folder in (linked, detached, gone):
        running.ask("attach", str(folder))
    remove_log(home)
    with Memory.load("default", home=home) as memory:
        memory.write("foreign", "text of foreign")
    running.end()
    (linked / "typed.md").write_text("typed by hand\n")
    shutil.rmtree(detached / ".ipfsmem")  # as a detach leaves it
    shutil.rmtree(gone)
    found = texts(home)
    assert found.pop("typed") == "typed by hand"
    assert found == {
        "first": "text of first",
        "second": "text of second",
        "foreign": "text of foreign",
    }
    assert f"the link of {linked}" in caplog.text
    assert f"the link of {gone}" in caplog.text.partition("Lost:")[2] and str(detached) not in caplog.text
    with Memory.load("default", home=home) as memory:
        memory.write("second", "written later")
        assert str(linked) in [one.path for one in memory.folders.list()] and not memory.conflicts()
    assert "written later" in (linked / "second.md").read_text() and (linked / "foreign.md").exists()


def test_forget_in_a_removed_log_is_applied(home: Path, running: Program) -> None:
    running.ask("forget", "first")
    remove_log(home)
    with Memory.load("default", home=home) as memory:
        memory.forget("second")
    running.end()
    assert texts(home) == {}


def test_scopes_of_a_removed_log_are_restored(home: Path) -> None:
    with Memory.load("default", home=home) as memory:
        memory.scope("old").write("plan", "text of plan")
    memory = Memory.load("default", home=home)
    memory.scope("new").write("plan", "text of plan")
    memory.scopes.forget("old")
    remove_log(home)
    subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", "write", "foreign", "--body", "x", "--home", str(home)],
        check=True,
        capture_output=True,
    )
    memory.close()
    with Memory.load("default", home=home) as memory:
        assert memory.scopes.names() == ["new"]
        assert [item.key for item in memory.scope("new").list()] == ["plan"]
        assert "Lost" not in str([one for one in memory.check() if one.level == "warn"])


def test_text_changed_on_both_sides_becomes_a_conflict(home: Path, running: Program) -> None:
    running.ask("write", "first", "one side")
    remove_log(home)
    with Memory.load("default", home=home) as memory:
        memory.write("first", "other side")
    running.end()
    with Memory.load("default", home=home) as memory:
        (found,) = memory.conflicts()
        assert found.shown is not None
        said = found.shown.readable.body + " ".join(str(one) for one in found.copies)
        assert "one side" in said and "other side" in said


@pytest.mark.parametrize("used_again", [True, False], ids=["used again", "never used again"])
def test_server_restores_writes_of_its_removed_log(home: Path, used_again: bool) -> None:
    environment = {**os.environ, "IPFSMEM_API_TOKEN": TOKEN}
    server = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "--json", "serve", "api", "--port", "0", "--home", str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert server.stdout is not None
    with server:
        try:
            url = json.loads(server.stdout.readline())["url"]

            def put(key: str) -> int:
                wire = http.client.HTTPConnection(url.split("/")[2], timeout=60)
                with closing(wire):
                    headers = {"Authorization": f"Bearer {TOKEN}", "If-None-Match": "*"}
                    headers["Content-Type"] = "application/json"
                    wire.request(
                        "PUT", f"/v1/memories/{key}", json.dumps({"body": f"text of {key}"}), headers
                    )
                    return wire.getresponse().status

            assert put("third") == 201
            remove_log(home)
            with Memory.load("default", home=home) as memory:
                memory.write("foreign", "text of foreign")
            if used_again:
                assert put("fourth") == 201
                assert {"third", "fourth", "foreign"} <= texts(home).keys()
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
        finally:
            server.kill()
    assert {"first", "second", "third", "foreign"} <= texts(home).keys()


def test_copy_with_writes_of_another_process_is_read_row_by_row(home: Path, running: Program) -> None:
    """A checkpoint of the new log changes pages under the old one."""
    for number in range(40):
        running.ask("write", f"long_{number}", f"text {number} " * 300)
    remove_log(home)
    with Memory.load("default", home=home) as memory:
        memory.write("foreign", "text of foreign")
        memory.maintenance.vacuum()
    running.end()
    found = texts(home)
    assert {"first", "second", "foreign", *(f"long_{number}" for number in range(40))} <= found.keys()


def test_unsaved_removed_log_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory.load("default", home=home)
    memory.write("third", "text of third")
    remove_log(home)
    done = subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", "write", "foreign", "--body", "x", "--home", str(home)],
        check=True,
        capture_output=True,
    )
    assert done.returncode == 0

    def full(self: Connection, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Connection, "copy_to", full)
    with pytest.raises(StorageError, match="only in a removed file, and a copy could not be saved") as lost:
        memory.close()
    assert lost.value.hint == "Compare with ipfsmem list, and write missing texts again."
    monkeypatch.undo()
    with Memory.load("default", home=home) as again:
        assert again.read("foreign") is not None
        if again.read("third") is None:  # mode local has it in a plain file
            again.write("third", "text of third")
        assert again.read("third") is not None


WRITER = """
import sys
from pathlib import Path
from ipfsmem.device.lock import file_lock
from ipfsmem.errors import LockedError
from ipfsmem.memory import Memory
try:
    with file_lock(Path(sys.argv[1], "default", "lock"), wait=0):
        pass
except LockedError:
    print("locked")
else:
    with Memory.load("default", home=sys.argv[1]) as memory:
        memory.write("foreign", "text of foreign")
    print("written")
"""


def test_database_is_locked_while_a_removed_log_is_written_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory.load("default", home=home)
    memory.write("third", "text of third")
    remove_log(home)
    said = []
    look = Database._is_stale

    def look_and_be_overtaken(self: Database) -> bool:
        found = look(self)
        if not said:
            done = subprocess.run([sys.executable, "-c", WRITER, str(home)], check=True, capture_output=True)
            said.append(done.stdout.split())
        return found

    monkeypatch.setattr(Database, "_is_stale", look_and_be_overtaken)
    memory.close()
    monkeypatch.undo()
    assert said == [[b"locked"]]
    assert texts(home).keys() == {"first", "second", "third"}


HOLDER = """
import sys
from pathlib import Path
from ipfsmem.device.lock import file_lock
with file_lock(Path(sys.argv[1], "default", "lock")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_removed_log_is_not_written_back_during_another_write(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory.load("default", home=home)
    memory.write("third", "text of third")
    remove_log(home)
    before = (home / "default" / "state.db").read_bytes()
    monkeypatch.setattr("ipfsmem.device.database._CLOSE_WAIT_S", 0.0)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        memory.close()
        assert (home / "default" / "state.db").read_bytes() == before
        holder.communicate()
    assert list((home / "default").glob("state-left-*.db"))
    assert texts(home).keys() == {"first", "second", "third"}


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="only Linux tells which files a process has open"
)
def test_recreated_log_is_not_mistaken_for_the_open_one(
    home: Path, running: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.ask("write", "third", "text of third")
    running.process.kill()
    running.process.wait()
    prepare, prepared = Database._prepare, []

    def prepared_late(self: Database) -> None:
        prepare(self)
        if not prepared:
            prepared.append(self)
            remove_log(home)
            subprocess.run([sys.executable, "-c", WRITER, str(home)], check=True, capture_output=True)

    monkeypatch.setattr(Database, "_prepare", prepared_late)
    with pytest.raises(StorageError, match="another program replaced it meanwhile"):
        Memory.load("default", home=home)
    monkeypatch.undo()
    assert texts(home).keys() == {"first", "second", "third", "foreign"}


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="only Linux tells which files a process has open"
)
@pytest.mark.parametrize("names", [("state.db-wal",), ("state.db-wal", "state.db-shm")])
def test_wal_recreated_by_this_process_is_detected(
    home: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    prepare, prepared, wrote = Database._prepare, [], ["first", "second"]
    memories: list[Memory] = []

    def load() -> None:
        with contextlib.suppress(StorageError):
            memories.append(Memory.load("default", home=home))

    def prepared_late(self: Database) -> None:
        prepare(self)
        if not prepared:
            prepared.append(self)
            remove_log(home, *names)
            load()

    monkeypatch.setattr(Database, "_prepare", prepared_late)
    load()
    monkeypatch.undo()
    for number, memory in enumerate(reversed(memories)):
        with contextlib.suppress(StorageError):
            memory.write(f"text{number}", f"text of text{number}")
            wrote.append(f"text{number}")
    for memory in reversed(memories):
        memory.close()
    assert texts(home).keys() == set(wrote)


def test_new_vault_next_to_a_deleted_open_one_is_used(home: Path) -> None:
    old = Memory.load("default", home=home)
    shutil.rmtree(home / "default")
    with Memory.create("default", "local", passphrase=False, home=home) as memory:
        memory.write("text0", "text of text0")
    assert texts(home).keys() == {"text0"}
    with pytest.raises(StorageError, match=r"is not the file that is open here|is gone"):
        old.write("text1", "text of text1")
    old.close()
    assert texts(home).keys() == {"text0"}


def test_log_removed_while_opening_overwrites_nothing(
    home: Path, running: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.ask("write", "third", "text of third")
    running.process.kill()
    running.process.wait()
    look, looked = Database.replaced, []

    def replaced(self: Database) -> str:
        if not looked:
            looked.append(self)
            remove_log(home)
            subprocess.run([sys.executable, "-c", WRITER, str(home)], check=True, capture_output=True)
        return look(self)

    monkeypatch.setattr(Database, "replaced", replaced)
    with pytest.raises(StorageError, match="another program replaced it meanwhile"):
        Memory.load("default", home=home)
    monkeypatch.undo()
    assert texts(home).keys() == {"first", "second", "third", "foreign"}


def test_database_removed_while_open_is_saved_by_its_process(home: Path, running: Program) -> None:
    running.ask("write", "third", "text of third")
    remove_log(home, "state.db", "state.db-wal", "state.db-shm")
    running.end()
    with pytest.raises(StorageError, match=r"rename .*state-left-[0-9a-f]{16}\.db to state\.db"):
        Memory.load("default", home=home)
    (saved,) = (home / "default").glob("state-left-*.db")
    saved.rename(home / "default" / "state.db")
    assert texts(home).keys() == {"first", "second", "third"}


def test_vault_deleted_while_open_is_not_saved(home: Path, running: Program) -> None:
    names = ["ipfsmem.json", "state.db", "state.db-wal", "state.db-shm"]
    remove_log(home, *names)
    running.end()
    assert not list((home / "default").glob("state-left-*"))
