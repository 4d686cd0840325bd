"""fixtures/vectors/README.md describes every file, every group in it and every field of its rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.format_text import FORMAT, headings

FOLDER = Path(__file__).parents[2] / "fixtures" / "vectors"
README = (FOLDER / "README.md").read_text("utf-8")
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
#: Fields that every row may have, described at the top of the page.
EVERYWHERE = {"about", "name", "why"}
#: Objects whose names are data, not fields: texts by hash, records by name, and similar.
MAPS = {"cars", "entries", "keyrings", "persons", "statements", "streams", "texts", "five_dots_of_one_device"}
#: Objects whose fields docs/FORMAT.md describes.
OBJECTS = {"location_is_not_signed"}


def test_each_vector_file_is_in_the_table() -> None:
    assert re.findall(r"^\| `(\w+\.json)` \|", README, re.M) == FILES
    assert re.findall(r"^## (\w+\.json)$", README, re.M) == FILES


def test_sections_in_the_table_exist_in_the_format() -> None:
    known = set(headings(FORMAT))
    for file, sections in re.findall(r"^\| `(\w+\.json)` \| ([^|]+) \|", README, re.M):
        numbers = set(re.findall(r"\d[\d.]*", sections))
        assert numbers <= known and (numbers or sections == "none"), file


@pytest.mark.parametrize("file", FILES)
def test_each_group_and_field_is_described(file: str) -> None:
    """The README section names each group and each field of its rows."""
    data: dict[str, Any] = json.loads((FOLDER / file).read_text("utf-8"))
    assert data["about"]
    section = re.search(rf"^## {re.escape(file)}$(.*?)(?=^## |\Z)", README, re.M | re.S)
    assert section is not None
    words = set(re.findall(r"`([^`]+)`", section[1]))
    wanted = set(data)
    for group, rows in data.items():
        if group in MAPS or group in OBJECTS:
            continue
        for row in rows if isinstance(rows, list) else [rows]:
            if isinstance(row, dict):
                wanted |= row.keys()
    assert wanted - words - EVERYWHERE == set()


@pytest.mark.parametrize("file", FILES)
def test_rows_of_a_group_are_all_described_or_none(file: str) -> None:
    data: dict[str, Any] = json.loads((FOLDER / file).read_text("utf-8"))
    for group, rows in data.items():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            named = [row.keys() & {"name", "why", "about", "error"} for row in rows]
            assert all(named) or not any(named), f"{group}: some rows say what they show, others do not"
