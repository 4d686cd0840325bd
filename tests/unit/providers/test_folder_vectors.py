"""fixtures/vectors/folder.json: each folder is read as specified, and the first one is written byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.canonical import unb64
from tests.unit.providers.make_folder_vectors import OUT, cases, files_of, read, text, written

FOLDERS = json.loads(OUT.read_text("utf-8"))
CASES = {case["name"]: case for case in FOLDERS["cases"]}


@pytest.mark.parametrize("name", CASES)
def test_folder_is_read_as_in_the_vectors(name: str, tmp_path: Path) -> None:
    assert read(tmp_path, CASES[name]) == CASES[name]["expect"]


def test_folder_written_by_a_device_equals_the_vector() -> None:
    shown = {path: unb64(data, path) for path, data in CASES["as a device writes it"]["files"].items()}
    assert written() == shown
    assert text(FOLDERS) == OUT.read_text("utf-8")
    assert cases() == [
        {name: part for name, part in case.items() if name != "expect"} for case in FOLDERS["cases"]
    ]


def test_folder_vectors_cover_damage_and_leftovers(tmp_path: Path) -> None:
    expect = {name: case["expect"] for name, case in CASES.items()}
    whole = expect["as a device writes it"]
    assert len(whole["blocks"]) == len(whole["has"]) == 6
    for same in ("without indexes", "an index that lies", "a pack that is to go", "a block noted as lost"):
        assert expect[same]["blocks"] == whole["blocks"]
    assert len(expect["a damaged block"]["blocks"]) == 5
    assert len(expect["a pack that is to go"]["has"]) < len(expect["a block noted as lost"]["has"]) == 5
    assert expect["pins in a list"]["pins"].pop("holiday") and not whole["pins"].pop("holiday")
    assert expect["pins in a list"]["pins"] == whole["pins"]
    assert len(expect["a list that was cut off"]["pins"][FOLDERS["asked"]["pins"][0]]) == 1
    strange = expect["what others left there"]
    assert (strange["blocks"], strange["names"], strange["pins"]["other"]) == (
        whole["blocks"],
        whole["names"],
        [],
    )
    # The note of the damaged block, which the reader wrote.
    read(tmp_path, CASES["a damaged block"])
    assert [path for path in files_of(tmp_path) if path.endswith(".lost")]
