"""The memory tool: each case of the package `anthropic`, and pending texts, devices and history."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.adapters import memory_directory
from ipfsmem.adapters.anthropic import MemoryDirectory, async_memory_tool, memory_tool
from ipfsmem.adapters.memory_directory import CommandError
from ipfsmem.adapters.memory_paths import PathError, name_below, path_of, relative, shown, stored
from ipfsmem.bundle.memory_file import parse_memory
from ipfsmem.errors import FormatError, NotFoundError, PassphraseError, UsageError
from ipfsmem.memory import Memory
from tests.support.cancelling import ended_when_cancelled
from tests.support.device_lab import Lab
from tests.support.effort import cases
from tests.support.extras import need_extra
from tests.unit.adapters.memory_tool_cases import (
    CASES,
    Case,
    create,
    delete,
    insert,
    rename,
    replace,
    view,
)


def _utf8(text: str) -> bytes:
    return text.encode(errors="ignore")


EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


#: One worker for all tests: importing the package takes seconds.
pytestmark = pytest.mark.xdist_group("anthropic")


@pytest.fixture(scope="module")
def tools() -> ModuleType:
    return need_extra("anthropic", "anthropic.tools")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def files(memory: Memory) -> dict[str, str]:
    """Return the files below /memories."""
    found = {}
    for item in memory.list():
        reading = memory.read(item.key)
        assert reading is not None
        path = path_of(item.key, item.file)
        found[path] = shown(path, reading.data).decode()
    return found


def refusal(directory: MemoryDirectory, command: object) -> str:
    with pytest.raises(CommandError) as caught:
        directory.run(command)
    return str(caught.value)


def check(case: Case, outcome: tuple[str | None, str | None], memory: Memory) -> None:
    assert outcome == (case.says, case.refused)
    if case.files is not None:
        assert files(memory) == case.files


# -- the cases of the package ------------------------------------------------------------------------------------


@EVERY_CASE
def test_each_case_passes_without_the_package(memory: Memory, case: Case) -> None:
    directory = MemoryDirectory(memory)
    for command in case.given:
        directory.run(command)
    if case.refused is not None:
        check(case, (None, refusal(directory, case.when)), memory)
    else:
        check(case, (directory.run(case.when), None), memory)


@EVERY_CASE
def test_each_case_passes_with_the_package(memory: Memory, case: Case, tools: ModuleType) -> None:
    tool = memory_tool(memory)
    assert isinstance(tool, tools.BetaAbstractMemoryTool)
    for command in case.given:
        tool.call(command)
    try:
        outcome = str(tool.call(case.when)), None
    except tools.ToolError as error:
        outcome = None, str(error)
    check(case, outcome, memory)


@EVERY_CASE
def test_each_case_passes_with_the_asynchronous_package(
    memory: Memory, case: Case, tools: ModuleType
) -> None:
    tool = async_memory_tool(memory)
    assert isinstance(tool, tools.BetaAsyncAbstractMemoryTool)

    async def run() -> tuple[str | None, str | None]:
        for command in case.given:
            await tool.call(command)
        try:
            return str(await tool.call(case.when)), None
        except tools.ToolError as error:
            return None, str(error)

    check(case, asyncio.run(run()), memory)


def test_cancelled_command_is_complete_when_it_ends(memory: Memory, tools: ModuleType) -> None:
    create = {"command": "create", "path": "/memories/a.md", "file_text": "kept"}

    async def use() -> None:
        await ended_when_cancelled(memory, async_memory_tool(memory).call(create))

    asyncio.run(use())
    assert files(memory) == {"a.md": "kept"}


def test_typed_commands_are_accepted(memory: Memory, tools: ModuleType) -> None:
    """The runner passes typed values and calls their methods."""
    types = need_extra("anthropic", "anthropic.types.beta")
    tool = memory_tool(memory)

    def typed(kind: str, command: dict[str, Any]) -> str:
        value = getattr(types, f"BetaMemoryTool20250818{kind}Command")(**command)
        return str(getattr(tool, command["command"])(value))

    assert "created" in typed("Create", create("/memories/a.md", "one\ntwo"))
    assert "one" in typed("View", view("/memories/a.md", 1, 1))
    assert "edited" in typed("StrReplace", replace("/memories/a.md", "one", "1"))
    assert "edited" in typed("Insert", insert("/memories/a.md", 0, "zero"))
    assert "renamed" in typed("Rename", rename("/memories/a.md", "/memories/b.md"))
    assert files(memory) == {"b.md": "zero\n1\ntwo\n"}
    assert "deleted" in typed("Delete", delete("/memories/b.md"))
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert memory_tool(memory, cache_control={"type": "ephemeral"}).to_dict()["cache_control"]
    tool.call(create("/memories/c.txt", "c"))
    assert tool.clear_all_memory() == "All memory cleared" and files(memory) == {}


def test_random_commands_answer_like_the_tool_of_the_package(tmp_path: Path, tools: ModuleType) -> None:
    random = Random(7)
    paths = [
        "a.md",
        "b.txt",
        "d/a.md",
        "d/e/f",
        "d/e/g.md",
        "d",
        "d/e",
        "Ünï côde.md",
        ".hidden",
        "MEMORY.md",
        "../x",
        "",
    ]
    texts = [
        "",
        "one",
        "one\ntwo\n",
        "\n\n",
        "---\nname: N\n---\n\nbody\n",
        "one one",
        "\ufeffbom",
    ]
    for turn in range(cases(6, 200)):
        theirs = tools.BetaLocalFilesystemMemoryTool(str(tmp_path / str(turn)))
        with Memory.load(f"x{turn}", mode="none", home=tmp_path / "home") as memory:
            ours = memory_tool(memory)
            for _ in range(25):
                command = _drawn(random, paths, texts)
                if _only_a_disk(command, files(memory)) or _loses_a_line(command, files(memory)):
                    continue
                assert _answer(ours, command, tools) == _answer(theirs, command, tools), command
                _drop_empty_folders(theirs.memory_root)
                assert files(memory) == _on_disk(theirs.memory_root), command


def _drawn(random: Random, paths: list[str], texts: list[str]) -> dict[str, Any]:
    path, other = (f"/memories/{random.choice(paths)}" for _ in range(2))
    drawn = [
        view(path),
        view(path, random.randint(0, 3), random.randint(-1, 4)),
        create(path, random.choice(texts)),
        create(path, random.choice(texts)),
        replace(path, random.choice(["one", "two", "zzz"]), random.choice(["", "1\n2"])),
        insert(path, random.randint(-1, 4), random.choice(["new", "new\n\n", ""])),
        delete(path),
        rename(path, other),
    ]
    return random.choice(drawn)


def _only_a_disk(command: dict[str, Any], known: dict[str, str]) -> bool:
    """Return whether the package's tool fails with an error of the operating system: a file used as a
    folder, or a folder moved into itself."""
    for path in (command.get("path"), command.get("new_path"), command.get("old_path")):
        if path and any(path.startswith(f"/memories/{file}/") for file in known):
            return True
    return command["command"] == "rename" and command["new_path"].startswith(
        command["old_path"].rstrip("/") + "/"
    )


def _loses_a_line(command: dict[str, Any], known: dict[str, str]) -> bool:
    """Return whether the package's tool drops an empty last line, of the file or of the inserted text."""
    if command["command"] != "insert":
        return False
    before = known.get(command["path"].removeprefix("/memories/"), "")
    return not command["insert_text"].strip("\n") or f"\n{before}".endswith("\n\n")


