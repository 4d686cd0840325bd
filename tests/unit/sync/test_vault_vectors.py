"""fixtures/vectors/vaults.json: each whole vault is read as specified, and the file is reproducible byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.plain import vault as plain
from tests.support.vault_reading import read_case
from tests.support.vault_vectors import FILE, build, known_streams, text

VAULTS = json.loads(FILE.read_text("utf-8"))
CASES = {case["name"]: case for case in VAULTS["cases"]}


@pytest.mark.parametrize("name", CASES)
def test_vault_is_read_as_in_the_vectors(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert read_case(case, VAULTS["cars"], tmp_path) == case["expect"]


@pytest.mark.parametrize("name", CASES)
def test_plain_reader_reads_a_vault_as_in_the_vectors(name: str) -> None:
    expect = {part: value for part, value in CASES[name]["expect"].items() if part != "by_rule"}
    assert plain.read_case(CASES[name], VAULTS["cars"]) == expect


def test_vault_vector_file_is_reproducible() -> None:
    """Created by `python -m tests.support.vault_vectors`."""
    assert text(VAULTS) == FILE.read_text("utf-8")
    stripped = [{name: part for name, part in case.items() if name != "expect"} for case in VAULTS["cases"]]
    assert build(known_streams(), read=False) == {**VAULTS, "cases": stripped}


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = CASES[name]["expect"]
    return found


def test_vault_vectors_cover_the_cases_of_the_format() -> None:
    """The file is created by the program that it tests."""
    heads = expected("two heads that nobody joined")
    memories = heads["memories"]
    assert (
        memories["feedback_tone"]["shown"].endswith("FIRST\n\nsecond\n\nTHIRD\n")
        and memories["feedback_tone"]["merged"]
    )
    assert memories["user_role"]["shown"].endswith("coaches on Saturdays.\n")
    assert [copy["text"].endswith("plays on Sundays.\n") for copy in memories["user_role"]["conflicts"]] == [
        True
    ]
    assert memories["secret_plan"]["forgotten"] and memories["secret_plan"]["shown"] is None
    assert [
        one.endswith("written beside a wish to forget\n") for one in memories["secret_plan"]["hidden"]
    ] == [True]
    assert not memories["same"]["conflicts"] and not memories["same"]["merged"]
    assert heads["scopes"]["api-0123456789ab"]["title"] == "Work: the API" and heads["scopes"]["gone"] is None
    assert heads["scopes"]["o"]["into"] == "api-0123456789ab"
    assert {"api-0123456789ab/o", "o/feedback_tone"} <= memories.keys()
    assert (
        expected("both joined")["memories"] == memories
        and expected("both joined")["digest"] == heads["digest"]
    )
    for same in ("the same by the recovery words", "all records have expired"):
        assert expected(same) == heads
    assert expected("an old root beside newer ones")["digest"] == heads["digest"]
    assert expected("a body is missing")["memories"]["feedback_tone"]["not_fetched"]
    assert list(expected("a node of the newest root is damaged")["heads"].values()).count("damaged") == 1
    guest = expected("two people")["memories"]
    assert guest["user_role"]["shown"].endswith("likes coffee\n")
    assert guest["user_role"]["own"]["shown"].endswith("likes tea\n")
    assert guest["shared"]["shown"].endswith("by the guest\n") and guest["shared"]["own"]["shown"] is None
    assert guest["feedback_tone"]["forgotten"] and guest["feedback_tone"]["own"]["unheeded"] == 1
    assert guest["from_a_chat"]["own"]["shown"] is None
    revoked = expected("a revoked device goes on")
    assert sorted(revoked["heads"].values()) == ["joined", "refused: head"]
    assert revoked["memories"]["user_role"]["shown"].endswith("likes mate\n")
    assert sorted(expected("a value that nobody signed")["heads"].values()) == ["joined", "refused: state"]
    assert len(expected("seventy memories")["memories"]) == 70
    assert expected("objects against the rule")["memories"] == expected("seventy memories")["memories"]
    assert [name for name, case in CASES.items() if case["expect"].get("by_rule") is False] == [
        "objects against the rule"
    ]
    unknown = expected("values that no key of the ring vouches for")
    assert list(unknown["heads"].values()) == ["joined in part"] and unknown["memories"].keys() == {
        "user_role"
    }
    kinds = [
        json.loads(line)["type"] for line in expected("a segment with lines that are no events")["events"][""]
    ]
    assert sorted(kinds) == [
        "an id of another form",
        "claimed",
        "no id",
        "own",
        "raw",
        "raw",
        "raw",
        "same id",
    ]
    old = expected("a successor")["memories"]
    assert (
        old["user_role"]["shown"].endswith("after the snapshot\n")
        and "written by the copy" in old["feedback_tone"]["shown"]
    )
    assert {
        name: case["expect"]["refused"] for name, case in CASES.items() if "refused" in case["expect"]
    } == {
        "a node of every root is missing": "damaged",
        "a plain ring in a sealed vault": "none",
        "a sealed vault asked for as a plain one": "other kind",
        "another wallet": "none",
        "the words' list leads to another ring": "none",
        "one leaf is missing": "damaged",
        "a plain vault asked for as a sealed one": "other kind",
        "a foreign genesis": "none",
    }
