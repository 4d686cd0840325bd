"""State trees with inner nodes, and invalid trees (format section 6.1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.causal.tree import StateTree, build_tree, diff_steps, empty_tree
from ipfsmem.errors import FormatError
from tests.unit.causal.make_tree_vectors import SMALL, canonical, hashed, make, path, tree

V: dict[str, Any] = json.loads((Path(__file__).parents[3] / "fixtures/vectors/tree.json").read_text("utf-8"))


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


def test_vector_file_equals_the_generated_one() -> None:
    assert make() == V


@pytest.mark.parametrize("row", V["trees"], ids=name)
def test_state_trees_equal_the_vectors(row: dict[str, Any]) -> None:
    text = canonical(V["entries"][row["entry"]]).encode()
    built = build_tree(dict.fromkeys(row["names"], text)).tree
    assert built.digest.hex() == row["digest"]
    assert {path(node.prefix): node.digest.hex() for node in built.nodes()} == row["files"]
    grown = empty_tree()
    for one in row["names"]:
        grown = grown.patch({one: text}).tree
    assert grown.digest == built.digest
    found = read(empty_tree(), built.digest.hex(), lambda prefix: built.find(prefix).raw)
    assert sorted(found) == sorted(row["names"])


def read(mine: StateTree, digest: str, node: Callable[[str], bytes]) -> list[str]:
    """The names in which a tree that is read node by node differs from ours."""
    steps = diff_steps(mine, bytes.fromhex(digest))
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send([node(prefix) for prefix, _ in wanted])
    except StopIteration as end:
        return [difference.name for difference in end.value]


@pytest.mark.parametrize("row", V["refused"], ids=name)
def test_invalid_state_trees_are_refused(row: dict[str, Any]) -> None:
    (base,) = [one for one in V["trees"] if one["name"] == "65 entries are not"]
    nodes = tree(base["names"], SMALL)
    for prefix in row.get("without", ()):
        del nodes[prefix]
    nodes |= row["nodes"]

    def node(prefix: str) -> bytes:
        if prefix not in nodes:
            raise FormatError(f"no node {prefix}")
        return nodes[prefix].encode()

    with pytest.raises(FormatError):
        read(empty_tree(), row["digest"], node)


def test_inner_node_that_must_be_a_leaf_is_found_with_unread_children() -> None:
    """Its children are counted also when they need not be read."""
    names = [f"m/k{n}" for n in range(66)]
    whole = tree(names, SMALL)
    mine = build_tree(dict.fromkeys(names, canonical(SMALL).encode())).tree
    gone = sorted(names)[:4]
    nodes = {}
    for prefix, text in whole.items():
        if prefix:
            left = {k: v for k, v in json.loads(text)["e"].items() if k not in gone}
            nodes[prefix] = canonical({"e": left})
    nodes = {prefix: text for prefix, text in nodes.items() if text != '{"e":{}}'}
    nodes[""] = canonical({"n": {prefix: hashed(text) for prefix, text in nodes.items()}})
    asked: list[str] = []

    def node(prefix: str) -> bytes:
        asked.append(prefix)
        return nodes[prefix].encode()

    with pytest.raises(FormatError, match="an inner node that the split rule does not make"):
        read(mine, hashed(nodes[""]), node)
    assert len(asked) <= 5


def test_only_unread_nodes_count_as_lost() -> None:
    names = [f"m/k{n}" for n in range(200)]
    built = build_tree(dict.fromkeys(names, canonical(SMALL).encode())).tree
    lost: list[str] = []
    steps = diff_steps(empty_tree(), built.digest, lost)
    found = []
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send([None if prefix == "0" else built.find(prefix).raw for prefix, _ in wanted])
    except StopIteration as end:
        found = [difference.name for difference in end.value]
    assert lost == ["0"] and set(found) < set(names) and len(found) > len(names) / 2
