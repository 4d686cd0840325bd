"""The list of operations on a vault: recorded once, with the interface, bounded, sealed like the vault,
without texts."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.device.replica import Environment
from ipfsmem.errors import KeyNameError, NotFoundError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.open_vault.audit import acting_as
from ipfsmem.operations.context import context
from ipfsmem.testing import MockClock
from ipfsmem.tools import toolset
from ipfsmem.vault.home import Home
from ipfsmem.wording import moment_of
from tests.support.operation_rows import FACT


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path) as made:
        yield made


def told(memory: Memory, **chosen: object) -> list[str]:
    """Return the operations, oldest first, as `face operation scope/key outcome`."""
    found = memory.operations.list(**chosen)
    return [
        " ".join(filter(None, (one.face, one.by, one.operation, f"{one.scope}/{one.key}", one.outcome)))
        for one in reversed(found)
    ]


def settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    (tmp_path / "config.toml").write_text(f"[operations]\nkept = {kept}\n")
    monkeypatch.setenv("IPFSMEM_CONFIG", str(tmp_path / "config.toml"))


def test_forgetting_a_scope_without_memories_is_recorded_as_done(memory: Memory) -> None:
    memory.scopes.make("work")
    assert memory.scopes.forget("work").forgotten == 0
    assert told(memory)[-1] == "python scope forget work/work"


def test_preview_of_a_program_is_recorded(memory: Memory) -> None:
    memory.write("tone", "direct")
    memory.context(preview=True)
    with acting_as("http", "token1"):
        context.run(memory._view(), {"preview": True}, "http")
    assert [one.split()[:3] for one in told(memory)] == [
        ["python", "write", "/tone"],
        ["http", "token1", "context"],
    ]


def test_writes_are_audited_once_with_interface_and_reads_are_not(memory: Memory) -> None:
    memory.write("tone", "direct")
    memory.list(), memory.read("tone"), memory.status(), memory.operations.list()
    with acting_as("http", "token1"):
        memory.scope("work").facts.add("User likes tea")
        memory.recall("what is said directly")
    with pytest.raises(NotFoundError):
        memory.facts.delete("nothing")
    memory.dreams.run()
    assert told(memory) == [
        "python write /tone",
        "http token1 fact add work/",
        "http token1 recall /",
        "python fact delete /nothing NotFoundError",
        "python dream /",
    ]
    assert memory.operations.counts() == {
        "write": 1,
        "fact add": 1,
        "recall": 1,
        "fact delete": 1,
        "dream": 1,
    }


def test_name_that_is_not_text_is_refused_and_recorded(memory: Memory) -> None:
    with pytest.raises(KeyNameError):
        memory.write("k\ud800", "x")
    with pytest.raises(UsageError, match="invalid session name"):
        memory.sessions.add("k\ud800", [{"role": "user"}])
    with pytest.raises(UsageError, match="half of a character"):
        memory.facts.add("tea \ud800")
    assert told(memory) == [
        "python write /k? KeyNameError",
        "python session add /k? UsageError",
        "python fact add / UsageError",
    ]


def test_operations_are_filtered_by_name_scope_and_time(tmp_path: Path) -> None:
    clock = MockClock()
    with Memory.create(
        "m", "local", home=Home(folder=tmp_path, environment=Environment(now=lambda: clock.ms))
    ) as memory:
        memory.write("tone", "direct")
        memory.sessions.create("chat", title="A chat")
        clock.advance(2 * 86_400)
        memory.scope("work").write("plan", "soon")
        memory.scopes.title("work", "The work")
        memory.sessions.add("chat", [{"role": "user", "content": "hello"}])
        assert told(memory, operation="write") == ["python write /tone", "python write work/plan"]
        assert told(memory, operation="session") == [
            "python session create /chat",
            "python session add /chat",
        ]
        assert told(memory, scope="work") == ["python write work/plan", "python scope title work/work"]
        assert len(told(memory, scope="")) == 3 and told(memory, limit=1) == ["python session add /chat"]
        assert told(memory, operation="write", since="24h") == ["python write work/plan"]
        day = memory.operations.list(operation="write")[-1].at
        assert len(told(memory, since="1970-01-01")) == 5
        for wrong in ("soon", "24", "2026-02-30", ""):
            with pytest.raises(UsageError, match=r"not a moment|since is empty"):
                memory.operations.list(since=wrong)
        with pytest.raises(UsageError, match="limit"):
            memory.operations.list(limit=0)
    assert moment_of("2h", day) == day - 7_200_000
    assert moment_of("1970-01-02", 0) == moment_of("1970-01-02T01:00:00+01:00", 0) == 86_400_000


def test_forget_of_a_deleted_fact_by_a_model_keeps_its_history(memory: Memory) -> None:
    memory.facts.add("User likes tea", "drinks")
    memory.facts.delete(FACT)
    (tool,) = toolset(memory, ["forget"])
    assert tool.call(key=FACT).is_error
    assert memory.facts.restore(FACT, 1).text == "User likes tea"
    assert memory.operations.list(operation="forget")[0].outcome == "NotFoundError"


@pytest.mark.parametrize("export", ["export_html", "export_published"])
def test_export_of_a_published_version_is_recorded(memory: Memory, export: str) -> None:
    with pytest.raises((NotFoundError, UsageError)) as refused:
        getattr(memory.bundles, export)(io.BytesIO())
    assert told(memory, operation="export") == [f"python export / {refused.value.kind}"]


def test_export_for_a_program_is_recorded_also_if_it_fails(memory: Memory) -> None:
    memory.scope("work").write("plan", "Sail.")
    assert b"Sail." in memory.scope("work").bundles.export_for("initrunner")
    with pytest.raises(NotFoundError):
        memory.scope("play").bundles.export_for("initrunner")
    with pytest.raises(UsageError, match="program must be"):
        memory.bundles.export_for("notion")  # type: ignore[arg-type]
    assert told(memory, operation="export") == ["python export work/", "python export play/ NotFoundError"]


def test_operations_are_limited_to_the_newest_or_disabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_say(tmp_path, monkeypatch, 20)
    with Memory.create("m", "local", home=tmp_path) as memory:
        sizes = []
        for number in range(90):
            memory.hidden.bring_back([])
            sizes.append((tmp_path / "m" / "operations").stat().st_size)
            if number == 50:
                memory.write("tone", "direct")
        assert len(memory.operations.list(limit=1000)) == 20
        assert max(sizes) <= 37 * sizes[0] and told(memory, operation="write") == []
    settings_say(tmp_path, monkeypatch, 0)
    (tmp_path / "m" / "operations").unlink()
    with Memory.load("m", home=tmp_path) as memory:
        memory.write("tone", "short")
        assert not memory.operations.list() and not (tmp_path / "m" / "operations").exists()


def test_sealed_operation_list_hides_names_and_their_lengths(tmp_path: Path) -> None:
    with Memory.create(
        "m", "encrypted-ipfs", passphrase=False, provider=str(tmp_path), home=tmp_path
    ) as memory:
        file = tmp_path / "m" / "operations"
        sizes = []
        with acting_as("mcp", "a client whose name is long, longer than anybody would have it, é" * 3):
            for key in ("k", "canary" + "x" * 58):
                memory.write(key, "hidden words")
                sizes.append(file.stat().st_size)
        assert sizes[1] == 2 * sizes[0]
        assert b"canary" not in file.read_bytes() and b"write" not in file.read_bytes()
        assert [one.key[:6] for one in memory.operations.list()] == ["canary", "k"]
        assert memory.operations.list()[0].by.startswith("a client whose name")
        (tmp_path / "other").mkdir()
    with Memory.create(
        "o", "encrypted-ipfs", passphrase=False, provider=str(tmp_path / "other"), home=tmp_path
    ) as other:
        (tmp_path / "o" / "operations").write_bytes(file.read_bytes())
        assert not other.operations.list()  # sealed with another device's keys


def test_damaged_operation_list_loses_only_damaged_records(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "m" / "operations"
    for key in ("one", "two", "three"):
        memory.write(key, "x")
    data = bytearray(file.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 20] = b"\xff" * 20
    file.write_bytes(bytes(data) + b"half a record")
    assert told(memory) == ["python write /one", "python write /three"]
    memory.write("four", "x")
    assert told(memory)[-1] == "python write /four" and file.stat().st_size % (len(data) // 3) == 0
    file.unlink()
    file.mkdir()
    memory.write("five", "x")
    assert memory.read("five") is not None


def test_two_processes_write_one_operation_list(tmp_path: Path) -> None:
    with Memory.create("m", "local", home=tmp_path) as one, Memory.load("m", home=tmp_path) as other:
        for memory in (one, other, one, other):
            memory.note("said")
        assert len(one.operations.list()) == len(other.operations.list()) == 4


def test_operation_added_while_the_list_is_trimmed_remains(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.device import operations

    file, write = tmp_path / "m" / "operations", operations.write_atomic
    memory.write("first", "x")
    row = file.read_bytes()

    def late(path: Path, data: bytes, *, durable: bool) -> None:
        with file.open("ab") as old:
            write(path, data, durable=durable)
            old.write(row)

    monkeypatch.setattr(operations, "write_atomic", late)
    for kept in (1, 20):
        for number in range(40):
            one = operations.Operation(number, "note", "", "", "cli", "", "")
            operations.note_operation(memory.replica, one, kept)
    assert [one.key for one in operations.operations(memory.replica, 1_000)].count("first") >= 2
    assert file.stat().st_size % len(row) == 0


_NOTING = """
import sys
from pathlib import Path
from typing import Any
from ipfsmem.device import operations
from ipfsmem.device.operations import Operation, note_operation
from ipfsmem.memory import Memory
operations._WAIT = 600.0  # on a busy machine the other process holds the lock for long
with Memory.load("m", home=Path(sys.argv[1])) as memory:
    for number in range(3_000):
        note_operation(memory.replica, Operation(10, "note", "", f"{sys.argv[2]} {number}", "cli", "", ""), 100_000)
