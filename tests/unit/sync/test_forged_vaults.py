"""fixtures/vectors/forged_vaults.json: vaults of liars, as production code sees them, and made again byte for byte."""

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
def test_a_forged_vault_is_seen_as_the_vectors_say(name: str) -> None:
    assert seen_by_python(CASES[name], VAULTS["cars"]) == CASES[name]["expect"]


def test_the_forged_vaults_are_made_again_byte_for_byte() -> None:
    """Whoever changes them makes the file anew: `python -m tests.support.forged_vaults`."""
    cases, cars = kept_cases()
    assert cars == VAULTS["cars"]
    assert cases == [
        {name: part for name, part in case.items() if name != "expect"} for case in VAULTS["cases"]
    ]


def verdicts(name: str) -> list[str]:
    return sorted(CASES[name]["expect"]["heads"].values())


def test_a_revoked_device_whose_root_is_read_first_is_refused() -> None:
    seen = CASES["a revoked device's root first"]["expect"]
    assert verdicts("a revoked device's root first") == ["joined", "refused: head"]
    assert "late" not in seen["memories"]


def test_device_enrolled_in_another_ring_only_is_joined_in_any_order() -> None:
    assert verdicts("a root whose maker another ring enrols") == ["joined", "joined"]
    assert "new" in CASES["a root whose maker another ring enrols"]["expect"]["memories"]


def test_a_copy_that_went_back_is_held() -> None:
    assert verdicts("a lower number and a later clock").count("held") == 1


def test_a_copy_under_a_given_up_id_is_held_by_a_reader() -> None:
    for name in (
        "another copy of a device whose id is given up",
        "plain: another copy of a device whose id is given up",
    ):
        assert verdicts(name) == ["held", "joined"]


def test_texts_under_keys_that_a_revoke_dropped_are_read() -> None:
    seen = CASES["texts under keys that a revoke dropped"]["expect"]
    assert seen["memories"]["lake"]["shown"] == "under the first of these keys\n"


def test_a_plain_root_whose_ring_is_at_its_top_is_no_head() -> None:
    for name in ("a root without a commit", "a ring at the top too", "a ring at the top alone"):
        assert verdicts(f"plain: {name}") == ["joined"]
        assert CASES[f"plain: {name}"]["expect"]["memories"].keys() == {"tone"}


def test_a_root_whose_own_ring_revokes_its_maker_is_refused() -> None:
    for name in ("a ring that revokes its own maker", "plain: a ring that revokes its own maker"):
        assert verdicts(name) == ["joined", "refused: head"]
        assert CASES[name]["expect"]["memories"].keys() == {"tone"}


def test_a_text_of_a_plain_vault_under_a_key_is_not_fetched() -> None:
    memories = CASES["plain: a location of a key that is"]["expect"]["memories"]
    assert [key for key, one in memories.items() if one["not_fetched"]] == ["tone"]


def test_a_root_that_two_hold_is_joined_with_the_one_that_is_whole() -> None:
    seen = CASES["a root that two hold, of which one is damaged"]["expect"]
    assert sorted(seen["heads"].values()) == ["damaged", "joined", "joined"]
    assert seen["memories"].keys() == {"role", "tone"}


def test_only_root_without_its_commit_is_a_damaged_vault() -> None:
    for name in (
        "a root whose commit is lost, alone",
        "plain: a root whose commit is lost, alone",
        "a root whose commit is lost, beside a name of a lost ring",
    ):
        assert CASES[name]["expect"] == {"refused": "damaged"}


def test_no_forged_vault_is_a_fault_of_the_reader() -> None:
    assert [name for name, case in CASES.items() if "fault" in case["expect"]] == []


@pytest.mark.parametrize("name", [*CASES][:: every(3)])
def test_the_plain_reader_sees_a_forged_vault_as_the_vectors_say(name: str) -> None:
    assert read_case(CASES[name], VAULTS["cars"]) == CASES[name]["expect"]


def test_a_forged_vault_without_its_lie_is_other_bytes_and_seen_otherwise() -> None:
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
def test_a_lone_root_without_its_lie_is_seen_otherwise(name: str) -> None:
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
    """What is seen, with the verdicts alone of roots, whose CIDs change with every byte."""
    return {**seen, "heads": sorted(seen.get("heads", {}).values()), "root": None}


@pytest.mark.parametrize("kind", [Forge, PlainForge])
def test_the_plain_reader_sees_random_forged_vaults_as_the_package_does(kind: type[Forge]) -> None:
    """`python -m bench.soak vaults` looks at more of them."""
    # 503: a head whose counters do not cover a dot of an entry that another head has too.
    assert plain_differences(forged((*range(cases(6, 20)), 503), kind)) == []