def _answer(tool: Any, command: dict[str, Any], tools: Any) -> str:
    try:
        said = str(tool.call(command))
    except tools.ToolError as error:
        return f"refused: {error}"
    if not said.startswith("Here're"):
        return said
    # A folder's own size depends on the disk, and the package's tool keeps doubled slashes of the command.
    first, *lines = said.replace("//", "/").split("\n")
    of_folders = [line.partition("\t")[2].rstrip("/") if line.endswith("/") else line for line in lines[1:]]
    return "\n".join([first, *of_folders])


def _on_disk(root: Path) -> dict[str, str]:
    return {
        one.relative_to(root).as_posix(): one.read_bytes().decode()
        for one in root.rglob("*")
        if one.is_file()
    }


def _drop_empty_folders(root: Path) -> None:
    for folder, _, _ in os.walk(root, topdown=False):
        if Path(folder) != root and not any(Path(folder).iterdir()):
            Path(folder).rmdir()


# -- paths --------------------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40)


@given(st.lists(NAMES, min_size=1, max_size=4), st.binary(max_size=80) | st.text(max_size=80).map(_utf8))
def test_file_at_any_legal_path_keeps_its_bytes(names: list[str], data: bytes) -> None:
    try:
        path = relative("/memories/" + "/".join(names))
        data.decode()
        parse_memory(data)
        made = stored(path, data)
    except (PathError, FormatError, UnicodeDecodeError):
        return
    if not path:
        return
    assert shown(path, made) == data
    assert path_of(name_below(path).key, parse_memory(made)) == path
    assert relative(f"/memories/{path}") == path


