"""Writes fixtures/vectors/{clock,values,state,merge3,view}.json. Run it only when the format changes:
python -m tests.unit.causal.make_causal_vectors
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem.causal.authorship import author_of_copy, author_of_replacement, is_own
from ipfsmem.causal.clock import FAR_AHEAD_MS, corrected_hlc, hlc_after_seeing, next_hlc
from ipfsmem.causal.merge3 import merge_fields, merge_memory
from ipfsmem.causal.own_copies import step_back, values_to_move
from ipfsmem.causal.state import Ctx, State, limit_values, next_bases
from ipfsmem.causal.tree import build_tree
from ipfsmem.causal.value import (
    FOREIGN,
    FORGOTTEN,
    LIVE,
    Entry,
    Loc,
    Value,
    dot,
    encode_entry,
    hash32,
    identity,
    seen_message,
    sign_seen,
    sign_value,
)
from ipfsmem.causal.view import own_view, view_entry
from ipfsmem.ring.authority import BY_ROOT, Admission
from ipfsmem.seal.primitives import Signer25519
from tests.support.causal_lab import join

HERE = Path(__file__).parent
VECTORS = HERE.parents[2] / "fixtures" / "vectors"
VAULT = bytes.fromhex("3973bff87388964db243992eeb7c6506")
A, B, C = "a" * 16, "b" * 16, "c" * 16
_spec = importlib.util.spec_from_file_location("plain_merge", HERE / "plain_merge.py")
assert _spec is not None and _spec.loader is not None
_plain = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_plain)


def plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def live(text: str | bytes, h: int = 0, b: tuple[str, ...] = (), **more: Any) -> Value:
    return Value(b=b, body=sha(text), h=f"{h:016x}", kind=LIVE, **more)


def gone(h: int = 0) -> Value:
    return Value(b=(), body=None, h=f"{h:016x}", kind=FORGOTTEN)


def clock_vectors() -> dict[str, Any]:
    last = [0, 1, 0x019D8AEE00000000, 0x019D8AEE0000FFFF, 0x019D8AEE00010000]
    now = [0, -5, 0x019D8AEE0000 >> 0, 1_776_168_192_000, 1_776_168_192_001]
    ticks = [(f"{x:016x}", n) for x in last for n in now]
    seen = ["0" * 16, f"{1_776_168_192_000 << 16 | 7:016x}", f"{1_776_168_492_000 << 16:016x}", "f" * 16]
    return {
        "about": "hybrid clock: values are 48 bits of milliseconds and 16 of counter as 16 hex digits. 'put_right': a person "
        "says that the machine's clock is right; null: not far ahead, so it stays",
        "next": [{"last": x, "now_ms": n, "result": next_hlc(x, n)} for x, n in ticks],
        "observed": [
            {"last": x, "seen": s, "now_ms": n, "result": hlc_after_seeing(x, s, n)}
            for x in ("0" * 16, f"{1_776_168_192_000 << 16:016x}")
            for s in seen
            for n in (0, 1_776_168_192_000)
        ],
        "put_right": [
            {"last": x, "now_ms": n, "result": corrected_hlc(x, n)}
            for n in (0, 1_776_168_192_000)
            for x in (
                "0" * 16,
                *(f"{n + FAR_AHEAD_MS + more << 16 | 5:016x}" for more in (-1, 0, 1)),
                "f" * 16,
            )
        ],
        "refused": ["", "0", "0" * 15, "0" * 17, "A" * 16, "g" * 16, "0" * 15 + "\n"],
    }


def value_vectors() -> dict[str, Any]:
    seed = b"\x01" * 32
    signer = Signer25519(seed)
    dev = sha(signer.public)[:16]
    tone = live("User prefers direct critique.\n", 0x019D8AEE00000000)
    tone = msgspec.structs.replace(
        tone,
        loc=Loc("d3f4f36ce76c1012", "06436720eaf8a833057ccc1782ddae7a88ad068d515ea2faed3d4e5e9ec3b6c2", 556),
    )
    based = live(
        "later\n",
        5,
        (sha("x")[:32], sha("y")[:32]),
        base=Loc("", sha("x"), 1),
        loc=Loc("", sha("later\n"), 6),
    )
    lines = live("{}\n", 6, loc=Loc("", sha("{}\n"), 3))
    writes = [
        ("m/feedback_tone", 1, tone),
        ("m/old_note", 2, gone(0x019D8AEE00000001)),
        ("m/k", 3, based),
        (f"t/2026-04-14/{dev}/0", 2**53 - 1, lines),
        ("m/work/tone", 4, live("a scope of its own\n", 7, loc=Loc("", sha("a scope of its own\n"), 19))),
        ("m/k", 5, live("said by another\n", 8, of=A, loc=Loc("", sha("said by another\n"), 16))),
        ("m/k", 6, live("from elsewhere\n", 9, of=FOREIGN, loc=Loc("", sha("from elsewhere\n"), 15))),
        ("c/work", 7, live("{}", 10, loc=Loc("", sha("{}"), 2))),
        ("c/work", 8, gone(11)),
        (f"t/work/2026-04-14/{dev}/0", 9, lines),
    ]
    signed = [(e, dot(dev, n), sign_value(signer, e, dot(dev, n), v, VAULT)) for e, n, v in writes]
    first = signed[0][2]
    tree = build_tree({e: encode_entry({d: v}) for e, d, v in signed[:2]}).tree

    def changed(**what: Any) -> Any:
        return {k: v for k, v in {**plain(first), **what}.items() if v != "-"}

    d1 = dot(dev, 1)
    refused: list[tuple[str, str, str, Any]] = [
        ("entry name without a kind", "feedback_tone", d1, changed()),
        ("reserved key", "m/memory", d1, changed()),
        ("key in capitals", "m/Tone", d1, changed()),
        ("key of 65 characters", "m/" + "a" * 65, d1, changed()),
        ("no such day", f"t/2026-02-30/{dev}/0", d1, changed()),
        ("segment number with a leading zero", f"t/2026-02-03/{dev}/00", d1, changed()),
        ("segment of another device", f"t/2026-02-03/{A}/0", d1, changed()),
        ("segment with bases", f"t/2026-02-03/{dev}/0", d1, changed(b=["1" * 32])),
        ("forgotten segment", f"t/2026-02-03/{dev}/0", d1, changed(kind=FORGOTTEN, body=None, loc="-")),
        ("dot number 0", "m/k", f"{dev}-0", changed()),
        ("dot number with a leading zero", "m/k", f"{dev}-01", changed()),
        ("dot number 2^53", "m/k", f"{dev}-{2**53}", changed()),
        ("dot without a number", "m/k", dev, changed()),
        ("device id in capitals", "m/k", f"{'A' * 16}-1", changed()),
        ("h too short", "m/k", d1, changed(h="0" * 15)),
        ("h in capitals", "m/k", d1, changed(h="A" * 16)),
        ("body too short", "m/k", d1, changed(body="0" * 63)),
        ("live without a body", "m/k", d1, changed(body=None)),
        ("live without loc", "m/k", d1, changed(loc="-")),
        ("forgotten with a body", "m/k", d1, changed(kind=FORGOTTEN)),
        ("forgotten with loc", "m/k", d1, changed(kind=FORGOTTEN, body=None)),
        ("forgotten with bases", "m/k", d1, changed(kind=FORGOTTEN, body=None, loc="-", b=["1" * 32])),
        ("of the writer itself", "m/k", d1, changed(of=dev)),
        ("of in capitals", "m/k", d1, changed(of="A" * 16)),
        ("of something else", "m/k", d1, changed(of="chat")),
        ("forgotten and of somebody", "m/k", d1, changed(kind=FORGOTTEN, body=None, loc="-", of=A)),
        ("segment of somebody", f"t/2026-02-03/{dev}/0", d1, changed(of=A)),
        ("card of somebody", "c/work", d1, changed(of=A)),
        ("card with bases", "c/work", d1, changed(b=["1" * 32])),
        ("card of the nameless scope", "c/", d1, changed()),
        ("scope like a date", "m/2026-04-14/k", d1, changed()),
        ("unknown kind", "m/k", d1, changed(kind="dead")),
        ("five bases", "m/k", d1, changed(b=[str(i) * 32 for i in range(5)])),
        ("a base twice", "m/k", d1, changed(b=["1" * 32, "1" * 32])),
        ("base hash of 64 digits", "m/k", d1, changed(b=["1" * 64])),
        ("base without b", "m/k", d1, changed(base=["", "1" * 64, 1])),
        ("loc with a short hash", "m/k", d1, changed(loc=["", "1" * 63, 1])),
        ("loc with a malformed EK id", "m/k", d1, changed(loc=["1", "1" * 64, 1])),
        ("loc of 1 MiB and a byte", "m/k", d1, changed(loc=["", "1" * 64, 1024 * 1024 + 1])),
        ("loc of negative size", "m/k", d1, changed(loc=["", "1" * 64, -1])),
        ("signature missing", "m/k", d1, changed(s="-")),
        ("signature too short", "m/k", d1, changed(s=first.s[:-1])),
        ("signature with spare bits set", "m/k", d1, changed(s="A" * 85 + "B")),
        ("signature with padding", "m/k", d1, changed(s=first.s + "==")),
    ]
    text = encode_entry({d1: first}).decode()
    malformed = [
        ("white space", text.replace(",", ", ", 1)),
        ("unknown field", text.replace('{"b"', '{"a":1,"b"')),
        ("fields in another order", text.replace('"b":[],', "").replace('"h":', '"b":[],"h":')),
        ("field twice", text.replace('"b":[],', '"b":[],"b":[],')),
        ("null for an absent field", text.replace('"body"', '"base":null,"body"')),
        ("size as a fraction", text.replace("556]", "556.0]")),
        ("loc of four", text.replace("556]", "556,1]")),
        ("escaped letter", text.replace('"live"', '"\\u006cive"')),
        ("empty of", text.replace('"s":', '"of":"","s":')),
        ("list", "[]"),
        ("cut off", text[:-1]),
    ]
    wrong = [
        ("another entry", "m/old_note", d1, first),
        ("another dot", "m/feedback_tone", dot(dev, 2), first),
        ("another clock", "m/feedback_tone", d1, msgspec.structs.replace(first, h="0" * 16)),
        ("another body", "m/feedback_tone", d1, msgspec.structs.replace(first, body="0" * 64)),
        ("bases added", "m/feedback_tone", d1, msgspec.structs.replace(first, b=("1" * 32,))),
        ("whose word added", "m/feedback_tone", d1, msgspec.structs.replace(first, author=A)),
        ("whose word taken away", "m/k", signed[5][1], msgspec.structs.replace(signed[5][2], author="")),
        ("another scope", "m/home/tone", signed[4][1], signed[4][2]),
        ("no scope", "m/tone", signed[4][1], signed[4][2]),
        ("another signature", "m/feedback_tone", d1, msgspec.structs.replace(first, s=signed[1][2].s)),
    ]
    r = "0102030405060708"
    seen = sign_seen(signer, VAULT, dev, 2, r)
    return {
        "about": "values and seen pairs of one device, format sections 5 and 9; strings, hex and base64url only",
        "vault": VAULT.hex(),
        "seed": seed.hex(),
        "public": signer.public.hex(),
        "device": dev,
        "signed": [
            {
                "entry": e,
                "dot": d,
                "value": plain(v),
                "message": identity(e, d, v, VAULT).hex(),
                "json": encode_entry({d: v}).decode(),
            }
            for e, d, v in signed
        ],
        "location_is_not_signed": plain(msgspec.structs.replace(first, loc=Loc("", first.body or "", 29))),
        "not_valid": [{"why": w, "entry": e, "dot": d, "value": plain(v)} for w, e, d, v in wrong],
        "refused": [{"why": w, "entry": e, "dot": d, "value": v} for w, e, d, v in refused],
        "malformed_entries": [{"why": w, "json": j} for w, j in malformed],
        "five_dots_of_one_device": plain({dot(dev, n): first for n in range(1, 6)}),
        "seen": {"n": 2, "r": r, "message": seen_message(VAULT, dev, 2, r).hex(), "s": seen.s},
        "seen_not_valid": [
            {"why": "another n", "n": 3, "r": r, "s": seen.s},
            {"why": "another r", "n": 2, "r": "0102030405060709", "s": seen.s},
            {"why": "n is 0", "n": 0, "r": r, "s": seen.s},
            {"why": "r too short", "n": 2, "r": r[2:], "s": seen.s},
            {"why": "signature malformed", "n": 2, "r": r, "s": seen.s + "="},
        ],
        "state": {
            "entries": plain({e: {d: v} for e, d, v in signed[:2]}),
            "digest": tree.digest.hex(),
            "node_bytes": len(tree.top.raw),
        },
    }


def random_state(rng: random.Random, base: State, dev: str) -> State:
    entries = {name: dict(entry) for name, entry in base.entries.items()}
    n = base.ctx.get(dev, 0)
    for _ in range(rng.randrange(4)):
        name = f"m/k{rng.randrange(3)}"
        entry = entries.get(name, {})
        shown = [d for d in entry if rng.random() < 0.7]
        for d in shown:
            del entry[d]
        if rng.random() < 0.8:
            n += 1
            entry[dot(dev, n)] = live(f"{dev}{n}", n) if rng.random() < 0.8 else gone(n)
        if entry:
            entries[name] = entry
        else:
            entries.pop(name, None)
    ctx: Ctx = {**base.ctx, dev: n} if n else dict(base.ctx)
    return State(ctx, entries)


def room_vectors() -> list[dict[str, Any]]:
    """The values of an entry that remain when a join has too many: `let_in` gives the distance of each
    device to a root and the admins who admitted it."""
    crowd = [f"{n:016x}" for n in range(1, 5)]
    let_in: dict[str, Admission] = {
        A: BY_ROOT,
        B: (1, C),
        C: BY_ROOT,
        **dict.fromkeys(crowd, (1, A)),
        "9" * 16: (2, ""),
    }
    few = {dot(A, 1): live("one", 1), dot(B, 1): live("two", 2)}
    many = {dot(A, n): live(f"a{n}", n) for n in range(1, 5)} | {dot(B, n): live(f"b{n}", n) for n in (9, 10)}
    many |= {dot(one, n): live(f"{one} {n}", 50 + n) for one in crowd for n in range(1, 4)}
    many |= {dot(C, 1): live("c", 0), dot(crowd[0], 5): gone(40), dot("9" * 16, 1): live("nobody", 99)}
    equal = {dot(B, n): live(f"b{n}", 7) for n in (2, 10)}
    own = {dot(one, n): live(f"{one} {n}", n) for one in (A, C) for n in (1, 2, 3)} | {
        dot(B, 1): live("b", 0)
    }
    twice = {"8" * 16: (1, f"{A} {C}")}
    both = {**many, dot("8" * 16, 1): live("of two admins", 0)}
    cases = [
        ("it has room", few, 2),
        ("one too many: whom a root let in", few, 1),
        ("of equal clocks the greater number", equal, 1),
        ("the newest of each whom a root let in", many, 2),
        ("then one of each share in turn", many, 6),
        ("another share than the crowd's goes first for its second", many, 9),
        ("who is no member comes with its turn", many, len(many) - 1),
        ("an only text before a second of whom roots let in", own, 4),
        ("whom two admins let in has a share beside both", both, 6),
        ("no room for any", few, 0),
    ]
    said = {**let_in, **twice}
    return [
        {
            "why": why,
            "let_in": {device: list(said[device]) for device in sorted({d[:16] for d in entry})},
            "most": most,
            "entry": plain(entry),
            "kept": sorted(limit_values(entry, said.__getitem__, most)),
        }
        for why, entry, most in cases
    ]


def state_vectors() -> dict[str, Any]:
    rng = random.Random(5)
    joins = []
    for _ in range(60):
        base = random_state(rng, random_state(rng, State(), A), B)
        mine, theirs = random_state(rng, base, A), random_state(rng, random_state(rng, base, B), C)
        joined = join(mine, theirs)
        assert not joined.clashes
        joins.append({"mine": plain(mine), "theirs": plain(theirs), "joined": plain(joined.state)})
    d = dot(A, 1)
    one, two = live("one", 1), live("two", 1)
    clashes = [
        ("another body", {"m/k": {d: one}}, {"m/k": {d: two}}, ["m/k", "m/k"]),
        ("another clock", {"m/k": {d: one}}, {"m/k": {d: live("one", 2)}}, ["m/k", "m/k"]),
        ("another kind", {"m/k": {d: one}}, {"m/k": {d: gone(1)}}, ["m/k", "m/k"]),
        ("other bases", {"m/k": {d: one}}, {"m/k": {d: live("one", 1, ("1" * 32,))}}, ["m/k", "m/k"]),
        ("another entry", {"m/k": {d: one}}, {"m/l": {d: one}}, ["m/k", "m/l"]),
    ]
    x, y, z = sha("x")[:32], sha("y")[:32], sha("z")[:32]
    loc, other = Loc("", sha("one"), 3), Loc("", sha("x"), 1)
    based = live("two", 2, (x, y, z), base=other)
    h1, h2 = hash32(one.body or ""), hash32(two.body or "")
    cases: list[tuple[str, list[Value], list[str]]] = [
        ("new text", [], []),
        ("published text without a list", [msgspec.structs.replace(one, loc=loc)], [h1]),
        ("never published: its base stays", [based], [x, y, z]),
        ("published with a list", [msgspec.structs.replace(based, loc=loc)], [h2, x, y, z]),
        ("at most four", [live("t", 3, (h2, x, y, z), base=loc)], [hash32(sha("t")), h2, x, y, z]),
        ("two shown: hashes first, then lists", [based, msgspec.structs.replace(one, loc=loc)], [h1, h2, x]),
        ("no repeats", [based, live("three", 1, (x, z), base=other)], [x]),
        ("forgotten gives nothing", [gone(3)], []),
    ]
    old_state = State(
        {A: 4, B: 1},
        {"m/k": {dot(A, 2): one}, "m/l": {dot(A, 3): two, dot(B, 1): one}, "m/n": {dot(A, 4): live("n", 4)}},
    )
    head = State({A: 9}, {"m/k": {dot(A, 2): one}, "m/l": {dot(A, 3): live("other", 9)}})
    moves = []
    for common in (0, 2, 3, 4):
        found = values_to_move(old_state.entries, A, common, lambda name: head.entries.get(name, {}))
        after = step_back(old_state, A, common, found, C)
        moves.append(
            {"last_common": common, "moved_dots": [m.dot for m in found.memories], "after": plain(after)}
        )
    return {
        "about": "joins of states, clashes, bases of a new value, what of an entry has room after a join, "
        "what moves after a restore, and what is taken over of a fork; values are unsigned",
        "joins": joins,
        "clashes": [
            {
                "why": w,
                "mine": {"ctx": {A: 1}, "entries": plain(m)},
                "theirs": {"ctx": {A: 1}, "entries": plain(t)},
                "dot": d,
                "entries": e,
            }
            for w, m, t, e in clashes
        ],
        "next_bases": [
            {
                "why": w,
                "replaced_in_view_order": plain(values),
                "published": published,
                "b": list((got := next_bases(values, published.__contains__))[0]),
                "base": plain(got[1]),
            }
            for w, values, published in cases
        ],
        "room": room_vectors(),
        "restore": {"old": A, "new": C, "state": plain(old_state), "head": plain(head), "moves": moves},
    }


MEMORY = "---\nname: Tone\ntype: feedback\ncreated: 2026-03-22\nupdated: 2026-04-14\n---\n\nfirst\n\nsecond\n\nthird\n"


def merge_vectors() -> dict[str, Any]:
    rng = random.Random(3)
    words = [
        ("abcde", "aBcde", "abcdEf"),
        ("xaxbx", "xxbx", "xaxbyx"),
        ("abc", "aBc", "abC"),
        ("", "a", ""),
        ("", "a", "b"),
        ("", "a", "a"),
        ("ab", "", "ab"),
        ("ab", "", "a"),
    ]
    while len(words) < 300:
        letters = rng.choice(["ab", "abc", "abcdef"])
        base = [rng.choice(letters) for _ in range(rng.randrange(1, 11))]
        sides = []
        for _ in range(2):
            side = list(base)
            for _ in range(rng.randrange(0, 4)):
                at = rng.randrange(len(side) + 1)
                side[at : at + rng.randrange(2)] = rng.choices(letters, k=rng.randrange(2))
            sides.append("".join(side))
        words.append(("".join(base), *sides))
    fields: list[tuple[str, dict[str, str], dict[str, str], dict[str, str]]] = [
        ("changed on one side", {"name": "a"}, {"name": "b"}, {"name": "a"}),
        ("removed on one side", {"name": "a", "source": "s"}, {"name": "a"}, {"name": "a", "source": "s"}),
        ("removed and changed", {"source": "s"}, {}, {"source": "t"}),
        ("both alike", {"name": "a"}, {"name": "b"}, {"name": "b"}),
        ("both in other ways", {"name": "a"}, {"name": "b"}, {"name": "c"}),
        ("added on both in other ways", {}, {"name": "b"}, {"name": "c"}),
        (
            "updated the later",
            {"updated": "2026-01-01"},
            {"updated": "2026-03-01"},
            {"updated": "2026-02-01"},
        ),
        (
            "updated: a day is before its instants",
            {"updated": "2026-01-01"},
            {"updated": "2026-03-01T10:00:00Z"},
            {"updated": "2026-03-01"},
        ),
        ("updated removed and changed", {"updated": "2026-01-01"}, {}, {"updated": "2026-02-01"}),
        (
            "created the earlier",
            {"created": "2026-01-05"},
            {"created": "2026-01-04"},
            {"created": "2026-01-03"},
        ),
        ("created added on both", {}, {"created": "2026-01-04"}, {"created": "2026-01-03"}),
        ("tags: sorted union", {"tags": "[m]"}, {"tags": "[z, m]"}, {"tags": "[b, a, m]"}),
        (
            "tags by code points",
            {"tags": "[m]"},
            {"tags": "[\U0001f600, Z, a]"},
            {"tags": "[\uff5e, \u00e4]"},
        ),
        ("tags quoted", {"tags": "[m]"}, {"tags": '["x, y", m]'}, {"tags": "[n]"}),
        (
            "order: known, then a's, then b's",
            {"z1": "1"},
            {"y2": "2", "z1": "1", "type": "user"},
            {"a3": "3", "z1": "1", "name": "n"},
        ),
    ]
    texts = [
        ("two edits", MEMORY, MEMORY.replace("first", "FIRST"), MEMORY.replace("third", "THIRD")),
        (
            "header and body",
            MEMORY,
            MEMORY.replace("04-14", "04-15"),
            MEMORY.replace("04-14", "04-16").replace("second", "2"),
        ),
        ("same line", MEMORY, MEMORY.replace("first", "1"), MEMORY.replace("first", "one")),
        ("last line, then a new one", MEMORY, MEMORY.replace("third", "3"), MEMORY + "\nfourth\n"),
        ("body removed and changed", MEMORY, MEMORY.split("\nfirst")[0], MEMORY.replace("third", "3")),
        ("no header", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n"),
        ("header added", "a\nb\n", "---\nname: N\n---\n\na\nb\n", "a\nB\n"),
        ("empty base", "", "a\n", ""),
        (
            "CRLF becomes LF",
            MEMORY.replace("\n", "\r\n"),
            MEMORY.replace("first", "FIRST"),
            MEMORY.replace("third", "THIRD"),
        ),
    ]
    sized = [
        (1999, 2001, True),
        (2000, 2001, False),
        (100, 40_000, True),
        (100, 40_001, False),
        (3000, 3000, True),
    ]
    return {
        "about": "three-way merges; null = not clean. lines: each letter is a line",
        "lines": [
            {
                "base": x,
                "a": a,
                "b": b,
                "merged": None if (m := _plain.plain_merge(x, a, b)) is None else "".join(m),
            }
            for x, a, b in words
        ],
        "fields": [
            {
                "why": w,
                "base": list(x.items()),
                "a": list(a.items()),
                "b": list(b.items()),
                "merged": None if (m := merge_fields(x, a, b)) is None else list(m.items()),
            }
            for w, x, a, b in fields
        ],
        "memories": [
            {
                "why": w,
                "base": x,
                "a": a,
                "b": b,
                "merged": None
                if (m := merge_memory(x.encode(), a.encode(), b.encode())) is None
                else m.decode(),
            }
            for w, x, a, b in texts
        ],
        "not_utf8_hex": {"base": "610a", "a": "ff0a", "b": "620a", "merged": None},
        "limit": {
            "about": "base: lines x0, x1, ... (n of them); a: m-n lines `a`, then the base; b: the base, then a line `b`. Clean: a, then a line `b`. m = n: a is the base, no pairs are compared",
            "cases": [{"n": n, "m": m, "clean": ok} for n, m, ok in sized],
        },
    }


def view_vectors() -> dict[str, Any]:
    base, left, right = MEMORY, MEMORY.replace("first", "FIRST"), MEMORY.replace("third", "THIRD")
    clash, middle = MEMORY.replace("first", "1st"), MEMORY.replace("second", "SECOND")
    all_texts = [base, left, right, clash, middle]
    x = sha(base)[:32]
    at = Loc("", sha(base), len(base))
    d1, d2, d3 = dot(A, 1), dot(B, 1), dot(C, 12)

    def on(text: str, h: int, b: tuple[str, ...] = (x,)) -> Value:
        return live(text, h, b, base=at) if b else live(text, h)

    cases: list[tuple[str, Entry, list[str]]] = [
        ("gone", {}, all_texts),
        ("one", {d1: on(left, 1)}, all_texts),
        ("one, not fetched", {d1: on(left, 1)}, [base]),
        (
            "equal bodies: the greatest (HLC, dot) represents, all are shown",
            {d1: on(left, 7), d2: on(left, 7), d3: on(left, 3)},
            all_texts,
        ),
        ("one device twice: dots as numbers", {dot(A, 9): on(left, 7), dot(A, 10): on(left, 7)}, all_texts),
        ("forgotten hides", {d1: on(left, 9), d2: gone(1), d3: on(right, 3)}, all_texts),
        ("forgotten twice", {d1: gone(1), d2: gone(2)}, all_texts),
        ("two edits of one base merge", {d1: on(left, 5), d2: on(right, 6)}, all_texts),
        ("three edits merge", {d1: on(left, 5), d2: on(right, 6), d3: on(middle, 2)}, all_texts),
        ("the base itself is a sibling", {d1: live(base, 5), d2: on(right, 4)}, all_texts),
        ("an edit of a sibling", {d1: live(base, 1), d2: on(right, 4), d3: on(left, 3)}, all_texts),
        ("edits of one line conflict", {d1: on(left, 5), d2: on(clash, 6)}, all_texts),
        ("three of which two conflict", {d1: on(left, 5), d2: on(clash, 6), d3: on(right, 4)}, all_texts),
        ("same clock: the device decides", {d1: on(clash, 5), d2: on(left, 5)}, all_texts),
        ("no shared base", {d1: on(left, 5), d2: on(right, 6, ())}, all_texts),
        (
            "pairs share, all three do not",
            {d1: on(left, 5), d2: on(right, 6), d3: on(middle, 7, (sha("other")[:32],))},
            all_texts,
        ),
        (
            "shared hash that nobody locates",
            {d1: on(left, 5, ("1" * 32, x)), d2: on(right, 6, ("2" * 32, x))},
            all_texts,
        ),
        ("located by one", {d1: on(left, 5, (x,)), d2: on(right, 6, ("2" * 32, x))}, all_texts),
        (
            "equal bodies unite their lists",
            {
                d1: on(left, 5, ("1" * 32,)),
                d2: on(left, 6, ()),
                d3: on(right, 7, ("1" * 32, x)),
                dot(C, 1): on(left, 1),
            },
            all_texts,
        ),
        (
            "united lists: that of the greater value stands first",
            {
                d1: on(left, 8, (hash32(sha(clash)),)),
                d2: on(left, 9, (x,)),
                d3: on(right, 7, (hash32(sha(clash)), x)),
            },
            all_texts,
        ),
        ("a body is not fetched", {d1: on(left, 5), d2: on(right, 6)}, [base, right]),
        ("the winner is not fetched", {d1: on(left, 5), d2: on(right, 6)}, [base, left]),
        ("the base is not fetched", {d1: on(left, 5), d2: on(right, 6)}, [left, right]),
    ]
    out = []
    for why, entry, texts in cases:
        known = {sha(t): t for t in texts}
        short = {h[:32]: t for h, t in known.items()}
        seen = view_entry(
            "tone",
            entry,
            lambda h, k=known: t.encode() if (t := k.get(h)) is not None else None,
            lambda h, s=short: t.encode() if (t := s.get(h)) is not None else None,
        )  # type: ignore[misc]
        out.append(
            {
                "why": why,
                "entry": plain(entry),
                "at_hand": [sha(t) for t in texts],
                "shown": None if seen.data is None else seen.data.decode(),
                "body": seen.body,
                "represented_by": seen.dot,
                "dots": list(seen.dots),
                "merged": seen.merged,
                "forgotten": seen.forgotten,
                "conflicts": plain(seen.conflicts),
                "hidden": plain(seen.hidden),
                "not_fetched": list(seen.not_fetched),
                "missing_base": seen.missing_base,
            }
        )
    return {
        "about": (
            "views of the key `tone`; dots: rendered in the text shown, in view order. `own_views` (section 5.2): what a "
            "reader of the person p is shown, `persons` being all that is known of ids; `others`: texts of others; "
            "`unheeded`: their wishes to forget. `words`: of a write with the hash `body` that replaces `replaces`, whose it "
            "is; `carried`: under which `of` a value goes on when the reader signs it anew"
        ),
        "texts": {sha(t): t for t in all_texts},
        "views": out,
        "reader": "p",
        "persons": PERSONS,
        **own_vectors(),
    }


#: A and B are devices of one person; the owner of D is unknown.
D = "d" * 16
PERSONS = {A: "p", B: "p", C: "q"}


def mine(dev: str) -> bool:
    return PERSONS.get(dev) == "p"


def own_vectors() -> dict[str, Any]:
    base, left, right = MEMORY, MEMORY.replace("first", "FIRST"), MEMORY.replace("third", "THIRD")
    clash = MEMORY.replace("first", "1st")
    texts = [base, left, right, clash]
    known = {sha(t): t.encode() for t in texts}
    at, x = Loc("", sha(base), len(base)), sha(base)[:32]
    a1, b1, c1, c2, d1 = dot(A, 1), dot(B, 1), dot(C, 1), dot(C, 2), dot(D, 1)

    def on(text: str, h: int, of: str = "") -> Value:
        return live(text, h, (x,), base=at, of=of)

    cases: list[tuple[str, Entry]] = [
        ("all own: as the view", {a1: on(left, 5), b1: on(right, 6)}),
        ("only others'", {c1: on(left, 5), d1: on(right, 6)}),
        ("one line of others merges: own stays, theirs is listed", {a1: on(left, 5), c1: on(right, 6)}),
        ("own texts merge, others' is listed", {a1: on(left, 5), b1: on(right, 6), c1: on(clash, 9)}),
        ("own texts conflict, others' is listed", {a1: on(left, 5), b1: on(clash, 6), c1: on(right, 9)}),
        ("others forget: own stays", {a1: on(left, 5), c1: gone(9)}),
        ("own wish to forget", {a1: gone(5), c1: on(left, 9)}),
        (
            "equal bodies: own wins, and an edit replaces both",
            {a1: on(left, 5), c1: on(left, 9), c2: on(right, 1)},
        ),
        ("signed by own, word of another", {a1: on(left, 5, C), b1: on(right, 4)}),
        ("signed by own, word of one who is not known", {a1: on(left, 5, D)}),
        ("signed by own, from elsewhere", {a1: on(left, 5, FOREIGN), b1: on(right, 4)}),
        ("signed by own, word of another own device", {a1: on(left, 5, B)}),
        ("signed by another who says it is ours", {c1: on(left, 5, A), b1: on(right, 4)}),
        ("revoked stranger, signed anew by an own admin", {a1: on(left, 5, D), b1: on(right, 4)}),
    ]
    views = []
    for why, entry in cases:
        short = {h[:32]: t for h, t in known.items()}
        seen = own_view("tone", entry, lambda d, of: is_own(d, of, mine), known.get, short.get)
        views.append(
            {
                "why": why,
                "entry": plain(entry),
                "shown": None if seen.data is None else seen.data.decode(),
                "dots": list(seen.dots),
                "merged": seen.merged,
                "forgotten": seen.forgotten,
                "conflicts": plain(seen.conflicts),
                "others": plain(seen.others),
                "unheeded": list(seen.unheeded),
            }
        )
    writes: list[tuple[str, Entry, list[str], str]] = [
        ("own over own", {a1: on(left, 5)}, [a1], right),
        ("over a text of others", {c1: on(left, 5)}, [c1], right),
        ("over own and others'", {a1: on(left, 5), c1: on(right, 6)}, [a1, c1], clash),
        ("own text over others'", {a1: on(left, 5), c1: on(right, 6)}, [a1, c1], left),
        ("others' stays beside", {a1: on(left, 5), c1: on(right, 6)}, [a1], clash),
        ("over two of others: the first in view order", {c1: on(left, 5), d1: on(right, 6)}, [c1, d1], clash),
        ("over what came from elsewhere", {a1: on(left, 5, FOREIGN)}, [a1], right),
        ("over one that says it is ours", {c1: on(left, 5, A)}, [c1], right),
        ("over others' wish to forget", {c1: gone(5)}, [c1], right),
    ]
    carries = [(a1, ""), (a1, B), (a1, C), (a1, FOREIGN), (c1, ""), (c1, A), (c1, D), (c1, FOREIGN), (d1, "")]
    return {
        "own_views": views,
        "words": [
            {
                "why": why,
                "entry": plain(entry),
                "replaces": replaces,
                "body": sha(text),
                "of": author_of_replacement(entry, replaces, sha(text), mine),
            }
            for why, entry, replaces, text in writes
        ],
        "carried": [
            {"dot": d, "of": of, "result": author_of_copy(d, on(left, 1, of), mine)} for d, of in carries
        ],
    }


def main() -> None:
    VECTORS.mkdir(parents=True, exist_ok=True)
    made = {
        "clock": clock_vectors(),
        "values": value_vectors(),
        "state": state_vectors(),
        "merge3": merge_vectors(),
        "view": view_vectors(),
    }
    # The bytes taken from a fork are written by hand and stay unchanged.
    made["state"]["adopted"] = json.loads((VECTORS / "state.json").read_text())["adopted"]
    for topic, content in made.items():
        (VECTORS / f"{topic}.json").write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
