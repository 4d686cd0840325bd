"""Writes fixtures/vectors/scopes.json. Run it only when the format changes: python tests/unit/causal/make_scope_vectors.py"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem.bundle.projects import remote_name, scope_token, slug
from ipfsmem.causal.cards import (
    Card,
    is_forgotten,
    read_order,
    redirects,
    view_card,
    write_card,
    write_target,
)
from ipfsmem.causal.value import Entry, Value

VECTORS = Path(__file__).parents[3] / "fixtures" / "vectors"
DEV = "34750f98bd59fcfc"


def name_vectors() -> list[dict[str, Any]]:
    """Entry names, their meaning, and the type and ctx of the sealed object that holds a body."""
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


CARD = (
    '{"ids":[["id","00112233445566778899aabbccddeeff"],["remote","github.com/a/b",""]],'
    '"into":null,"kind":"workspace","title":"Work: the API","v":1}'
)


def card_vectors() -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Valid and refused cards."""
    taken = [
        Card(
            title="Work: the API",
            ids=(("id", "00112233445566778899aabbccddeeff"), ("remote", "github.com/a/b", "")),
        ),
        Card(title="Wörk \u2014 日本", kind="agent"),
        Card(title="a", kind="user", into="work-0123456789ab"),
        Card(
            title="x" * 128,
            ids=(("remote", "example.com/a/b/c", "packages/Core"), ("remote", "example.com/a/b/c", "")),
        ),
        Card(title="a", ids=tuple(("id", f"{n:032x}") for n in range(64))),
        Card(title="a", ids=(("remote", "example.com/grün/\u200db", "a b/\xad"),)),
    ]

    def changed(old: str, new: str) -> str:
        assert old in CARD
        return CARD.replace(old, new)

    many = ",".join(f'["id","{n:032x}"]' for n in range(65))
    ids = CARD[CARD.index("[[") + 1 : CARD.index("]],") + 1]
    refused = [
        ("cut off", CARD[:-1]),
        ("white space", changed('"into":', '"into": ')),
        ("unknown field", changed('{"ids"', '{"a":1,"ids"')),
        ("field missing", changed('"into":null,', "")),
        ("another version", changed('"v":1', '"v":2')),
        ("unknown kind", changed("workspace", "session")),
        ("title empty", changed("Work: the API", "")),
        ("title of 129 bytes", changed("Work: the API", "x" * 129)),
        ("title with a line break", changed("Work: the API", "Work\\nAPI")),
        ("title that turns the direction of text", changed("Work: the API", "Work \u202eIPA")),
        ("title with a character that nobody sees", changed("Work: the API", "Work\u200b")),
        ("into is no scope", changed("null", '"2026-04-14"')),
        ("into the nameless scope", changed("null", '""')),
        ("ids not sorted", changed(ids, ",".join(reversed(ids.replace("],[", "]#[").split("#"))))),
        (
            "an id twice",
            changed(
                '["id","00112233445566778899aabbccddeeff"]',
                '["id","00112233445566778899aabbccddeeff"],["id","00112233445566778899aabbccddeeff"]',
            ),
        ),
        ("65 ids", changed(ids, many)),
        ("id of 31 digits", changed("00112233", "0112233")),
        ("id in capitals", changed("aabbccddeeff", "AABBCCDDEEFF")),
        ("unknown sort of id", changed('["id",', '["name",')),
        ("remote without a path inside", changed(',""]', "]")),
        ("remote with a user", changed("github.com/a/b", "me@github.com/a/b")),
        ("remote with a port", changed("github.com/a/b", "github.com:22/a/b")),
        ("remote with a query", changed("github.com/a/b", "github.com/a/b?token=x")),
        ("remote in capitals", changed("github.com/a/b", "github.com/A/b")),
        ("remote with .git", changed("github.com/a/b", "github.com/a/b.git")),
        ("remote without a dot", changed("github.com/a/b", "localhost/a/b")),
        ("remote without a repository", changed("github.com/a/b", "github.com")),
        ("remote with an empty part", changed("github.com/a/b", "github.com//b")),
        ("remote with a character that no host has", changed("github.com/a/b", "git+hub.com/a/b")),
        ("remote with a label that ends in a hyphen", changed("github.com/a/b", "git-.com/a/b")),
        ("remote with a DEL", changed("github.com/a/b", "github.com/a/b\x7f")),
        ("remote with a no-break space", changed("github.com/a/b", "github.com/a/b\xa0c")),
        ("path inside with a NEL", changed('b",""]', 'b","c\x85d"]')),
        ("title with half a surrogate pair", changed("Work: the API", "Work\\ud800")),
        ("path inside that climbs", changed('b",""]', 'b","../c"]')),
        ("path inside with a slash at its end", changed('b",""]', 'b","c/"]')),
        ("list", "[]"),
    ]
    return [{"json": write_card(card).decode()} for card in taken], [
        {"why": w, "json": j} for w, j in refused
    ]