@pytest.mark.parametrize(
    "text",
    [
        b"---\nname: Mine\n---\n\nbody",
        b"---\norigin_name: other.txt\n---\n\nbody\n",
        b"---\r\nname: Mine\r\n---\r\n\r\nbody\r\n",
        b"\xef\xbb\xbf---\nname: Mine\n---\n",
        b"---\n---\n",
        b"---\n# only a comment\n---\nbody",
        b"---\n" + b"".join(b"field%d: %s\n" % (n, b"v" * 80) for n in range(45)) + b"---\n\nbody\n",
        b"\n\n\n",
        b"",
    ],
)
def test_texts_with_their_own_headers_keep_their_bytes(memory: Memory, text: bytes) -> None:
    directory = MemoryDirectory(memory)
    for path in ("notes/any.txt", "plain.md", "MEMORY.md"):
        directory.run(create(f"/memories/{path}", text.decode()))
        assert files(memory)[path].encode() == text


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../x",
        "/memories/a/../../x",
        "/memories/..",
        "/memories/%2e%2e/x",
        "/memories/%2E%2E%2Fx",
        "/memories/%252e%252e/x",
        "/memories/%25252e%25252e%25252fx",
        "/memories/..%2fx",
        "/memories/..\\x",
        "/memories/a\\..\\..\\x",
        "/memories/..%5cx",
        "/memories/%c0%ae%c0%ae/x",
        "/memories/%c0%ae%c0%ae%c0%afx",
        "/memories/%u002e%u002e/x",
        "/memories/\uff0e\uff0e/x",
        "/memories/\u2025/x",
        "/memories/.. /..%20/x",
        "/memories/a\0b",
        "/memories/a\nb",
        "/memories/a\u2028b",
        "/memories/\ud800",
        "/memoriesx",
        "/memories.md",
        "memories/a",
        "/Memories/a",
        "",
        "/",
        "/memories/" + "a" * 256,
        "/memories/" + "a/" * 600 + "b",
        "/memories/role.conflict-1234abcd.md",
    ],
)
def test_invalid_paths_are_refused(memory: Memory, path: str) -> None:
    directory = MemoryDirectory(memory)
    for command in (view(path), create(path, "x"), delete(path), rename(path, "/memories/b")):
        assert refusal(directory, command).startswith("Path ")
    directory.run(create("/memories/a.md", "x"))
    assert refusal(directory, rename("/memories/a.md", path)).startswith("Path ")
    assert files(memory) == {"a.md": "x"}


def test_path_may_contain_harmless_dots_and_percent_signs(memory: Memory) -> None:
    directory = MemoryDirectory(memory)
    for path in ("100%.md", "a%2fb", "...", "a..b", "..a", "x/./y", "x//z", "x/q/../w", " lead", "trail "):
        directory.run(create(f"/memories/{path}", path))
    assert set(files(memory)) == {
        "100%.md", "a%2fb", "...", "a..b", "..a", "x/y", "x/z", "x/w", " lead", "trail "
    }  # fmt: skip


def test_memories_are_files_and_files_are_memories(memory: Memory) -> None:
    directory = MemoryDirectory(memory)
    memory.write("tone", "direct", name="Tone", type="feedback")
    assert "name: Tone" in directory.run(view("/memories/tone.md"))
    directory.run(create("/memories/role.md", "---\nname: Role\n---\n\nlikes tea\n"))
    reading = memory.read("role")
    assert reading is not None and reading.file.name == "Role" and reading.file.body == "likes tea"
    directory.run(create("/memories/Notes On X.txt", "---\ndescription: about X\n---\n\nx"))
    assert "about X" in memory.index()
    key = name_below("Notes On X.txt").key
    memory.write(key, "y", seen=memory.read(key))
    assert "\ty\n" in directory.run(view("/memories/Notes On X.txt"))
    # Each memory has one path.
    assert "does not exist" in refusal(directory, view(f"/memories/{key}.md"))
    assert "stands for the memory" in refusal(directory, create(f"/memories/{key}.md", "x"))
    assert "belongs elsewhere" in refusal(directory, _other("b"))


