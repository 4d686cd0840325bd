"""Writes fixtures/vectors/salvage.json. Run it only when the format changes: python tests/unit/causal/make_salvage_vectors.py"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem.causal.salvage import DamagedHead, salvage
from ipfsmem.causal.tree import name_digits
from ipfsmem.causal.value import FORGOTTEN, LIVE, Entry, Value, hash32

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"
A, B, C = "a" * 16, "b" * 16, "c" * 16


def body(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def live(text: str, *before: str) -> Value:
    return Value(
        b=tuple(hash32(body(one)) for one in before), body=body(text), h="019d8aee00000000", kind=LIVE
    )


FORGOT = Value(b=(), body=None, h="019d8aee00000001", kind=FORGOTTEN)
NAME, OTHER = "m/tone", "m/role"
LOST = name_digits(NAME)[:1]


def rows() -> list[tuple[str, dict[str, Entry], dict[str, int], list[DamagedHead]]]:
    """(what it shows, base, base's ctx, damaged heads)."""
    base: dict[str, Entry] = {NAME: {f"{A}-1": live("one")}}
    return [
        (
            "a value that the base never heard of is taken",
            {},
            {},
            [DamagedHead({A: 1}, {NAME: {f"{A}-1": live("one")}}, (name_digits(OTHER)[:1],))],
        ),
        (
            "what replaced a value of the base is taken, and that value goes",
            base,
            {A: 1},
            [DamagedHead({A: 2}, {NAME: {f"{A}-2": live("two", "one")}}, (name_digits(OTHER)[:1],))],
        ),
        (
            "what was provably deleted goes",
            base,
            {A: 1},
            [DamagedHead({A: 1}, {NAME: {}}, (name_digits(OTHER)[:1],))],
        ),
        (
            "a value that the head had not heard of stays",
            {NAME: {f"{A}-1": live("one"), f"{B}-1": live("by b")}},
            {A: 1, B: 1},
            [DamagedHead({A: 2}, {NAME: {f"{A}-2": live("two", "one")}}, ())],
        ),
        (
            "an unproved name stays as it is, whatever the ctx covers",
            base,
            {A: 1},
            [DamagedHead({A: 9, B: 9}, {}, (LOST,))],
        ),
        (
            "what the base knows as gone is not taken again",
            {},
            {A: 2},
            [DamagedHead({A: 1}, {NAME: {f"{A}-1": live("one")}}, ())],
        ),
        (
            "what another damaged head provably replaced is not taken",
            {},
            {},
            [
                DamagedHead({A: 1}, {NAME: {f"{A}-1": live("one")}}, ()),
                DamagedHead({A: 1, B: 1}, {NAME: {f"{B}-1": live("two", "one")}}, ()),
            ],
        ),
        (
            "a head in which the name is lost speaks neither for nor against it",
            {},
            {},
            [
                DamagedHead({A: 1}, {NAME: {f"{A}-1": live("one")}}, ()),
                DamagedHead({A: 1, B: 1}, {}, (LOST,)),
            ],
        ),
        (
            "a text that stands here already is not taken again",
            {NAME: {f"{C}-1": live("one")}},
            {C: 1},
            [DamagedHead({A: 1}, {NAME: {f"{A}-1": live("one")}}, ())],
        ),
        (
            "nor one that a text here replaced",
            {NAME: {f"{C}-2": live("two", "one")}},
            {C: 2},
            [DamagedHead({A: 1}, {NAME: {f"{A}-1": live("one")}}, ())],
        ),
        (
            "a wish to forget is taken like a text",
            base,
            {A: 1},
            [DamagedHead({A: 1, B: 1}, {NAME: {f"{B}-1": FORGOT}}, ())],
        ),
    ]


def vectors() -> dict[str, Any]:
    """The whole file."""
    found = []
    for about, base, ctx, parts in rows():
        changes = salvage(base, ctx, parts)
        found.append(
            {
                "about": about,
                "base": base,
                "ctx": ctx,
                "parts": parts,
                "changes": [
                    {"name": change.name, "taken": [dot for dot, _ in change.taken], "gone": change.gone}
                    for change in changes
                ],
            }
        )
    about = (
        "Format 7.1. base, ctx: entries and counters of the join of all whole heads. parts: damaged heads; ctx: their "
        "counters, differs: proved entries that are not as in the base ({} for one that provably is not there), lost: "
        "prefixes (of SHA-256 of the entry name) below which nothing is proved. changes: dots to take and dots of the base "
        "that go. Values are unsigned here."
    )
    encoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode({"about": about, "rows": found}))
    return encoded


if __name__ == "__main__":
    text = json.dumps(vectors(), indent=1, ensure_ascii=False, sort_keys=True)
    (VECTORS / "salvage.json").write_text(text + "\n", "utf-8")
