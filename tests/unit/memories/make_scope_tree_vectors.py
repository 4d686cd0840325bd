"""Writes fixtures/vectors/scope_trees.json. Run it only when the format changes: python -m tests.unit.memories.make_scope_tree_vectors"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem.bundle.timeline import event_line
from ipfsmem.causal.cards import Card
from ipfsmem.errors import IpfsmemError
from ipfsmem.memories.bundle_tree import base_files, read_tree
from ipfsmem.memories.import_scopes import assign

FILE = Path(__file__).parents[3] / "fixtures" / "vectors" / "scope_trees.json"

EVENT = {"ts": "2026-04-14T12:03:12.000Z", "type": "waved", "id": "681f1b43ce3a77be"}
CARD = Card(title="The Work", kind="agent", into="job", ids=(("remote", "github.com/alex/api", ""),))

WRITTEN: list[tuple[str, dict[str, Any]]] = [
    ("the nameless scope", {"scope": "", "texts": {"tone.md": "t\n"}, "events": [EVENT], "index": "# Agent Memory\n"}),
    ("nothing", {"scope": "", "index": "# Agent Memory\n"}),
    ("a scope with a card", {"scope": "work", "texts": {"tone.md": "t\n"}, "card": CARD, "index": "i\n"}),
    (
        "a conflict, a text of others, a text behind a forget",
        {
            "scope": "work",
            "texts": {"tone.md": "t\n", "tone.conflict-11111111.md": "u\n", "others/plan.conflict-22222222.md": "p\n", "gone.conflict-33333333.md": "g\n"},
            "card": Card(title="work"), "forgotten": ["gone"], "index": "i\n",
        },
    ),
]  # fmt: skip


def _with_ids(*numbers: int) -> dict[str, str]:
    """Return a scope whose card has these ids."""
    card = {"ids": [["id", f"{number:032x}"] for number in numbers], "title": "W"}
    return {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": json.dumps({"card": card, "v": 1})}


READ: list[tuple[str, dict[str, str]]] = [
    ("no file", {}),
    ("one base by itself, with a file that says nothing there", {"tone.md": "t\n", "scope.json": '{"forgotten":["tone"],"v":1}'}),
    ("the nameless scope", {"memory/tone.md": "t\n", "memory/MEMORY.md": "never read", "memory/.x.md": "hidden", "readme.md": "beside"}),
    ("all places", {
        "memory/tone.md": "t\n", "scopes/work/memory/tone.md": "w\n", "scopes/work/memory/tone.conflict-11111111.md": "u\n",
        "scopes/work/memory/others/plan.conflict-22222222.md": "p\n", "scopes/work/memory/gone.conflict-33333333.md": "g\n",
        "scopes/work/memory/timeline/2026-04-14.jsonl": event_line(EVENT).decode() + "\n",
        "scopes/work/scope.json": '{"card":{"ids":[],"into":null,"kind":"user","title":"The Work","v":1},"forgotten":["gone"],"v":1}',
    }),
    ("a scope of a card alone", {"memory/tone.md": "t\n", "scopes/work/scope.json": '{"card":{"title":"W"}}'}),
    ("folders that are no scope", {"memory/a.md": "x", "scopes/Work/memory/a.md": "x", "scopes/2026-04-14/memory/a.md": "x", "scopes/all/memory/a.md": "x", "scopes/w\u00f6rk/memory/a.md": "x", "scopes/../memory/a.md": "hidden"}),
    ("what stands elsewhere", {"memory/a.md": "x", "scopes/work/a.md": "x", "scopes/work/other/a.md": "x", "notes/a.md": "x"}),
    ("a card that is none", {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": '{"card":{"title":""},"v":1}'}),
    ("a card of another form beside what is forgotten", {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": '{"card":{"title":7},"forgotten":["gone"],"v":1}'}),
    ("a card that is a list beside what is forgotten", {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": '{"card":[],"forgotten":["gone"],"v":1}'}),
    ("a card with the ids of all its siblings", _with_ids(*range(100))),
    ("a card with ids in any order, one twice", _with_ids(3, 1, 2, 1)),
    ("a card with more ids than are taken", _with_ids(*range(1025))),
    ("a card with an id that is none", {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": '{"card":{"ids":[["id","x"]],"title":"W"},"v":1}'}),
    ("another version", {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": '{"v":2}'}),
    ("a member that is not known", {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": '{"forgotten":["a"],"more":1,"v":1}'}),
    ("keys that are none among the forgotten", {"scopes/work/memory/a.md": "x", "scopes/work/scope.json": '{"forgotten":["../a","a","memory"],"v":1}'}),
]  # fmt: skip

ASSIGNED: list[tuple[str, dict[str, Any]]] = [
    ("all are new", {"theirs": ["", "work"]}),
    ("one is here", {"theirs": ["", "work"], "live": ["work"]}),
    ("one is here, and it is said", {"theirs": ["", "work"], "live": ["work"], "maps": {"work": "work"}}),
    ("one is here, and kept apart", {"theirs": ["", "work"], "live": ["work"], "maps": {"work": "work-2", "": "self"}}),
    ("a backup", {"theirs": ["", "work"], "live": ["work"], "same": True}),
    ("a backup whose scope is forgotten", {"theirs": ["", "work"], "forgotten": ["work"], "same": True}),
    ("new, and forgotten here", {"theirs": ["", "work"], "forgotten": ["work"]}),
    ("to a forgotten one", {"theirs": ["", "work"], "forgotten": ["past"], "maps": {"work": "past"}}),
    ("of what is not in it", {"theirs": ["", "work"], "maps": {"wrok": "work"}}),
    ("to what is no token", {"theirs": ["", "work"], "maps": {"work": "2026-04-14"}}),
    ("two to one", {"theirs": ["", "a", "b"], "maps": {"a": "x", "b": "x"}}),
    ("one to where another goes", {"theirs": ["", "a", "b"], "maps": {"a": "b"}}),
    ("one to the nameless", {"theirs": ["", "a"], "maps": {"a": ""}}),
    ("swapped", {"theirs": ["", "a", "b"], "maps": {"a": "b", "b": "a"}}),
]  # fmt: skip


def written(given: dict[str, Any]) -> dict[str, str]:
    """The files of one scope."""
    texts = {name: text.encode() for name, text in given.get("texts", {}).items()}
    files = base_files(
        given["scope"], texts, given.get("events", []), given["index"],
        card=given.get("card"), forgotten=given.get("forgotten", []),
    )  # fmt: skip
    return {path: data.decode() for path, data in sorted(files.items())}


def scopes_of(tree: dict[str, str]) -> dict[str, Any]:
    """Return the content of a tree by scope."""

    def pairs(found: tuple[tuple[str, bytes], ...]) -> list[list[str]]:
        return [[key, data.decode()] for key, data in found]

    return {
        scope: {
            "files": {key: data.decode() for key, data in sorted(part.blob.files.items())},
            "more": pairs(part.blob.more),
            "others": pairs(part.blob.others),
            "forgotten": sorted(part.blob.forgotten),
            "events": part.blob.events,
            "card": json.loads(msgspec.json.encode(part.card)) if part.card is not None else None,
            "problems": len(part.blob.problems),
        }
        for scope, part in read_tree(tree, lambda name, most: tree[name].encode()).items()
    }


def assigned(given: dict[str, Any]) -> dict[str, str] | None:
    """Return the target of each scope; None if refused."""
    try:
        return assign(
            given["theirs"], given.get("maps", {}),
            live=given.get("live", []), own=given.get("live", []), forgotten=given.get("forgotten", []), same=given.get("same", False),
        )  # fmt: skip
    except IpfsmemError:
        return None


def vectors() -> dict[str, Any]:
    """Return the whole file."""
    return {
        "about": "All scopes as plain files, format section 1.6. 'written': what stands in one scope, and its files; 'read': a "
        "tree, and what it holds by scope; 'assigned': the scopes of a bundle and of a memory, and which becomes which (null: "
        "refused before anything is written).",
        "written": [
            {
                "about": about,
                **{
                    k: json.loads(msgspec.json.encode(v)) if isinstance(v, Card) else v
                    for k, v in given.items()
                },
                "tree": written(given),
            }
            for about, given in WRITTEN
        ],
        "read": [{"about": about, "tree": tree, "scopes": scopes_of(tree)} for about, tree in READ],
        "assigned": [{"about": about, **given, "chosen": assigned(given)} for about, given in ASSIGNED],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", "utf-8")