def _other(origin: str) -> dict[str, Any]:
    key = name_below(origin).key
    return create(f"/memories/{key}.md", f"---\norigin_name: {origin}\n---\n\ntext\n")


def test_scope_is_a_separate_directory(memory: Memory) -> None:
    directory = MemoryDirectory(memory.scope("project"))
    directory.run(create("/memories/sub/a.md", "in the scope"))
    assert files(memory) == {} and files(memory.scope("project")) == {"sub/a.md": "in the scope"}
    assert memory.scopes.names() == ["project"]


# -- what was shown -----------------------------------------------------------------------------------------------


def test_file_changed_since_it_was_shown_is_not_replaced(memory: Memory) -> None:
    first, second = MemoryDirectory(memory), MemoryDirectory(memory)
    path = "/memories/a/list.md"
    first.run(create(path, "one\ntwo\n"))
    second.run(view(path))
    second.run(replace(path, "two", "2"))
    for command in (
        replace(path, "one", "1"),
        insert(path, 0, "zero"),
        delete(path),
        delete("/memories/a"),
        rename(path, "/memories/b.md"),
        rename("/memories/a", "/memories/b"),
    ):
        assert "was changed since you viewed it" in refusal(first, command)
    assert files(memory) == {"a/list.md": "one\n2\n"}
    first.run(view(path))
    first.run(replace(path, "one", "1"))
    assert files(memory) == {"a/list.md": "1\n2\n"}
    assert "was changed since" in refusal(second, delete(path))
    second.run(view(path, 1, 1))
    second.run(delete(path))
    assert files(memory) == {}
    assert "does not exist" in refusal(first, view(path))


def test_deleted_file_can_be_created_again(memory: Memory) -> None:
    directory = MemoryDirectory(memory)
    for text in ("one", "two"):
        directory.run(create("/memories/a.txt", text))
        directory.run(delete("/memories/a.txt"))
    directory.run(create("/memories/a.txt", "three"))
    directory.run(replace("/memories/a.txt", "three", "3"))
    assert files(memory) == {"a.txt": "3"}


def test_concurrent_edits_of_one_file_on_two_devices_are_merged(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    b = lab.restore("b")
    lab.settle(a, b)
    one, other = MemoryDirectory(a), MemoryDirectory(b)
    path = "/memories/notes/list.txt"
    one.run(create(path, "one\n\ntwo\n\nthree\n"))
    lab.settle(a, b)
    other.run(view(path))
    one.run(replace(path, "one", "1"))
    other.run(replace(path, "three", "3"))
    lab.settle(a, b)
    assert files(a) == files(b) == {"notes/list.txt": "1\n\ntwo\n\n3\n"}
    assert "was changed since" in refusal(one, insert(path, 0, "zero"))
    assert "     1\t1" in one.run(view(path))
    one.run(insert(path, 0, "zero"))
    lab.settle(a, b)
    assert files(b) == {"notes/list.txt": "zero\n1\n\ntwo\n\n3\n"}


def test_pending_texts_are_not_files_until_approved(memory: Memory) -> None:
    memory.bundles.import_(
        json.dumps({"version": "memory/0.1", "files": {"role.md": "of others\n"}, "timeline": []}),
        foreign=True,
    )
    directory = MemoryDirectory(memory)
    assert "role.md" not in directory.run(view("/memories"))
    for command in (
        view("/memories/role.md"),
        delete("/memories/role.md"),
        insert("/memories/role.md", 0, "x"),
    ):
        assert "does not exist" in refusal(directory, command)
    directory.run(create("/memories/role.md", "mine\n"))
    assert "of others" not in directory.run(view("/memories/role.md"))
    (kept,) = memory.conflicts()
    assert [copy.reading.text for copy in kept.copies if copy.reading] == ["of others\n"]
    directory.run(delete("/memories/role.md"))
    (kept,) = memory.conflicts()
    memory.approve("role", alternative=kept.files[0])
    assert "of others" in directory.run(view("/memories/role.md"))


def test_session_parts_are_not_files(memory: Memory) -> None:
    memory.sessions.add("a", [{"content": "what was said"}])
    (part,) = (one.key for one in memory._open.memories.listing(sessions=True))
    directory = MemoryDirectory(memory)
    assert "session" not in directory.run(view("/memories"))
    assert "does not exist" in refusal(directory, view(f"/memories/{part}.md"))
    assert "stands for the memory" in refusal(directory, create(f"/memories/{part}.md", "x"))


# -- wrong input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        None,
        "view",
        7,
        [],
        {},
        {"command": None},
        {"command": "promote", "path": "/memories/a"},
        {"command": "view"},
        {"command": "view", "path": 7},
        view("/memories/a.md") | {"view_range": [1]},
        view("/memories/a.md") | {"view_range": ["1", "2"]},
        view("/memories/a.md") | {"view_range": [True, False]},
        {"command": "create", "path": "/memories/b"},
        create("/memories/b", "\ud800"),
        create("/memories/b", "x" * 1_000_000),
        create("/memories/b", "\n" * 1_000_000),
        create("/memories/h.md", "---\nname: " + "x" * 5000 + "\n---\n"),
        create("/memories/a.md/b", "x"),
        insert("/memories/a.md", 0, "x") | {"insert_line": "0"},
        insert("/memories/a.md", 0, "x") | {"insert_line": True},
        insert("/memories/a.md", 0, "x") | {"insert_line": 10**5000},
        insert("/memories/a.md", 0, "x") | {"insert_text": None},
        replace("/memories/a.md", "", "x"),
        replace("/memories", "a", "x"),
        replace("/memories/d", "a", "x"),
        rename("/memories/d", "/memories/d/e"),
        rename("/memories", "/memories/x"),
        rename("/memories/a.md", "/memories"),
        rename("/memories/a.md", "/memories/d"),
        delete("/memories/"),
    ],
)
def test_invalid_commands_are_refused(memory: Memory, command: object) -> None:
    directory = MemoryDirectory(memory)
    directory.run(create("/memories/a.md", "a"))
    directory.run(create("/memories/d/c.md", "c"))
    assert len(refusal(directory, command)) < 400
    assert files(memory) == {"a.md": "a", "d/c.md": "c"}


