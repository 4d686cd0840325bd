"""The declared operations: generated files are up to date, and every interface calls `Operation.run`."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from ipfsmem.api.serving import ROUTES
from ipfsmem.cli.app import SHORT, group
from ipfsmem.errors import ClosedError, UsageError
from ipfsmem.groups import (
    Bundles,
    Dreams,
    Facts,
    Graph,
    Hidden,
    MemoryStack,
    MemoryTimeline,
    Scopes,
    Sessions,
    Usage,
    Values,
)
from ipfsmem.linked_folders import Folders
from ipfsmem.memory import Memory
from ipfsmem.operation import Cli, Operation, Parameter
from ipfsmem.operations import INDEX, load
from ipfsmem.operations.sync import Synced
from ipfsmem.sync.report import SyncReport
from ipfsmem.tools import toolset
from ipfsmem.upkeep import Agents, Maintenance, Members, Operations, Providers, Settings, Vaults

ROOT = Path(__file__).parents[2]
OPERATIONS = [load(name) for name in INDEX]
each = pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)


#: The groups of methods.
GROUPS = {
    "timeline": MemoryTimeline,
    "sessions": Sessions,
    "facts": Facts,
    "values": Values,
    "hidden": Hidden,
    "graph": Graph,
    "dreams": Dreams,
    "scopes": Scopes,
    "usage": Usage,
    "operations": Operations,
    "bundles": Bundles,
    "folders": Folders,
    "members": Members,
    "agents": Agents,
    "providers": Providers,
    "vaults": Vaults,
    "settings": Settings,
    "maintenance": Maintenance,
}


def command_of(op: Operation[..., Any]) -> click.Command | None:
    """Return its command; None if it has none."""
    found: click.Command | None = group if op.command else None
    for word in op.command.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
        assert found is not None, op.command
    return found


def generate() -> ModuleType:
    spec = spec_from_file_location("generate", ROOT / "tools" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.load("alex", "none") as memory:
        memory.write("tone", "direct music", name="Tone", type="user")
        yield memory


def test_generated_files_are_up_to_date() -> None:
    stale = [path for path, text in generate().files() if path.read_text("utf-8") != text]
    assert stale == [], "run: python tools/generate.py"


def test_every_route_of_an_operation_is_typed_in_typescript() -> None:
    tool = generate()
    table = tool.typescript()
    assert [
        one.name for one in tool.operations() if one.declared.http and f"  '{one.name}': " not in table
    ] == []


@pytest.mark.parametrize(
    ("page", "before", "begin"),
    [
        ("http.md", "| `POST /v1/context` |", "| `GET /v1/duplicates` |"),
        ("mcp.md", "| `find_path` | `graph.path` |", "| `list_facts` | `facts.list` |"),
    ],
)
def test_generator_adds_a_missing_row_after_the_one_before_it(page: str, before: str, begin: str) -> None:
    lines = (ROOT / "docs" / "reference" / page).read_text("utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith(begin)]
    lines.remove(row)
    made = generate()._TABLES[f"docs/reference/{page}"]("\n".join(lines)).splitlines()
    at = next(number for number, line in enumerate(made) if line.startswith(begin))
    assert made[at - 1].startswith(before)
    assert made[at] == row.partition("; ")[0].removesuffix(" |") + " |"


def test_generator_names_the_lines_that_a_new_command_needs() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    with pytest.raises(SystemExit, match="section of `dream duplicates` needs these two lines"):
        generate().cli_tables(page.replace("<!-- options of duplicates -->\n", ""))


@each
def test_operation_has_the_same_summary_in_each_table(op: Operation[..., Any]) -> None:
    if command := command_of(op):
        assert command.get_short_help_str(200) == op.declared.summary
        assert " " in op.command or SHORT[op.command] == op.declared.summary
    routes = [one for one in ROUTES if f"{one.method.upper()} {one.path}" == op.declared.http]
    body = next((one.file for one in op.parameters("http") if one.file), None)
    said = body.summary if body else op.declared.summary
    assert [one.summary for one in routes] == ([said] if op.declared.http else [])


@each
def test_operation_describes_every_parameter_for_each_reader(op: Operation[..., Any]) -> None:
    for name in op.names:
        one = op.parameter(name)
        assert one.description.endswith("."), name
    lines = op.doc.split("\n")
    assert lines[0].endswith(".") and all(len(line) <= 130 for line in lines)


@each
def test_help_of_a_command_names_only_options_that_it_has(op: Operation[..., Any]) -> None:
    if op.command:
        missing = {f"`{one.name}`" for one in map(op.parameter, op.names) if "cli" in one.missing_in}
        assert not missing & set(re.findall(r"`\w+`", op.doc))


@each
def test_operation_that_writes_is_recorded(op: Operation[..., Any]) -> None:
    assert op.audit or op.declared.right == "read" or op.declared.http.startswith("GET ")


@each
def test_operation_has_the_same_parameters_in_each_interface(op: Operation[..., Any], memory: Memory) -> None:
    group_of = op.name.rpartition(".")[0]
    owner = MemoryStack if op.declared.about == "stack" else Memory
    method = getattr(GROUPS[group_of] if group_of else owner, op.method)
    assert [*inspect.signature(method).parameters][1:] == [one.name for one in op.parameters("python")]
    if command := command_of(op):
        given = [one.name for one in command.params]
        assert given[: len(op.parameters("cli"))] == [one.name for one in op.parameters("cli")]
    for route in [one for one in ROUTES if one.name == op.name.replace(".", "_")]:
        uploaded = [one.name for one in op.parameters("http") if one.file is not None]
        in_body = uploaded if route.body in (None, bytes) else route.body.__struct_fields__
        taken = [*in_body, *route.own]
        in_headers = [one.name for one in op.parameters("http") if one.http.etag]
        assert route.seen is bool(in_headers)
        assert sorted(taken) == sorted(
            one.name
            for one in op.parameters("http")
            if f"{{{one.name}}}" not in route.path and one.name not in in_headers
        )
    for tool in toolset(memory, [op.declared.tool]) if op.declared.tool else ():
        named = [one.called("mcp") for one in op.parameters("mcp")]
        assert [*tool.parameters["properties"]][: len(named)] == named
        if op.declared.less_for_models:
            assert op.declared.less_for_models.endswith(".")
            whole = getattr(op.answer, "__struct_fields__", ())
            assert not whole or not {*whole} <= tool.returns["properties"].keys()
            return
        fields = [one for one in op.answer.__struct_fields__ if one != "notice"]
        assert [*tool.returns["properties"]][: len(fields) + 1] == ["notice", *fields]


def test_interfaces_call_operations_only_with_their_checks() -> None:
    found = []
    for path in sorted((ROOT / "ipfsmem").rglob("*.py")):
        if path.is_relative_to(ROOT / "ipfsmem" / "operations") or path.name == "operation.py":
            continue
        text = path.read_text("utf-8")
        if "ipfsmem.operations" not in text:
            continue  # most modules are irrelevant, and parsing them takes two seconds
        tree = ast.parse(text)
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ipfsmem.operations")
            for alias in node.names
        }
        found += [
            f"{path.name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in ("work", "_function")
            if isinstance(node.value, ast.Name) and node.value.id in imported
        ]
    assert found == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": 0}, r"recall: limit must be 1-200 \(got 0\)"),
        ({"limit": 10**30}, "recall: limit must be 1-200$"),
        ({"limit": True}, "recall: limit is a whole number, not bool"),
        ({"kind": "texts"}, r"recall: kind must be memory, event, message or all \(got 'texts'\)"),
        ({"tag": ""}, "recall: tag is empty"),
        ({"by": "x" * 129}, "recall: by has 129 characters, at most 128 are allowed"),
        ({"queries": "tea"}, "recall: queries is a list of texts, not str"),
        ({"queries": ["tea"] * 9}, "recall: queries has 9 items, at most 8 are allowed"),
        ({"queries": [""]}, "recall: queries has an item that is empty"),
        ({"queries": [3]}, r"recall: queries is a list of texts, not list\[int\]"),
        ({"threshold": 2.0}, r"recall: threshold must be -1 to 1 \(got 2.0\)"),
    ],
)
def test_argument_out_of_bounds_is_refused_by_memory_and_stack(
    memory: Memory, given: dict[str, Any], said: str
) -> None:
    for reader in (memory, memory.scope("work"), memory.stack("work")):
        with pytest.raises(UsageError, match=said):
            reader.recall("music", **given)


@pytest.mark.parametrize(
    ("items", "said", "left"),
    [
        (["tea", 3], r"recall: queries is a list of texts, not tuple\[int \| str\]", 0),
        (["tea", ""], "recall: queries has an item that is empty", 0),
        (map(str, range(1_000_000)), "recall: queries has 9 items, at most 8 are allowed", 20),
    ],
)
def test_argument_that_is_an_iterator_is_checked_like_a_list(
    memory: Memory, items: Iterable[object], said: str, left: int
) -> None:
    once = iter(items)
    with pytest.raises(UsageError, match=said):
        memory.recall(queries=once)  # type: ignore[arg-type]
    assert len([*islice(once, 20)]) == left
    assert [hit.key for hit in memory.recall(queries=iter(["music"])).hits] == ["tone"]


def test_recall_is_recorded_once_for_memory_stack_and_tool(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        memory.scope("work").write("plan", "music")
        (tool,) = toolset(memory, ["recall"], scope="work")
        before = len(memory.operations.list())
        memory.recall("music")
        memory.scope("work").recall("music")
        memory.stack("work").recall("music")
        assert not tool.call(query="music").is_error
        listed = memory.operations.list()
    new = listed[: len(listed) - before]
    assert [(one.operation, one.scope) for one in new] == [("recall", "work")] * 3 + [("recall", "")]


def test_recall_of_a_closed_memory_is_refused() -> None:
    memory = Memory.load("alex", "none")
    stack = memory.stack()
    memory.close()
    for reader in (memory, stack):
        with pytest.raises(ClosedError, match="recall: the vault alex is closed"):
            reader.recall("music")


def test_coroutine_is_checked_before_it_is_awaited(memory: Memory) -> None:
    sync = load("sync")
    for given, said in (
        ({"provider": 3}, "sync: provider is .*, not int"),
        ({"allow": "tone"}, "sync: allow is a list of texts, not str"),
        ({"car": 3}, "sync: car is a text or a Path or None, not int"),
    ):
        with pytest.raises(UsageError, match=said):
            sync.run(memory._view(), given)
    memory.close()
    with pytest.raises(ClosedError, match="sync: the vault alex is closed"):
        sync.run(memory._view(), {})


def test_coroutine_is_recorded_once_with_its_outcome(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        for work in (memory.sync, memory.scope("work").sync):
            with pytest.raises(UsageError, match="never published"):
                asyncio.run(work())
        listed = memory.operations.list(operation="sync")
    assert [(one.face, one.scope, one.outcome) for one in listed] == [("python", "", "UsageError")] * 2


def test_result_with_an_exit_code_is_the_answer_of_other_interfaces() -> None:
    sync = load("sync")
    report = SyncReport(missing=1)
    assert sync.answer is Synced and sync.result is SyncReport
    assert sync.answered(report) == Synced(report=report, exit_code=44)


def test_known_memory_type_is_found_and_an_unknown_one_refused(memory: Memory) -> None:
    memory.write_text("note", b"---\ntype: diary\n---\nmusic\n")
    assert [hit.key for hit in memory.recall("music", type="diary").hits] == ["note"]
    assert memory.recall("music", type="diary", tag="none").hits == ()
    with pytest.raises(UsageError, match="unknown memory type 'dairy'; supported: user, "):
        memory.recall("music", type="dairy")


def test_parameter_name_differs_by_interface() -> None:
    one = Parameter("items_of", str)
    assert (one.called("python"), one.called("cli"), one.called("mcp")) == (
        "items_of",
        "--items-of",
        "items_of",
    )
    words = load("recall").parameter("query")
    assert words.cli == Cli(metavar="WORDS", joined=True) and words.called("cli") == "WORDS"


_DECODES = """
import sys, tempfile, warnings
import msgspec
from ipfsmem import Memory
warnings.simplefilter("ignore")
with Memory.create("alex", "local", home=sys.argv[1]) as memory:
    memory.facts.add("likes tea", "preference")
    memory.values.set("k", 1)
    for call in (memory.facts.list, memory.values.list, memory.pending, memory.dreams.run, memory.duplicates, memory.list, memory.undo):
        answer = call()
        assert msgspec.json.decode(msgspec.json.encode(answer), type=type(answer)) == answer, call
"""


def test_python_decodes_an_answer_by_its_type(tmp_path: Path) -> None:
    """In a separate process: the schemas of other interfaces import all types."""
    subprocess.run([sys.executable, "-c", _DECODES, tmp_path], check=True)
