"""What follows from seeds and kept files: forged vaults as they are read, rankings of the made set, digests of the vectors."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.retrieval import HEADINGS, mean, recipe, score
from bench.retrieval_set import synthetic
from tests.support.forged_vaults import Forge, PlainForge, forged, seen_by_python

#: Seeds whose vaults are read, of each kind.
SEEDS = range(40)
FIXTURES = Path(__file__).parents[2] / "fixtures"


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def vaults() -> dict[str, str]:
    """The digest of everything that is read of the vaults of each seed."""
    found = {}
    for kind in (Forge, PlainForge):
        file = forged(SEEDS, kind)
        for case in file["cases"]:
            found[case["name"]] = _digest(json.loads(json.dumps(seen_by_python(case, file["cars"]))))
    return found


def vectors() -> dict[str, str]:
    """The digest of each file that both implementations are held to, and of each kept database and home."""
    return {
        str(path.relative_to(FIXTURES)): sha256(path.read_bytes()).hexdigest()[:16]
        for folder in ("vectors", "databases", "homes")
        for path in sorted((FIXTURES / folder).rglob("*"))
        if path.is_file() and path.suffix != ".md"
    }


def retrieval() -> dict[str, Any]:
    """For each collection of the made set its mean scores without a model, and the digest of the first ten of each question."""
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
