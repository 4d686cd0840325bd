"""docs/internals/recall.md shows what its commands print and what an MCP client received."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.extras import need_extra
from tests.unit.memories import test_no_leak

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def make_recall(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module("make_recall")


def test_recall_page_shows_printed_output_and_mcp_answers(make_recall: ModuleType, tmp_path: Path) -> None:
    need_extra("mcp", "mcp_types")
    page = make_recall.TARGET.read_text("utf-8")
    assert make_recall.played(tmp_path, page) == page, "run: python docs/make_recall.py"


def test_recall_page_has_the_case_counts_of_the_leak_test(make_recall: ModuleType) -> None:
    page = make_recall.TARGET.read_text("utf-8")
    parts = sum(map(len, test_no_leak.OF_PARTS.values()))
    rows = (len(test_no_leak.OF_STACK), len(test_no_leak.OF_SCOPE), parts, len(test_no_leak.OF_TOOLS))
    assert f"| {', '.join(map(str, rows))} |" in page
    found = re.findall(r"cases\((\d+), (\d+)\)", Path(test_no_leak.__file__).read_text("utf-8"))
    short, long = (sum(int(one[at]) for one in found) for at in (0, 1))
    assert f"| {short}, {long} |" in page
