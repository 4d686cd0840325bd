"""Writes fixtures/vectors/scopes.json. Run it only when the format changes: python tests/unit/causal/make_scope_vectors.py"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"
DEV = "34750f98bd59fcfc"


def name_vectors() -> list[dict[str, Any]]:
    """Entry names, what they are, and the type and ctx of the sealed object that holds a body of theirs."""
    rows: list[tuple[str, dict[str, Any], int, str]] = []
    for scope in ("", "o", "s", "m", "t", "c", "work-0123456789ab", "scope"):
        inner = f"{scope}/" if scope else ""
        for key in ("tone", "o", "timeline", "2026-04-14", "t"):
            name = f"m/{inner}{key}"
            rows.append((name, {"kind": "memory", "scope": scope, "key": key}, 3, name[2:]))
        for i in (0, 2**53 - 1):
            name = f"t/{inner}2026-04-14/{DEV}/{i}"
            parts = {"kind": "segment", "scope": scope, "day": "2026-04-14", "dev": DEV, "i": i}
            rows.append((name, parts, 4, name[2:]))
        if scope:
            rows.append((f"c/{scope}", {"kind": "card", "scope": scope}, 8, scope))
    return [{"name": n, **parts, "type": kind, "ctx": ctx} for n, parts, kind, ctx in rows]


REFUSED_NAMES = [
    "",
    "m",
    "m/",
    "m//tone",
    "m/memory",
    "m/2026-04-14/tone",
    "m/timeline/tone",
    "m/scopes/tone",
    "m/all/tone",
    "m/global/tone",
    "m/memory/tone",
    "m/Work/tone",
    "m/work/memory",
    "m/work/tone/more",
    "M/tone",
    "mm/tone",
    "/m/tone",
    "m/tone/",
    f"t/2026-04-14/{DEV}",
    f"t/2026-02-30/{DEV}/0",
    f"t/2026-04-14/{DEV}/00",
    f"t/2026-04-14/{DEV}/-1",
    f"t/2026-04-14/{DEV}/9007199254740992",
    f"t/2026-04-14/{DEV.upper()}/0",
    f"t/2026-04-14/2026-04-14/{DEV}/0",
    f"t/all/2026-04-14/{DEV}/0",
    f"t/work/api/2026-04-14/{DEV}/0",
    f"t//2026-04-14/{DEV}/0",
    "c",
    "c/",
    "c/2026-04-14",
    "c/timeline",
    "c/global",
    "c/work/api",
    "s/work",
    "o/work",
]


def vectors() -> dict[str, Any]:
    return {
        "about": (
            "Scopes, format section 5. 'names': entry names with what they are and the type and ctx of the object that "
            "holds a body (section 3); 'refused_names': no names of entries."
        ),
        "names": name_vectors(),
        "refused_names": REFUSED_NAMES,
    }


if __name__ == "__main__":
    (VECTORS / "scopes.json").write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", "utf-8")