def merge_vectors() -> dict[str, Any]:
    """Siblings of a card, and their merged content."""
    a, b = "a" * 16, "b" * 16
    one = ("id", "0" * 32)
    two = ("remote", "github.com/a/b", "")
    cards = {
        "one": Card(title="One", ids=(one,)),
        "two": Card(title="Two", ids=(two,), kind="agent", into="other"),
        "both": Card(title="Both", ids=(one, two)),
    }
    texts = {sha256(data := write_card(card)).hexdigest(): data.decode() for card in cards.values()}
    bodies = {name: sha256(write_card(card)).hexdigest() for name, card in cards.items()}
    broken = sha256(b"{}").hexdigest()
    texts[broken] = "{}"

    def live(body: str, h: int) -> Value:
        return Value(b=(), body=body, h=f"{h:016x}", kind="live")

    gone = Value(b=(), body=None, h="0" * 16, kind="forgotten")
    a1, b1, b2 = f"{a}-1", f"{b}-1", f"{b}-2"
    cases: list[tuple[str, Entry]] = [
        ("none", {}),
        ("one", {a1: live(bodies["one"], 1)}),
        (
            "ids unite, the rest is the greatest clock's",
            {a1: live(bodies["one"], 2), b1: live(bodies["two"], 1)},
        ),
        ("same clock: the device decides", {a1: live(bodies["one"], 1), b1: live(bodies["two"], 1)}),
        (
            "equal bodies",
            {a1: live(bodies["one"], 1), b1: live(bodies["one"], 9), b2: live(bodies["two"], 3)},
        ),
        ("what is no card is passed over", {a1: live(bodies["one"], 1), b1: live(broken, 9)}),
        ("what is not at hand is passed over", {a1: live(bodies["one"], 1), b1: live("0" * 64, 9)}),
        ("none can be read", {b1: live(broken, 9)}),
        ("forgotten wins", {a1: live(bodies["both"], 9), b1: gone}),
    ]
    at_hand = {body: text.encode() for body, text in texts.items()}
    rows = []
    for why, entry in cases:
        card = view_card(entry, at_hand.get)
        rows.append(
            {
                "why": why,
                "entry": json.loads(msgspec.json.encode(entry)),
                "forgotten": is_forgotten(entry),
                "card": None if card is None else write_card(card).decode(),
            }
        )
    return {"texts": texts, "cases": rows}


def into_vectors() -> list[dict[str, Any]]:
    """Which `into` is followed, the target of writes, and the stacks."""
    chain = {f"s{n}": f"s{n + 1}" for n in range(12)} | {"s12": None}
    cases: list[tuple[str, dict[str, str | None]]] = [
        ("none", {"a": None, "b": None}),
        ("a turned out to be b", {"a": "b", "b": None}),
        ("two turned out to be b, by token", {"c": "b", "a": "b", "b": None}),
        ("a chain", {"a": "b", "b": "c", "c": None}),
        ("each followed by its own", {"a": "m", "b": "a", "n": "m", "m": None, "c": "n"}),
        ("into itself", {"a": "a"}),
        ("a cycle of two: the least token's is ignored", {"b": "a", "a": "b"}),
        ("a cycle of three with a tail", {"c": "b", "b": "d", "d": "c", "a": "d"}),
        ("two cycles", {"a": "b", "b": "a", "c": "d", "d": "c"}),
        ("into a scope that has no card, or is forgotten", {"a": "gone", "b": "a"}),
        ("twelve steps", chain),
    ]
    rows = []
    for why, into in cases:
        onward = redirects({scope: Card(title="x", into=there) for scope, there in into.items()})
        rows.append(
            {
                "why": why,
                "into": into,
                "followed": onward,
                "target": {scope: write_target(scope, onward) for scope in into},
                "stack": {scope: read_order(scope, onward) for scope in into},
            }
        )
    return rows


def project_vectors() -> dict[str, Any]:
    """Remotes and the tokens of their scopes in two vaults."""
    urls = [
        "https://github.com/Acme/Api.git",
        "https://user:secret@GitHub.com:443/acme/api?token=x#y",
        "git@github.com:acme/api.git",
        "ssh://git@github.com:22/acme/api/",
        "git://github.com/acme/api",
        "https://gitlab.com/group/sub/api.git",
        "https://github.com/fork/api.git",
        "https://git.example.org/work/api",
        "https://git.example.net/work/api",
        "https://github.com./acme/api",
        "file:///srv/git/api.git",
        "/srv/git/api.git",
        "../api",
        "http://localhost:3000/acme/api",
        "git@devbox:acme/api.git",
        "https://github.com/",
        "https://github.com",
        "C:\\git\\api",
        "https://[::1]/acme/api",
        "ftp://example.com/a/b",
        "",
    ]
    vaults = [bytes.fromhex("3973bff87388964db243992eeb7c6506"), bytes(16)]
    found = sorted({remote for url in urls if (remote := remote_name(url)) is not None})
    wanted = [(remote, path) for remote in found for path in ("", "packages/core")] + [("0" * 32, "")]
    return {
        "remotes": [{"url": url, "remote": remote_name(url)} for url in urls],
        "tokens": [
            {"vault": tag.hex(), "remote": remote, "path": path, "token": scope_token(tag, remote, path)}
            for tag in vaults
            for remote, path in wanted
        ],
        "slugs": [
            {"name": name, "slug": slug(name)}
            for name in ("Api", "my.repo", "日本", "-x_", "a" * 50, "2026-04-14", "con")
        ],
    }


def vectors() -> dict[str, Any]:
    cards, refused = card_vectors()
    return {
        "about": (
            "Scopes, format sections 5 and 5.1. 'names': entry names with what they are and the type and ctx of the object "
            "that holds a body (section 3); 'refused_names': no names of entries; 'cards' and 'refused_cards': bodies; "
            "'merges': siblings of a card and the card that they make, written anew; 'into': by the `into` of each card that "
            "is not forgotten, which are followed, where a new write goes, what is read in which order; 'projects': the name "
            "of a remote (null: no identity) and the token of its scope"
        ),
        "names": name_vectors(),
        "refused_names": REFUSED_NAMES,
        "cards": cards,
        "refused_cards": refused,
        "merges": merge_vectors(),
        "into": into_vectors(),
        "projects": project_vectors(),
    }


if __name__ == "__main__":
    (VECTORS / "scopes.json").write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", "utf-8")
