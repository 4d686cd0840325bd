"""A second reader, in JavaScript, written from docs/FORMAT.md alone: it reads every whole vault of the vectors as this program does.

It shares no code with the package and was written without looking at it (tests/interop/reader). Where it disagrees, one of the
two is wrong, or the document says too little.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ipfsmem.ring.statements import envelope
from tests.interop.counterparts import need_program, npm_folder, run
from tests.support.effort import cases
from tests.support.ring_lab import Attacker
from tests.support.ring_vectors import view_of

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
VAULTS = json.loads((VECTORS / "vaults.json").read_text("utf-8"))["cases"]


def lines(script: str, *arguments: str | Path) -> list[dict[str, Any]]:
    """What a script of the reader prints, one JSON object a line."""
    said = run([need_program("node"), npm_folder("reader") / script, *arguments])
    return [json.loads(line) for line in said.splitlines()]


@pytest.fixture(scope="module")
def vaults() -> dict[str, dict[str, Any]]:
    """What the reader says of each vault."""
    return {one["name"]: one["said"] for one in lines("run.mjs", VECTORS / "vaults.json")}


@pytest.mark.parametrize("case", VAULTS, ids=lambda case: str(case["name"]))
def test_the_reader_sees_what_this_program_sees(
    case: dict[str, Any], vaults: dict[str, dict[str, Any]]
) -> None:
    assert vaults[case["name"]] == case["expect"]


def test_the_reader_agrees_with_the_vectors_of_single_rules() -> None:
    judged = lines("vectors.mjs", VECTORS)
    assert [one for one in judged if one["fails"]] == []
    assert len(judged) == 21 and all(one["rows"] for one in judged)


def test_the_reader_evaluates_the_rings_of_attackers_as_this_program_does(tmp_path: Path) -> None:
    """Any statements by anybody, in subsets that no vault would have: both see the same members, families, persons and keys."""
    npm_folder("reader")
    statements: dict[str, Any] = {}
    evaluations = []
    for seed in range(1, 1 + cases(2, 40)):
        attacker, random = Attacker(seed), Random(seed)
        for size in (5, 15, 15, 40, 40, 40, 100, 100):
            chosen = random.sample(range(len(attacker.heap)), size)
            ring = attacker.ring(chosen, random.choice([1, 2, 3]))
            said = [attacker.heap[n] for n in chosen] + list(
                attacker.genesis if len(ring.view.roots) == 3 else ()
            )
            said += [st for st in ring.statements if st not in said]
            for st in said:
                statements[st.hash] = {"k": envelope(st).k, "s": envelope(st).s}
            evaluations.append(
                {
                    "name": f"seed {seed}, {size} statements",
                    "statements": [st.hash for st in said],
                    "view": view_of(ring),
                }
            )
    known = json.loads((VECTORS / "ring.json").read_text("utf-8"))
    none: dict[str, Any] = {"parties": [], "rings": [], "joins": [], "refused_keyrings": []}
    (tmp_path / "ring.json").write_text(
        json.dumps({**known, **none, "statements": statements, "evaluations": evaluations}), "utf-8"
    )
    (judged,) = lines("vectors.mjs", tmp_path, "ring")
    assert judged["fails"] == [] and judged["rows"] > len(evaluations)
