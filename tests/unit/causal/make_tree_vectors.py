"""Writes fixtures/vectors/tree.json: state trees with inner nodes, and refused trees (format section 6.1).

Run it only when the format changes: `python -m tests.unit.causal.make_tree_vectors`. The trees are made by
the short recursion below, not by the code under test."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[3] / "fixtures" / "vectors" / "tree.json"
Nodes = dict[str, str]


def value(dot: str) -> dict[str, Any]:
    return {dot: {"b": [], "body": None, "h": "019d8aee00000001", "kind": "forgotten", "s": "A" * 86}}


SMALL = value("34750f98bd59fcfc-1")
#: An entry of about a thousand bytes: fewer than 64 of them exceed 48 KiB.
LARGE = {dot: one for n in range(1, 6) for dot, one in value(f"{n:016x}-1").items()}


def canonical(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def label(name: str) -> str:
    return sha256(name.encode()).hexdigest()


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def below(prefix: str) -> Iterator[str]:
    """Yield names whose label begins with a prefix."""
    return (name for n in itertools.count() if label(name := f"m/k{n}").startswith(prefix))


def size(names: list[str], entry: dict[str, Any]) -> int:
    return sum(len(f'"{name}":{canonical(entry)}') for name in names)


def tree(names: list[str], entry: dict[str, Any], prefix: str = "") -> Nodes:
    """Return the JSON of all nodes by prefix, as specified in section 6.1."""
    if len(names) <= 1 or (len(names) <= 64 and size(names, entry) <= 48 * 1024) or len(prefix) == 16:
        return {prefix: canonical({"e": dict.fromkeys(names, entry)})}
    nodes: Nodes = {}
    children = {}
    for digit in "0123456789abcdef":
        under = [name for name in names if label(name).startswith(prefix + digit)]
        if under:
            nodes |= tree(under, entry, prefix + digit)
            children[digit] = hashed(nodes[prefix + digit])
    return {prefix: canonical({"n": children}), **nodes}


def path(prefix: str) -> str:
    return "s/" + "/".join([*prefix[:-1], (prefix[-1] if prefix else "top") + ".ipm"])


def just(total: int) -> list[str]:
    """Return fewer than 64 names whose large entries have exactly `total` bytes."""
    count = total // size(["m/n00"], LARGE)
    names = [f"m/n{n:02d}" for n in range(count)]
    missing = total - size(names, LARGE)
    for n in range(count):
        more = min(missing, 50)
        names[n] += "x" * more
        missing -= more
    assert missing == 0 and size(names, LARGE) == total
    return names


def trees() -> list[dict[str, Any]]:
    taken = itertools.islice
    named: list[tuple[str, list[str], str]] = [
        ("empty", [], "small"),
        ("one entry", ["m/tone"], "small"),
        ("64 entries are a leaf", list(taken(below(""), 64)), "small"),
        ("65 entries are not", list(taken(below(""), 65)), "small"),
        ("66 entries of which 65 begin with ab: inner nodes with one child", [*taken(below("ab"), 65), "m/tone"], "small"),
        ("48 KiB are a leaf", just(48 * 1024), "large"),
        ("a byte more is none", just(48 * 1024 + 1), "large"),
        ("300 entries of all kinds", [*taken(below(""), 200), *(f"t/2026-04-{n % 30 + 1:02d}/34750f98bd59fcfc/{n}" for n in range(98)), "c/garden", "m/garden/tone"], "small"),
    ]  # fmt: skip
    rows = []
    for name, names, entry in named:
        nodes = tree(names, {"small": SMALL, "large": LARGE}[entry])
        rows.append(
            {
                "name": name,
                "entry": entry,
                "names": names,
                "digest": hashed(nodes[""]),
                "files": {path(prefix): hashed(text) for prefix, text in nodes.items()},
            }
        )
    return rows


def linked(nodes: Nodes, prefix: str) -> Nodes:
    """Return the nodes with the hashes on the way to a changed `prefix` recomputed."""
    while prefix:
        child, prefix = prefix, prefix[:-1]
        node = json.loads(nodes[prefix])
        node["n"][child[-1]] = hashed(nodes[child])
        nodes[prefix] = canonical(node)
    return nodes


def refused() -> list[dict[str, Any]]:
    names = list(itertools.islice(below(""), 65))
    good = tree(names, SMALL)
    first = next(prefix for prefix in good if len(prefix) == 1 and len(json.loads(good[prefix])["e"]) > 1)
    stranger = next(name for name in below("") if not label(name).startswith(first))
    inside = json.loads(good[first])["e"]

    def changed(prefix: str, change: Callable[[str], str]) -> Nodes:
        return linked({**good, prefix: change(good[prefix])}, prefix)

    def top(change: Callable[[dict[str, str]], dict[str, str]]) -> Nodes:
        return {**good, "": canonical({"n": change(json.loads(good[""])["n"])})}

    def raw_top(text: str) -> Nodes:
        return {**good, "": text}

    few = dict.fromkeys(names[:20], SMALL)
    split: dict[str, str] = {}
    for digit in "0123456789abcdef":
        under = {name: SMALL for name in few if label(name).startswith(digit)}
        if under:
            split[digit] = canonical({"e": under})
    chain = tree([*itertools.islice(below("ab"), 65), "m/tone"], SMALL)
    short = dict.fromkeys(itertools.islice(below("ab"), 30), SMALL)
    child = good[""].index(hashed(good[first]))
    rows: list[tuple[str, Nodes]] = [
        ("65 entries in a leaf", {"": canonical({"e": dict.fromkeys(names, SMALL)})}),
        ("more than 48 KiB in a leaf", {"": canonical({"e": dict.fromkeys(just(48 * 1024 + 1), LARGE)})}),
        ("20 entries under an inner node", {"": canonical({"n": {d: hashed(t) for d, t in split.items()}}), **split}),
        ("30 entries one level too deep", linked({**{p: t for p, t in chain.items() if not p.startswith("ab")}, "ab": canonical({"e": short})}, "ab")),
        ("an entry that belongs elsewhere", changed(first, lambda _: canonical({"e": {**inside, stranger: SMALL}}))),
        ("an empty leaf below the top", changed(first, lambda _: '{"e":{}}')),
        ("an inner node without children", {"": '{"n":{}}'}),
        ("a child with another hash", {**good, first: canonical({"e": dict(list(inside.items())[1:])})}),
        ("a child that is not there", {p: t for p, t in good.items() if p != first}),
        ("a child g", top(lambda n: {**n, "g": n[first]})),
        ("a child in capitals", top(lambda n: {**n, "A": n[first]})),
        ("a child of two digits", top(lambda n: {**n, "10": n[first]})),
        ("a hash in capitals", raw_top(good[""][:child] + good[""][child : child + 64].upper() + good[""][child + 64 :])),
        ("a hash of 31 bytes", top(lambda n: {**n, first: n[first][:62]})),
        ("names that are not sorted", changed(first, lambda _: '{"e":{' + ",".join(f'"{k}":{canonical(v)}' for k, v in sorted(inside.items(), reverse=True)) + "}}")),
        ("a name twice", changed(first, lambda text: text.replace('{"e":{', '{"e":{' + f'"{min(inside)}":{canonical(SMALL)},'))),
        ("white space", changed(first, lambda text: text.replace(":", ": ", 1))),
        ("an LF at the end", changed(first, lambda text: text + "\n")),
        ("a leaf and an inner node at once", raw_top('{"e":{},' + good[""][1:])),
        ("an unknown field", changed(first, lambda text: text[:-1] + ',"v":1}')),
        ("no JSON", changed(first, lambda _: "IPM1")),
        ("a list", changed(first, lambda _: "[]")),
    ]  # fmt: skip
    found = []
    for name, nodes in rows:
        changed_nodes = {prefix: text for prefix, text in nodes.items() if good.get(prefix) != text}
        missing = sorted(good.keys() - nodes.keys()) if len(nodes) > 1 else []
        row = {"name": name, "digest": hashed(nodes[""]), "nodes": changed_nodes}
        found.append({**row, "without": missing} if missing else row)
    return found


def make() -> dict[str, Any]:
    """The content of the file."""
    return {
        "about": "State trees, format section 6.1. `trees`: all `names` hold the entry of `entries` that is named; `files`: SHA-256"
        " of each node's JSON by the path that it has in a root (sealed there; in plain mode the files end in .json). `refused`:"
        " the digest that a commit would name, and the JSON of nodes by prefix; nodes that are not given are those of the tree `65 entries"
        " are not`, but those in `without`. Signatures in the entries are not looked at.",
        "entries": {"small": SMALL, "large": LARGE},
        "trees": trees(),
        "refused": refused(),
    }


if __name__ == "__main__":
    OUT.write_text(json.dumps(make(), indent=1) + "\n", "utf-8")
