"""Answers of operations are frozen, keyword-only, documented and JSON throughout, and every interface
shows them unchanged."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import msgspec
import pytest

from ipfsmem import Memory, results
from ipfsmem.operations import INDEX, load
from ipfsmem.operations.members import Member, MemberList
from ipfsmem.operations.sync import Synced
from ipfsmem.sync.report import Notice, SyncReport

ROOT = Path(__file__).parents[2]
#: An event has its own fields, and a file has none.
WITHOUT_FIXED_FIELDS = ("timeline.add", "bundles.export", "bundles.export_for")
#: `SyncReport` is not frozen: each step of a command adds its notices.
ANSWERS = sorted(
    (
        *(
            one
            for one in vars(results).values()
            if isinstance(one, type)
            and issubclass(one, results.Answer)
            and one.__module__ == results.__name__
        ),
        *(
            load(name).answer
            for name in INDEX
            if name not in WITHOUT_FIXED_FIELDS and load(name).answer is not SyncReport
        ),
    ),
    key=lambda one: one.__name__,
)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: one.__name__)
def test_answer_is_a_documented_frozen_struct_with_keyword_fields(answer: type[msgspec.Struct]) -> None:
    assert answer.__struct_config__.frozen
    fields = inspect.signature(answer).parameters.values()
    assert all(field.kind is inspect.Parameter.KEYWORD_ONLY for field in fields)
    assert answer.__doc__ and answer.__doc__.strip()


def test_every_answer_has_a_distinct_schema_name() -> None:
    """As an OpenAPI document requires."""
    _, parts = msgspec.json.schema_components(ANSWERS)
    assert {one.__name__ for one in ANSWERS} <= parts.keys()


def test_commands_print_answers_without_other_fields() -> None:
    """mypy checks the arguments of `emit`."""
    unfixed = {"provider_cmd.py", "format_inspect_cmd.py"}
    for path in sorted((ROOT / "ipfsmem" / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if named in ("emit", "to_json", "encode"):
                assert not any(isinstance(part, ast.Dict) for part in ast.walk(node)), (
                    f"{path.name}:{node.lineno}"
                )
            if named == "emit_open":
                assert path.name in unfixed, f"{path.name} prints what is not in results.py"


def test_documented_fields_are_those_of_the_answers() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    rows = dict(
        re.findall(r"^\| (.+?) \| (`.+) \|$", text[text.index("## JSON") : text.index("## Words")], re.M)
    )
    pairs = {
        "`sync`": Synced,
        "`report` of `sync`, `member admit`, `member rotate`": SyncReport,
        "a notice": Notice,
        "`member list`": MemberList,
        "a member": Member,
        "`key derive`": results.WalletKeys,
    }
    assert rows.keys() == pairs.keys() | {"command"} - {"command"}
    for row, answer in pairs.items():
        outside = re.sub(r"\([^()]*\)", "", rows[row])  # text in brackets explains a field
        named = set(re.findall(r"`(\w+)`", outside))
        assert named and named <= set(answer.__struct_encode_fields__), row


def test_python_results_equal_their_json(tmp_path: Path) -> None:
    with Memory.create("alex", "local", home=tmp_path) as memory:
        written = memory.write("tone", "direct")
        assert memory.status().memories == 1
        told = msgspec.json.decode(msgspec.json.encode(memory.status()))
        assert list(told) == list(results.Status.__struct_fields__) and told["vault_name"] == "alex"
        read = memory.read("tone")
        assert read is not None
        shown = msgspec.json.decode(msgspec.json.encode(read))
        assert shown["sha256"] == written.sha256 and shown["token"] == list(written.token)
        assert shown["body"] == "direct" and shown["text"].encode() == read.data
        (line,) = memory.list()
        assert (line.key, line.sha256, line.fetched) == ("tone", written.sha256, True)
