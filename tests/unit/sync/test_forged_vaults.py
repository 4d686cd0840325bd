"""fixtures/vectors/forged_vaults.json: vaults with false data as this package reads them, reproducible
byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.effort import cases, every
from tests.support.forged_vaults import (
    ALONE,
    FILE,
    KEPT_LIES,
    KEPT_SHAPES,
    WITHOUT_EFFECT,
    Forge,
    Kept,
    PlainForge,
    forged,
    kept_cases,
    plain_differences,
    root_alone,
    seen_by_python,
)
from tests.support.plain.vault import read_case

VAULTS = json.loads(FILE.read_text("utf-8"))
CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in VAULTS["cases"]}


@pytest.mark.parametrize("name", CASES)
def test_forged_vault_is_read_as_in_the_vectors(name: str) -> None:
    assert seen_by_python(CASES[name], VAULTS["cars"]) == CASES[name]["expect"]


def test_forged_vaults_are_reproducible() -> None:
    """Created by `python -m tests.support.forged_vaults`."""
    cases, cars = kept_cases()
    assert cars == VAULTS["cars"]
    assert cases == [
        {name: part for name, part in case.items() if name != "expect"} for case in VAULTS["cases"]
    ]


def verdicts(name: str) -> list[str]:
    return sorted(CASES[name]["expect"]["heads"].values())


def test_root_of_a_revoked_device_is_refused_in_any_order() -> None:
    seen = CASES["a revoked device's root first"]["expect"]
    assert verdicts("a revoked device's root first") == ["joined", "refused: head"]
    assert "late" not in seen["memories"]


def test_device_enrolled_in_another_ring_only_is_joined_in_any_order() -> None:
    assert verdicts("a root whose maker another ring enrols") == ["joined", "joined"]
    assert "new" in CASES["a root whose maker another ring enrols"]["expect"]["memories"]


def test_rolled_back_copy_of_a_device_is_held_back() -> None:
    assert verdicts("a lower number and a later clock").count("held") == 1


def test_copy_under_an_abandoned_id_is_held_back_by_a_reader() -> None:
    for name in (
        "another copy of a device whose id is given up",
        "plain: another copy of a device whose id is given up",
    ):
        assert verdicts(name) == ["held", "joined"]


def test_texts_under_keys_dropped_by_a_revoke_are_read() -> None:
    seen = CASES["texts under keys that a revoke dropped"]["expect"]
    assert seen["memories"]["lake"]["shown"] == "under the first of these keys\n"


def test_public_root_with_its_ring_at_the_top_is_not_a_head() -> None:
    for name in ("a root without a commit", "a ring at the top too", "a ring at the top alone"):
        assert verdicts(f"plain: {name}") == ["joined"]
        assert CASES[f"plain: {name}"]["expect"]["memories"].keys() == {"tone"}


def test_root_whose_own_ring_revokes_its_maker_is_refused() -> None:
    for name in ("a ring that revokes its own maker", "plain: a ring that revokes its own maker"):
        assert verdicts(name) == ["joined", "refused: head"]
        assert CASES[name]["expect"]["memories"].keys() == {"tone"}


def test_text_of_a_public_vault_stored_under_a_key_is_not_fetched() -> None:
    memories = CASES["plain: a location of a key that is"]["expect"]["memories"]
    assert [key for key, one in memories.items() if one["not_fetched"]] == ["tone"]


def test_root_with_two_trees_is_joined_from_the_complete_one() -> None:
    seen = CASES["a root that two hold, of which one is damaged"]["expect"]
    assert sorted(seen["heads"].values()) == ["damaged", "joined", "joined"]
    assert seen["memories"].keys() == {"role", "tone"}


def test_single_root_without_its_commit_is_a_damaged_vault() -> None:
    for name in (
        "a root whose commit is lost, alone",
        "plain: a root whose commit is lost, alone",
        "a root whose commit is lost, beside a name of a lost ring",
    ):
        assert CASES[name]["expect"] == {"refused": "damaged"}


def test_forged_vaults_cause_no_internal_error() -> None:
    assert [name for name, case in CASES.items() if "fault" in case["expect"]] == []


@pytest.mark.parametrize("name", [*CASES][:: every(3)])
def test_plain_reader_reads_a_forged_vault_as_in_the_vectors(name: str) -> None:
    assert read_case(CASES[name], VAULTS["cars"]) == CASES[name]["expect"]


def test_forged_vault_without_its_forgery_is_read_differently() -> None:
    same_bytes, seen_alike = set(), set()
    for name in KEPT_LIES:
        honest = Kept(name)
        honest.publish(honest.second)
        case, car = honest.case(name, "")
        if car == VAULTS["cars"][name]:
            same_bytes.add(name)
        if _but_for_cids(read_case(case, {name: car})) == _but_for_cids(CASES[name]["expect"]):
            seen_alike.add(name)
    assert (same_bytes, seen_alike) == (set(), WITHOUT_EFFECT)


@pytest.mark.parametrize("name", ALONE)
def test_single_root_without_its_forgery_is_read_differently(name: str) -> None:
    honest = Kept(name)
    case, car = honest.case(name, "", **root_alone(name, {})(honest))
    seen = read_case(case, {name: car})
    assert car != VAULTS["cars"][name]
    assert _but_for_cids(seen) != _but_for_cids(CASES[name]["expect"])
    assert list(seen["heads"].values()) == ["joined"]


def test_data_declared_lost_by_a_forged_vault_existed_before() -> None:
    losing = {}
    for name, (shape, _) in KEPT_SHAPES.items():
        made = Kept(name)
        options = shape(made)
        if lost := options.pop("without", []):
            losing[name] = set(lost) <= set(made.forge.blocks)
    assert len(losing) == 20 and all(losing.values())


def _but_for_cids(seen: dict[str, Any]) -> dict[str, Any]:
    """Return what is read, with only the verdicts of roots, because their CIDs change with every byte."""
    return {**seen, "heads": sorted(seen.get("heads", {}).values()), "root": None}


@pytest.mark.parametrize("kind", [Forge, PlainForge])
def test_plain_reader_reads_random_forged_vaults_like_the_package(kind: type[Forge]) -> None:
    """`python -m bench.soak vaults` compares more of them."""
    # 503: a head whose counters do not cover a dot of an entry that another head has too.
    assert plain_differences(forged((*range(cases(6, 20)), 503), kind)) == []
