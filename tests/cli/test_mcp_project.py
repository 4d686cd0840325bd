"""`ipfsmem serve mcp` in a project: calls without a scope use the scope connected to the folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.agents.projects import bind, choose_scope
from ipfsmem.files.projects import project_at
from ipfsmem.memory import Memory
from tests.support.extras import need_extra
from tests.support.mcp_lab import play, program, surroundings

HELLO = {"protocolVersion": "2025-06-18", "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    need_extra("mcp", "mcp_types")
    with Memory.create("default", "local", home=tmp_path / "ipfsmem") as memory:
        memory.write("tone", "Direct, for everybody.")
        for name in ("widget", "other"):
            (tmp_path / name / "src").mkdir(parents=True)
            project = project_at(tmp_path / name)
            bind(memory, project, choose_scope(memory, project, scope=name))
            memory.scope(name).write("build", f"make {name}", description=f"how {name} is built")
    return tmp_path


def ask_server(
    home: Path, folder: Path, *calls: tuple[str, dict[str, Any]], options: tuple[str, ...] = ()
) -> list[str]:
    """Return the texts of some answers of a server started in a folder, to a client without roots."""
    lines = [{"id": 0, "method": "initialize", "params": {**HELLO, "capabilities": {}}}]
    lines += [
        {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": given}}
        for number, (tool, given) in enumerate(calls, 1)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "ipfsmem.cli", "serve", "mcp", *options],
        input="\ufeff" + "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\r\n" for line in lines),
        cwd=folder,
        env=surroundings(home),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    answers = {one["id"]: one["result"] for one in map(json.loads, done.stdout.splitlines())}
    return [answers[number]["content"][0]["text"] for number in range(1, len(calls) + 1)]


def test_calls_in_a_connected_folder_use_the_scope_of_its_project(home: Path) -> None:
    recalled, listed, read, below, made, shared = ask_server(
        home,
        home / "widget" / "src",
        ("recall", {"query": "how is it built"}),
        ("list_memories", {}),
        ("read_memory", {"key": "build"}),
        ("read_memory", {"key": "tone"}),
        ("remember", {"key": "owner", "body": "Team blue owns it."}),
        ("remember", {"key": "name", "body": "Called Alex.", "scope": ""}),
    )
    assert "> make widget" in recalled and "make other" not in recalled
    assert "widget (this project), then the default scope. Other scopes: other." in listed
    assert "> make widget" in read and "> Direct, for everybody." in below
    assert "widget/owner is remembered" in made and "name is remembered" in shared
    with Memory.load(home=home / "ipfsmem") as memory:
        assert memory.scope("widget").read("owner") is not None and memory.read("owner") is None
        assert memory.read("name") is not None and memory.scope("widget").read("name") is None


def test_calls_elsewhere_or_with_a_scope_use_no_project(home: Path) -> None:
    (elsewhere,) = ask_server(home, home, ("read_memory", {"key": "build"}))
    assert "there is no memory build" in elsewhere
    chosen, named = ask_server(
        home,
        home / "widget",
        ("read_memory", {"key": "build"}),
        ("read_memory", {"key": "build", "scope": "widget"}),
        options=("--scope", "other"),
    )
    assert "> make other" in chosen and "> make widget" in named
    (nobody,) = ask_server(home, home / "widget", ("read_memory", {"key": "build"}), options=("--scope", ""))
    assert "there is no memory build" in nobody


def test_mcp_roots_override_the_working_folder_and_may_change(home: Path) -> None:
    """The client is the official one; the server asks it for its roots."""

    async def work() -> None:
        from mcp import Client, types

        roots = ["file:///nowhere", (home / "other" / "src").as_uri()]
        ask_server: list[int] = []

        async def told(ctx: Any) -> types.ListRootsResult:
            ask_server.append(len(roots))
            return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in roots])

        params = program(home)
        params.cwd = str(home / "widget")
        async with Client(params, mode="legacy", list_roots_callback=told) as client:
            read = await client.call_tool("read_memory", {"key": "build"})
            assert "> make other" in read.content[0].text
            roots[:] = [(home / "widget").as_uri()]
            await client.send_roots_list_changed()
            read = await client.call_tool("read_memory", {"key": "build"})
            assert "> make widget" in read.content[0].text and ask_server == [2, 1]

    play(work)


@pytest.mark.parametrize("root", ["vscode-remote://ssh/work", "file://server/share", "file:///elsewhere"])
def test_mcp_roots_of_other_machines_select_no_project(home: Path, root: str) -> None:
    roots = {"jsonrpc": "2.0", "id": "ipfsmem-roots", "result": {"roots": [{"uri": root}]}}
    lines = [
        {"id": 0, "method": "initialize", "params": {**HELLO, "capabilities": {"roots": {}}}},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "read_memory", "arguments": {"key": "build"}}},
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "serve", "mcp"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home / "widget", env=surroundings(home), text=True,
    )  # fmt: skip
    with server:
        assert server.stdin is not None and server.stdout is not None
        for line in lines:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
        server.stdin.flush()
        found: dict[str, Any] = {}
        while found.get("id") != 1:
            found = json.loads(server.stdout.readline())
            if found.get("method") == "roots/list":
                server.stdin.write(json.dumps(roots) + "\n")
                server.stdin.flush()
        server.stdin.close()
    assert found["result"]["isError"] and "there is no memory build" in found["result"]["content"][0]["text"]


def test_mcp_roots_are_converted_to_local_folders() -> None:
    from ipfsmem.mcp.roots import folders_of

    said = [
        "file:///a%20b/c",
        "https://example.org/x",
        "file://other-host/x",
        "file://localhost/y",
        "nonsense",
        "file://[",
        "",
    ]
    assert folders_of(said) == [Path("/a b/c"), None, None, Path("/y"), None, None, None]
    assert folders_of(["file:///C:/work"]) == [Path("C:/work")]
    assert len(folders_of(f"file:///x{n}" for n in range(1_000))) == 20


def test_project_connected_while_the_server_runs_is_used(home: Path) -> None:
    (home / "late").mkdir()

    async def work() -> None:
        from mcp import Client

        params = program(home)
        params.cwd = str(home / "late")
        async with Client(params, mode="legacy") as client:
            assert (await client.call_tool("read_memory", {"key": "build"})).is_error
            with Memory.load(home=home / "ipfsmem") as memory:
                project = project_at(home / "late")
                bind(memory, project, choose_scope(memory, project, scope="widget"))
            read = await client.call_tool("read_memory", {"key": "build"})
            assert "> make widget" in read.content[0].text
            listed = await client.list_resources()
            assert "memory://widget/build" in [str(one.uri) for one in listed.resources]

    play(work)


def test_forgotten_scope_of_a_project_is_not_used(tmp_path: Path) -> None:
    from ipfsmem.mcp.roots import Projects

    (tmp_path / "widget").mkdir()
    with Memory.create("default", "local", home=tmp_path / "ipfsmem") as memory:
        projects = Projects(tmp_path / "widget")
        assert projects.scope_of(memory, None) == ""
        project = project_at(tmp_path / "widget")
        bind(memory, project, choose_scope(memory, project, scope="widget"))
        assert projects.scope_of(memory, None) == "widget"
        memory.scopes.forget("widget")
        assert projects.scope_of(memory, None) == ""
