"""The nine graph tools compared with those of the MCP reference server `memory`: the same calls, answer by
answer.

Answers are compared as values: entities by name, relations by their ends. The order differs on purpose
(theirs by creation, ours by key), and the last test lists other intended differences."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.counterparts import need_program, npm_folder
from tests.support.extras import need_extra
from tests.support.mcp_lab import surroundings

pytestmark = pytest.mark.interop

ADA = {"name": "Ada", "entityType": "person", "observations": ["born 1815", "likes tea"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
OSLO = {"name": "Oslo", "entityType": "city", "observations": ["has a harbour"]}
WORKS = {"from": "Ada", "relationType": "works_at", "to": "Acme"}
LIES = {"from": "Acme", "relationType": "is_in", "to": "Oslo"}


class Server:
    """An MCP server as a program, spoken to line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        self._ask("initialize", hello)
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> dict[str, Any]:
        return {one["name"]: one for one in self._ask("tools/list", {})["tools"]}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured answer; of a refusal only that it is one."""
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments}, refused={"isError": True})
        if answer.get("isError"):
            return {"refused": True}
        return dict(answer["structuredContent"])

    def _ask(self, method: str, params: Any, refused: Any = None) -> Any:
        self._number += 1
        self._say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if said.get("id") == self._number:
                if "error" in said:
                    assert refused is not None, said
                    return refused
                return said["result"]
        raise AssertionError("the server ended")

    def _say(self, said: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()


@contextlib.contextmanager
def served(command: list[str], env: dict[str, str]) -> Iterator[Server]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )
    try:
        yield Server(process)
    finally:
        assert process.stdin and process.stdout
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Ours and theirs, both empty."""
    need_extra("mcp", "mcp_types")
    from ipfsmem.memory import Memory

    packages = npm_folder("mcp_memory").parent / "node_modules"
    theirs = packages / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"
    env = surroundings(tmp_path)
    with Memory.create("default", "local", home=tmp_path / "ipfsmem"):
        pass
    ours = [sys.executable, "-m", "ipfsmem.cli", "serve", "mcp", "--tools", "graph", "--structured"]
    kept = {**env, "MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    with served(ours, env) as one, served([need_program("node"), str(theirs)], kept) as other:
        yield one, other


def read(answer: dict[str, Any]) -> Any:
    """Return an answer as an agent reads it, in a canonical order."""
    if answer.get("refused"):
        return "refused"
    found: dict[str, Any] = {}
    if "entities" in answer:
        names = ("name", "entityType", "observations")
        found["entities"] = sorted(
            ({name: one[name] for name in names} for one in answer["entities"]), key=json.dumps
        )
    if "relations" in answer:
        found["relations"] = sorted(answer["relations"], key=json.dumps)
    for name in ("results", "success"):
        if name in answer:
            found[name] = answer[name]
    return found


def same(both: tuple[Server, Server], tool: str, **arguments: Any) -> Any:
    """Make a call on both: the answers are equal to an agent, and so is the graph afterwards."""
    ours, theirs = (one.call(tool, **arguments) for one in both)
    wanted = read(theirs)
    if tool == "create_relations" and wanted != "refused":
        assert read(ours)["relations"] == wanted["relations"], tool
    elif tool == "create_entities" and wanted != "refused":
        assert read(ours)["entities"] == wanted["entities"], tool
    else:
        assert read(ours) == wanted, tool
    graphs = [read(one.call("read_graph")) for one in both]
    assert graphs[0] == graphs[1], tool
    return wanted


def test_calls_have_the_same_answers_as_the_reference(both: tuple[Server, Server]) -> None:
    ours, theirs = both
    assert theirs.tools().keys() <= ours.tools().keys() and len(theirs.tools()) == 9
    for name, tool in theirs.tools().items():
        wanted = tool["inputSchema"].get("properties", {})
        given = ours.tools()[name]["inputSchema"]
        assert wanted.keys() <= given["properties"].keys(), name
        assert set(given.get("required", [])) <= set(tool["inputSchema"].get("required", [])), name
        for hint in ("readOnlyHint", "destructiveHint"):
            assert ours.tools()[name]["annotations"][hint] == tool["annotations"][hint], (name, hint)
    assert same(both, "read_graph") == {"entities": [], "relations": []}
    assert len(same(both, "create_entities", entities=[ADA, ACME, OSLO])["entities"]) == 3
    assert same(both, "create_entities", entities=[ADA])["entities"] == [], "it is there already"
    assert same(both, "create_relations", relations=[WORKS, LIES])["relations"] == [LIES, WORKS]
    assert same(both, "create_relations", relations=[WORKS])["relations"] == [], "it is there already"
    added = same(both, "add_observations", observations=[{"entityName": "Ada", "contents": ["born 1815", "writes"]}, {"entityName": "Acme", "contents": []}])  # fmt: skip
    assert [one["addedObservations"] for one in added["results"]] == [["writes"], []]


def test_searched_and_opened_entities_include_their_relations(both: tuple[Server, Server]) -> None:
    same(both, "create_entities", entities=[ADA, ACME, OSLO])
    same(both, "create_relations", relations=[WORKS, LIES])
    for query in (
        "tea",
        "TEA",
        "likes tea",
        "erso",
        "company",
        "Ada",
        "nothing of it",
        "a",
        "harbour",
        "815",
    ):
        same(both, "search_nodes", query=query)
    for names in (["Ada"], ["Acme"], ["Oslo", "Ada"], ["nobody"], [], ["Ada", "Ada"], ["nobody", "Acme"]):
        same(both, "open_nodes", names=names)
    assert same(both, "open_nodes", names=["Ada"])["relations"] == [WORKS]


def test_unknown_entities_are_skipped_or_refused_as_by_the_reference(both: tuple[Server, Server]) -> None:
    same(both, "create_entities", entities=[ADA, ACME])
    same(both, "create_relations", relations=[WORKS])
    half = [{"entityName": "Ada", "contents": ["new"]}, {"entityName": "nobody", "contents": ["x"]}]
    assert same(both, "add_observations", observations=half) == "refused", "and nothing of it was done"
    for tool, arguments in (
        ("delete_entities", {"entityNames": ["nobody"]}),
        ("delete_entities", {"entityNames": []}),
        ("delete_observations", {"deletions": [{"entityName": "nobody", "observations": ["x"]}]}),
        ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["never said"]}]}),
        ("delete_relations", {"relations": [{**WORKS, "relationType": "owns"}]}),
        ("delete_relations", {"relations": [{**WORKS, "to": "nobody"}]}),
        ("create_entities", {"entities": []}),
    ):
        same(both, tool, **arguments)
    for tool, wrong in (
        ("create_entities", {}),
        ("create_entities", {"entities": [{"name": "X"}]}),
        ("create_entities", {"entities": [{**ADA, "name": 1}]}),
        ("create_entities", {"entities": [{**OSLO, "observations": {"x": 1}}]}),
        ("create_relations", {"relations": [{"from": "Ada"}]}),
        ("add_observations", {"observations": "x"}),
        ("search_nodes", {}),
    ):
        assert same(both, tool, **wrong) == "refused", (tool, wrong)


