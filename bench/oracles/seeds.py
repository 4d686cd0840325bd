"""Results that follow from seeds and fixtures: forged vaults as read, rankings of the synthetic set, digests of the vectors."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.retrieval import HEADINGS, mean, recipe, score
from bench.retrieval_set import synthetic
from tests.support.forged_vaults import Forge, PlainForge, forged, seen_by_python

#: Seeds of the forged vaults of each kind.
SEEDS = range(40)
FIXTURES = Path(__file__).parents[2] / "fixtures"


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def vaults() -> dict[str, str]:
    """For each seed the digest of all that is read from its vaults."""
    found = {}
    for kind in (Forge, PlainForge):
        file = forged(SEEDS, kind)
        for case in file["cases"]:
            found[case["name"]] = _digest(json.loads(json.dumps(seen_by_python(case, file["cars"]))))
    return found


def vectors() -> dict[str, str]:
    """The digest of each vector file, kept database and kept home."""
    return {
        str(path.relative_to(FIXTURES)): sha256(path.read_bytes()).hexdigest()[:16]
        for folder in ("vectors", "databases", "homes")
        for path in sorted((FIXTURES / folder).rglob("*"))
        if path.is_file() and path.suffix != ".md"
    }


def retrieval() -> dict[str, Any]:
    """For each collection of the synthetic set its mean scores without a model, and the digest of the first ten hits of all questions."""
    found: dict[str, Any] = {}
    for collection in synthetic():
        search = recipe(collection)
        ranked = [(question, search(question)) for question in collection.questions]
        means = mean([score(hits, question.relevant) for question, hits in ranked])
        found[f"{collection.half} {collection.name}"] = {
            **{name: round(one, 4) for name, one in zip(HEADINGS, means, strict=True)},
            "questions": len(ranked),
            "first ten": _digest([hits[:10] for _, hits in ranked]),
        }
    return found