"""


def test_operations_of_other_processes_survive_trimming_of_the_list(memory: Memory, tmp_path: Path) -> None:
    """Two processes append to the list without a lock while this one rewrites it again and again."""
    from ipfsmem.device import operations

    noting = [subprocess.Popen([sys.executable, "-c", _NOTING, str(tmp_path), name]) for name in "ab"]
    while any(one.poll() is None for one in noting):
        operations.note_operation(
            memory.replica, operations.Operation(1, "old", "", "", "cli", "", ""), 100_000
        )
        operations.forget_operations(memory.replica, 5)
    assert [one.returncode for one in noting] == [0, 0]
    kept = [one.key for one in operations.operations(memory.replica, 100_000) if one.at == 10]
    assert sorted(kept) == sorted(f"{name} {number}" for name in "ab" for number in range(3_000))


def _half_noted(memory: Memory, tmp_path: Path) -> tuple[Path, bytes]:
    """Return a list of one old operation and the first half of one that another process is appending, and
    its second half."""
    from ipfsmem.device import operations

    for at in (1, 9):
        operations.note_operation(
            memory.replica, operations.Operation(at, "note", "", f"at {at}", "cli", "", ""), 100
        )
    path = operations._path(memory.replica)
    assert path is not None
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    return path, data[-100:]


def test_operation_partly_written_during_a_rewrite_is_kept(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.device import operations

    path, rest = _half_noted(memory, tmp_path)
    really = operations.write_atomic

    def meanwhile(target: Path, data: bytes, **how: Any) -> None:
        with path.open("ab") as file:
            file.write(rest)
        really(target, data, **how)

    monkeypatch.setattr(operations, "write_atomic", meanwhile)
    assert operations.forget_operations(memory.replica, 5) == 1
    assert [one.key for one in operations.operations(memory.replica, 100)] == ["at 9"]


def test_operation_is_appended_after_one_that_is_being_written(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.device import operations

    path, rest = _half_noted(memory, tmp_path)
    left, really = [rest], os.write

    def after_the_other(fd: int, data: bytes) -> int:
        if left and os.path.samestat(os.fstat(fd), path.stat()):
            with path.open("ab", buffering=0) as file:
                file.write(left.pop())
        return really(fd, data)

    monkeypatch.setattr(os, "write", after_the_other)
    operations.note_operation(memory.replica, operations.Operation(10, "note", "", "new", "cli", "", ""), 100)
    monkeypatch.undo()
    found = [one.key for one in operations.operations(memory.replica, 100)]
    assert found == ["new", "at 9", "at 1"]


def test_operation_is_written_completely_in_several_small_writes(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.device import operations

    really = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: really(fd, bytes(data)[:7]))
    for at in (1, 9):
        operations.note_operation(
            memory.replica, operations.Operation(at, "note", "", f"at {at}", "cli", "", ""), 100
        )
    monkeypatch.undo()
    assert [one.key for one in operations.operations(memory.replica, 100)] == ["at 9", "at 1"]


def test_operation_split_by_another_process_is_written_again(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipfsmem.device import operations

    _half_noted(memory, tmp_path)
    path = operations._path(memory.replica)
    assert path is not None
    path.unlink()
    really, between = os.write, [b"\0" * 7]

    def in_pieces(fd: int, data: bytes) -> int:
        if not os.path.samestat(os.fstat(fd), path.stat()):
            return really(fd, data)
        written = really(fd, bytes(data)[:100])
        if between:
            with path.open("ab", buffering=0) as file:
                file.write(between.pop())
        return written

    monkeypatch.setattr(os, "write", in_pieces)
    operations.note_operation(memory.replica, operations.Operation(10, "note", "", "new", "cli", "", ""), 100)
    monkeypatch.undo()
    assert [one.key for one in operations.operations(memory.replica, 100)] == ["new"]


def test_requested_sync_is_audited_and_background_sync_is_not(tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()

    async def play(memory: Memory) -> None:
        await memory.sync()
        async with memory.autosync(every=None, idle=0.01):
            memory.note("said")
            await memory.flush()
        await memory.maintenance.gc(dry_run=True)
        await memory.maintenance.gc()

    with Memory.create(
        "m", "encrypted-ipfs", passphrase=False, provider=str(tmp_path / "stick"), home=tmp_path
    ) as memory:
        asyncio.run(play(memory))
        assert told(memory) == ["python sync /", "python note /", "python gc /"]


def test_lowered_limit_shortens_the_list_at_the_next_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_say(tmp_path, monkeypatch, 100)
    with Memory.create("m", "local", home=tmp_path) as memory:
        memory.hidden.bring_back([])
        size = (tmp_path / "m" / "operations").stat().st_size
        for _ in range(29):
            memory.hidden.bring_back([])
        assert (tmp_path / "m" / "operations").stat().st_size == 30 * size
    settings_say(tmp_path, monkeypatch, 3)
    with Memory.load("m", home=tmp_path) as memory:
        memory.hidden.bring_back([])
        assert (tmp_path / "m" / "operations").stat().st_size == 3 * size