def test_folder_is_moved_atomically(memory: Memory) -> None:
    directory = MemoryDirectory(memory)
    there = {"d/a.txt": "a", "d/" + "x" * 250 + "/b.txt": "b", "d/c.txt": "c"}
    for path, text in there.items():
        directory.run(create(f"/memories/{path}", text))
    far = "/memories/" + "/".join(["y" * 200] * 4)
    assert "too long" in refusal(directory, rename("/memories/d", far))
    memory.sessions.add("x", [{"content": "said"}])
    assert files(memory) == there
    directory.run(rename("/memories/d", "/memories/e/f"))
    assert files(memory) == {path.replace("d/", "e/f/", 1): text for path, text in there.items()}
    assert "changed since" not in directory.run(replace("/memories/e/f/a.txt", "a", "A"))


def test_locked_vault_refers_the_model_to_the_user(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer does not mention a passphrase."""

    def locked(*_: Any, **__: Any) -> None:
        raise PassphraseError("this memory is locked")

    monkeypatch.setattr(memory, "list", locked)
    said = refusal(MemoryDirectory(memory), view("/memories"))
    assert "Ask the person to run: ipfsmem unlock" in said and "assphrase" not in said


def test_runner_of_the_package_uses_the_tool(memory: Memory, tools: ModuleType) -> None:
    """The real client and runner, with scripted answers and no network."""
    import anthropic as package
    import httpx2

    asked: list[Any] = []
    calls = [create("/memories/tea.md", "likes green tea\n"), view("/memories/../secret"), view("/memories")]

    def model(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        uses = [
            {"type": "tool_use", "id": f"use{n}", "name": "memory", "input": call}
            for n, call in enumerate(calls)
        ]
        first = len(asked) == 1
        return httpx2.Response(
            200,
            json={
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "scripted",
                "content": uses if first else [{"type": "text", "text": "done"}],
                "stop_reason": "tool_use" if first else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    with httpx2.Client(transport=httpx2.MockTransport(model)) as http:
        client = package.Anthropic(api_key="none", http_client=http)
        given: list[Any] = [{"role": "user", "content": "remember that I like green tea"}]
        runner = client.beta.messages.tool_runner(
            model="scripted", max_tokens=100, messages=given, tools=[memory_tool(memory)]
        )
        assert runner.until_done().content[0].text == "done"
    assert asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    answers = [(one.get("is_error", False), one["content"]) for one in asked[1]["messages"][-1]["content"]]
    assert [failed for failed, _ in answers] == [False, True, False]
    assert "would escape" in answers[1][1] and "/memories/tea.md" in answers[2][1]
    assert files(memory) == {"tea.md": "likes green tea\n"}


def test_closed_memory_is_refused(memory: Memory) -> None:
    directory = MemoryDirectory(memory)
    memory.close()
    assert "is closed" in refusal(directory, view("/memories"))


def test_fifty_commands_run_concurrently(memory: Memory, tools: ModuleType) -> None:
    tool = async_memory_tool(memory)

    async def one(number: int) -> None:
        await tool.call(create(f"/memories/{number}.txt", f"text {number}"))
        await tool.call(replace(f"/memories/{number}.txt", "text", "TEXT"))
        await tool.call(view("/memories"))

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(50)))

    asyncio.run(all_of_them())
    assert files(memory) == {f"{number}.txt": f"TEXT {number}" for number in range(50)}


def test_long_list_is_truncated_with_a_note(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_directory, "MAX_LISTED", 10)
    for number in range(12):
        memory.write(f"k{number}", "x")
    said = MemoryDirectory(memory).run(view("/memories"))
    assert said.count("\n") == 12 and "There may be more" in said


def test_missing_package_error_names_the_extra(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic.tools", None)
    monkeypatch.delitem(sys.modules, "ipfsmem.adapters.anthropic_tool", raising=False)
    with pytest.raises(UsageError, match="needs the extra anthropic") as caught:
        memory_tool(memory)
    assert caught.value.hint == "Install it with: pip install 'ipfsmem[anthropic]'"


def test_lines_with_windows_line_ends_are_edited_as_shown() -> None:
    memory = Memory.load("alex", "none")
    memory.write_text("plan", b"one\r\ntwo\r\nthree\r\nfour")
    directory = MemoryDirectory(memory)

    def data() -> bytes:
        found = memory.read("plan")
        assert found is not None
        return found.data

    path = "/memories/plan.md"
    seen = directory.run({"command": "view", "path": path})
    assert "\r" not in seen and "two" in seen
    for old, new, kept in (
        ("one\ntwo", "ONE\nTWO", b"ONE\r\nTWO\r\nthree\r\nfour"),
        ("TWO\r\nthree", "2\r\n3", b"ONE\r\n2\r\n3\r\nfour"),
        ("\nfour", "\nfour\nfive", b"ONE\r\n2\r\n3\r\nfour\r\nfive"),
    ):
        assert "edited" in directory.run(
            {"command": "str_replace", "path": path, "old_str": old, "new_str": new}
        )
        assert data() == kept
    directory.run({"command": "insert", "path": path, "insert_line": 1, "insert_text": "between\n"})
    assert data() == b"ONE\r\nbetween\r\n2\r\n3\r\nfour\r\nfive\r\n"
    directory.run({"command": "insert", "path": path, "insert_line": 6, "insert_text": "last"})
    assert data().endswith(b"five\r\nlast\r\n")
    memory.write_text("plan", b"a\nb\r\nc\nd\n")
    mixed = MemoryDirectory(memory)
    mixed.run({"command": "str_replace", "path": path, "old_str": "b\nc", "new_str": "B\nC"})
    assert data() == b"a\nB\nC\nd\n"
    mixed.run({"command": "str_replace", "path": path, "old_str": "a\nB", "new_str": "x"})
    assert data() == b"x\nC\nd\n"


def test_deleted_file_that_was_partly_shown_can_be_restored(memory: Memory) -> None:
    for name in ("unseen", "part", "seen", "mine", "moved"):
        memory.write(name, f"{name}\nsecond line")
    directory = MemoryDirectory(memory)
    directory.run({**view("/memories/part.md"), "view_range": [1, 1]})
    directory.run(view("/memories/seen.md"))
    directory.run(rename("/memories/moved.md", "/memories/away.md"))
    for name in ("unseen", "part", "seen", "away"):
        directory.run(delete(f"/memories/{name}.md"))
        assert memory.read(name) is None
    for name in ("unseen", "part", "away"):
        assert "second line" in memory.facts.restore(name).text
    with pytest.raises(NotFoundError):
        memory.facts.restore("seen")
