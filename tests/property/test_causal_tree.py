"""The prefix tree: one set has one tree, patches equal builds, differences are exact."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.causal.tree import (
    MAX_BYTES,
    MAX_ENTRIES,
    StateTree,
    build_tree,
    diff,
    empty_tree,
    name_digits,
    open_tree,
    parse_node,
)
from ipfsmem.errors import FormatError
from tests.support.effort import cases


def entry(n: int, size: int = 10) -> bytes:
    return json.dumps({"x": "v" * size, "n": n}, separators=(",", ":"), sort_keys=True).encode()


names = st.integers(0, 400).map(lambda i: f"m/k{i}")
texts = st.builds(entry, st.integers(0, 3), st.sampled_from([5, 300, 2000]))
sets = st.dictionaries(names, texts, max_size=200)


def reference(entries: dict[str, bytes], prefix: str = "") -> dict[str, tuple[str, object]]:
    """The rule of the format, in its simplest form."""
    size = sum(len(f'"{name}":'.encode()) + len(text) for name, text in entries.items())
    if len(entries) <= 1 or (len(entries) <= MAX_ENTRIES and size <= MAX_BYTES) or len(prefix) == 16:
        return {prefix: ("leaf", dict(entries))}
    nodes: dict[str, tuple[str, object]] = {}
    children = []
    for digit in "0123456789abcdef":
        below = {
            n: t for n, t in entries.items() if sha256(n.encode()).hexdigest().startswith(prefix + digit)
        }
        if below:
            nodes |= reference(below, prefix + digit)
            children.append(digit)
    nodes[prefix] = ("inner", children)
    return nodes


def shape(tree: StateTree) -> dict[str, tuple[str, object]]:
    return {
        node.prefix: ("leaf", node.entries)
        if node.entries is not None
        else ("inner", sorted(node.children or {}))
        for node in tree.nodes()
    }


@given(sets)
@settings(max_examples=cases(20, 300))
def test_built_tree_follows_the_rule(entries: dict[str, bytes]) -> None:
    assert shape(build_tree(entries).tree) == reference(entries)


@given(sets, st.dictionaries(names, st.none() | texts, max_size=60))
@settings(max_examples=cases(30, 500))
def test_patched_tree_equals_a_built_one(entries: dict[str, bytes], changes: dict[str, bytes | None]) -> None:
    before = build_tree(entries)
    store = {(n.prefix, n.digest): n.raw for n in before.tree.nodes()}
    lazy = open_tree(before.tree.digest, lambda prefix, digest: store[prefix, digest])
    patch = lazy.patch(changes)
    after = {k: v for k, v in (entries | changes).items() if v is not None}
    whole = build_tree(after).tree
    assert patch.tree.digest == whole.digest
    have = {n.prefix: n.digest for n in before.tree.nodes()}
    for prefix in patch.removed:
        have.pop(prefix, None)
    have |= {prefix: node.digest for prefix, node in patch.written.items()}
    assert have == {n.prefix: n.digest for n in whole.nodes()}


@given(sets, sets)
@settings(max_examples=cases(30, 500))
def test_tree_diff_is_exact(a: dict[str, bytes], b: dict[str, bytes]) -> None:
    found = {d.name: (d.mine, d.theirs) for d in diff(build_tree(a).tree, build_tree(b).tree)}
    assert found == {n: (a.get(n), b.get(n)) for n in a.keys() | b.keys() if a.get(n) != b.get(n)}


def test_empty_tree_has_the_known_hash() -> None:
    assert empty_tree().digest.hex() == "bfcd2845c5c8fbfcdf47cb926085f2806e5665701dcd165895177eb2f47ecb58"


def test_one_change_rewrites_one_path() -> None:
    for count in (100, 2_000, 20_000):
        tree = build_tree({f"m/k{i}": entry(i, 350) for i in range(count)}).tree
        patch = tree.patch({"m/k7": entry(8, 350)})
        assert len(patch.written) <= 5 and sum(len(n.raw) for n in patch.written.values()) < 64 * 1024


@pytest.mark.parametrize("count", [MAX_ENTRIES, MAX_ENTRIES + 1])
def test_trace_27_tree_grows_gradually_at_any_size(count: int) -> None:
    """Adding the memory that crosses a limit writes one path, not every folder."""
    base = {f"m/k{i}": entry(i) for i in range(65_536)}
    tree = build_tree(base).tree
    extra = [f"m/x{i}" for i in range(count)]
    for name in extra:
        patch = tree.patch({name: entry(1)})
        assert len(patch.written) <= 22
        tree = patch.tree


def test_trace_28_ground_keys_split_to_sixteen_digits_and_stay_bounded() -> None:
    """Keys ground into one leaf split it further instead of stopping every publish."""
    wanted = name_digits("m/target")[:2]
    ground = [n for n in (f"m/g{i}" for i in range(60_000)) if name_digits(n).startswith(wanted)]
    assert len(ground) > 150
    tree = build_tree({n: entry(1, 300) for n in ground}).tree
    assert max(len(n.raw) for n in tree.nodes()) < 60 * 1024
    assert {n for n, _ in tree.items()} == set(ground)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"e":{"m/a":{"x":1},"m/a":{"x":1}}}',
        b'{"e": {}}',
        b'{"n":{}}',
        b'{"n":{"g":"' + b"0" * 64 + b'"}}',
        b'{"n":{"0":"00"}}',
        b'{"e":{},"x":1}',
        b"[" * 100_000,
        b"\xff",
        b"",
    ],
)
def test_malformed_nodes_are_refused(raw: bytes) -> None:
    with pytest.raises(FormatError):
        parse_node("", raw, sha256(raw).digest())


def test_entry_outside_its_prefix_is_refused() -> None:
    raw = b'{"e":{"m/a":{}}}'
    digit = next(d for d in "0123456789abcdef" if not name_digits("m/a").startswith(d))
    with pytest.raises(FormatError, match="does not belong"):
        parse_node(digit, raw, sha256(raw).digest())


def test_node_with_another_hash_is_refused() -> None:
    with pytest.raises(FormatError, match="hash"):
        parse_node("", b'{"e":{}}', bytes(32))