def test_deleted_entities_lose_their_relations(both: tuple[Server, Server]) -> None:
    same(both, "create_entities", entities=[ADA, ACME, OSLO])
    same(
        both,
        "create_relations",
        relations=[WORKS, LIES, {"from": "Oslo", "relationType": "knows", "to": "Acme"}],
    )
    same(both, "delete_observations", deletions=[{"entityName": "Ada", "observations": ["likes tea", "x"]}])
    same(both, "delete_relations", relations=[WORKS, WORKS])
    same(both, "create_relations", relations=[WORKS])
    same(both, "delete_entities", entityNames=["Acme", "Acme", "nobody"])
    assert read(both[0].call("read_graph"))["relations"] == []
    same(both, "open_nodes", names=["Acme", "Ada"])
    same(both, "create_entities", entities=[ACME])
    assert read(both[0].call("read_graph"))["relations"] == [], "the new one is not the old one"


def test_intended_differences_from_the_reference_remain(both: tuple[Server, Server]) -> None:
    """The reference loses data in each of these cases."""
    ours, theirs = both
    for one in both:
        one.call("create_entities", entities=[ADA, ACME])
    # The reference silently drops new observations of an existing entity.
    more = {**ADA, "observations": ["wrote a program"]}
    assert [one.call("create_entities", entities=[more])["entities"] for one in both] == [[], []]
    said = [one.call("open_nodes", names=["Ada"])["entities"][0]["observations"] for one in both]
    assert said == [["born 1815", "likes tea", "wrote a program"], ["born 1815", "likes tea"]]
    # The reference creates a relation to a missing entity.
    nowhere = {**WORKS, "to": "nobody"}
    assert ours.call("create_relations", relations=[WORKS, nowhere]) == {"refused": True}
    assert ours.call("read_graph")["relations"] == [], "and the other one of that call is not made either"
    assert theirs.call("create_relations", relations=[nowhere])["relations"] == [nowhere]
    # The reference stores duplicates within one call twice.
    twice = {"name": "Bo", "entityType": "person", "observations": ["x"]}
    assert [len(one.call("create_entities", entities=[twice, twice])["entities"]) for one in both] == [1, 2]
    assert [len(one.call("create_relations", relations=[WORKS, WORKS])["relations"]) for one in both] == [
        1,
        2,
    ]
    # Names are equal regardless of case, and a relation has one form.
    assert ours.call("create_relations", relations=[{**WORKS, "relationType": "Works at"}])["relations"] == []
    assert len(ours.call("open_nodes", names=["ada"])["entities"]) == 1
    assert theirs.call("open_nodes", names=["ada"])["entities"] == []
    # Words are found in any order.
    assert [len(one.call("search_nodes", query="tea likes")["entities"]) for one in both] == [1, 0]
    # Empty names and observations are refused.
    for tool, empty in (
        ("create_entities", {"entities": [{**OSLO, "name": " "}]}),
        ("add_observations", {"observations": [{"entityName": "Ada", "contents": [" "]}]}),
        ("search_nodes", {"query": ""}),
    ):
        assert ours.call(tool, **empty) == {"refused": True} != theirs.call(tool, **empty), tool
