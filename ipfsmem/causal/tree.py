"""Prefix tree of a state (format section 6.1).

Equal sets of entries have equal trees on every device, and a changed entry changes only the nodes on its path.

A prefix is a leaf exactly when it holds one entry, or at most 64 entries and 48 KiB, or has 16 digits; any other
splits by the next hex digit of SHA-256(entry name). A tree is immutable, loads nodes lazily through a function of the
caller, and keeps entries as canonical JSON until they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec

from ipfsmem.canonical import check_depth
from ipfsmem.errors import DamagedError, FormatError, IpfsmemError

MAX_ENTRIES = 64
MAX_BYTES = 48 * 1024
MAX_DEPTH = 16
DIGITS = "0123456789abcdef"

#: Returns the JSON of the node with this prefix and SHA-256, or raises.
Load = Callable[[str, bytes], bytes]


class _Leaf(msgspec.Struct, forbid_unknown_fields=True):
    e: dict[str, msgspec.Raw]


class _Inner(msgspec.Struct, forbid_unknown_fields=True):
    n: dict[str, str]


_leaf_decoder = msgspec.json.Decoder(_Leaf)
_inner_decoder = msgspec.json.Decoder(_Inner)


def name_digits(name: str) -> str:
    """Return the 64 hex digits that determine an entry's position in the tree."""
    return sha256(name.encode()).hexdigest()


def is_leaf(count: int, size: int, depth: int) -> bool:
    """Tell whether a prefix of `depth` digits with `count` entries of `size` bytes in total is a leaf."""
    return count <= 1 or (count <= MAX_ENTRIES and size <= MAX_BYTES) or depth >= MAX_DEPTH


def entry_size(name: str, text: bytes) -> int:
    """Return the bytes of `"name":entry` in canonical JSON. Entry names need no escapes."""
    return len(name) + 3 + len(text)


class TreeNode:
    """One node: a leaf with the JSON text of each entry, or an inner node with its children's hashes."""

    __slots__ = ("children", "digest", "entries", "loaded", "prefix", "raw")

    def __init__(
        self,
        prefix: str,
        raw: bytes,
        digest: bytes,
        entries: dict[str, bytes] | None,
        children: dict[str, bytes] | None,
    ) -> None:
        self.prefix = prefix
        self.raw = raw
        self.digest = digest
        self.entries = entries
        self.children = children
        self.loaded: dict[str, TreeNode] = {}


def _leaf(prefix: str, entries: dict[str, bytes]) -> TreeNode:
    body = b",".join([b'"%s":%s' % (name.encode(), entries[name]) for name in sorted(entries)])
    raw = b'{"e":{' + body + b"}}"
    return TreeNode(prefix, raw, sha256(raw).digest(), entries, None)


def _inner(prefix: str, children: dict[str, bytes]) -> TreeNode:
    body = ",".join(f'"{digit}":"{children[digit].hex()}"' for digit in sorted(children))
    raw = b'{"n":{' + body.encode() + b"}}"
    return TreeNode(prefix, raw, sha256(raw).digest(), None, children)


def parse_node(prefix: str, raw: bytes, digest: bytes) -> TreeNode:
    """Parse a node and check its hash, its form, the prefix of each entry, and the split rule.

    Raises DamagedError if the hash differs, FormatError for any other violation.
    """
    where = f"state node {prefix or 'top'}"
    if sha256(raw).digest() != digest:
        raise DamagedError(f"{where} does not have the hash that its parent names")
    check_depth(raw, where)
    try:
        if raw.startswith(b'{"e":'):
            node = _leaf(prefix, {name: bytes(text) for name, text in _leaf_decoder.decode(raw).e.items()})
        else:
            children: dict[str, bytes] = {}
            for digit, text in _inner_decoder.decode(raw).n.items():
                if digit not in DIGITS or len(digit) != 1:
                    raise FormatError(f"{where} has a child {digit!r}")
                children[digit] = bytes.fromhex(text)
                if len(children[digit]) != 32:
                    raise FormatError(f"{where} has a child hash of another length")
            node = _inner(prefix, children)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise FormatError(f"{where} is malformed: {error}") from None
    if node.raw != raw:
        raise FormatError(f"{where} is not canonical JSON")
    if node.entries is not None:
        for name in node.entries:
            if not name_digits(name).startswith(prefix):
                raise FormatError(f"{where} holds {name!r}, which does not belong there")
        size = sum(entry_size(name, text) for name, text in node.entries.items())
        if not is_leaf(len(node.entries), size, len(prefix)) or (prefix and not node.entries):
            raise FormatError(f"{where} is a leaf that the split rule does not make")
    elif not node.children or len(prefix) >= MAX_DEPTH:
        raise FormatError(f"{where} is an inner node that the split rule does not make")
    return node


class TreePatch(msgspec.Struct, frozen=True):
    """A changed tree, its new nodes by prefix, and the prefixes of its removed nodes."""

    tree: StateTree
    written: dict[str, TreeNode]
    removed: set[str]


class StateTree:
    """An immutable tree of entries with lazily loaded nodes."""

    __slots__ = ("_load", "_top", "digest")

    def __init__(self, top: TreeNode | None, load: Load, digest: bytes = b"") -> None:
        """Make a tree from its top node, or from the top's digest if `load` shall fetch the top on first use."""
        self._top = top
        self._load = load
        #: SHA-256 of the top node: the digest of the state, independent of the sealing key.
        self.digest = digest if top is None else top.digest

    @property
    def top(self) -> TreeNode:
        """Return the top node."""
        if self._top is None:
            self._top = parse_node("", self._load("", self.digest), self.digest)
        return self._top

    def child(self, node: TreeNode, digit: str) -> TreeNode:
        """Return the child of an inner node, loading it on first use."""
        got = node.loaded.get(digit)
        if got is None:
            assert node.children is not None
            prefix = node.prefix + digit
            digest = node.children[digit]
            got = parse_node(prefix, self._load(prefix, digest), digest)
            node.loaded[digit] = got
        return got

    def get(self, name: str) -> bytes | None:
        """Return the JSON text of one entry, or None."""
        node = self.top
        digits = name_digits(name) if node.children is not None else ""
        while node.children is not None:
            digit = digits[len(node.prefix)]
            if digit not in node.children:
                return None
            node = self.child(node, digit)
        assert node.entries is not None
        return node.entries.get(name)

    def find(self, prefix: str) -> TreeNode:
        """Return the node with this prefix. Raises FormatError if absent."""
        node = self.top
        while node.prefix != prefix:
            digit = prefix[len(node.prefix)]
            if node.children is None or digit not in node.children:
                raise FormatError(f"there is no state node {prefix}")
            node = self.child(node, digit)
        return node

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Yield all entries as (name, JSON text), in tree order."""
        for node in self.nodes():
            if node.entries is not None:
                yield from node.entries.items()

    def nodes(self, start: TreeNode | None = None) -> Iterator[TreeNode]:
        """Yield all nodes, parents first."""
        stack = [start or self.top]
        while stack:
            node = stack.pop()
            yield node
            if node.children is not None:
                stack.extend(self.child(node, digit) for digit in sorted(node.children, reverse=True))

    def readable(self, unread: list[tuple[str, bytes]]) -> Iterator[TreeNode]:
        """Yield the readable nodes, parents first; append prefix and digest of each unreadable node to `unread`."""
        try:
            stack = [self.top]
        except IpfsmemError:
            unread.append(("", self.digest))
            return
        while stack:
            node = stack.pop()
            yield node
            for digit, digest in sorted((node.children or {}).items(), reverse=True):
                try:
                    stack.append(self.child(node, digit))
                except IpfsmemError:
                    unread.append((node.prefix + digit, digest))

    def patch(self, changes: Mapping[str, bytes | None]) -> TreePatch:
        """Replace the entries in `changes` (None removes an entry); both trees share all other nodes."""
        written: dict[str, TreeNode] = {}
        removed: set[str] = set()
        work = [(name_digits(name), name, text) for name, text in changes.items()]
        top = self._patch_node(self.top, "", work, written, removed) or _leaf("", {})
        if top.digest == self.top.digest:
            return TreePatch(self, {}, set())
        written[""] = top
        return TreePatch(StateTree(top, self._load), written, removed - written.keys())

    def _patch_node(
        self,
        node: TreeNode | None,
        prefix: str,
        work: list[tuple[str, str, bytes | None]],
        written: dict[str, TreeNode],
        removed: set[str],
    ) -> TreeNode | None:
        if node is None or node.entries is not None:
            entries = dict(node.entries) if node is not None and node.entries is not None else {}
            for _, name, text in work:
                if text is None:
                    entries.pop(name, None)
                else:
                    entries[name] = text
            if not entries:
                if node is not None:
                    removed.add(prefix)
                return None
            return _build(prefix, entries, written)
        assert node.children is not None
        children, loaded = dict(node.children), dict(node.loaded)
        groups: dict[str, list[tuple[str, str, bytes | None]]] = {}
        for item in work:
            groups.setdefault(item[0][len(prefix)], []).append(item)
        for digit, group in groups.items():
            old = self.child(node, digit) if digit in children else None
            new = self._patch_node(old, prefix + digit, group, written, removed)
            if new is None:
                children.pop(digit, None)
                loaded.pop(digit, None)
            else:
                children[digit], loaded[digit] = new.digest, new
                if old is None or old.digest != new.digest:
                    written[new.prefix] = new
        made = _inner(prefix, children)
        made.loaded = loaded
        return self._fold_if_leaf(made, written, removed)

    def _fold_if_leaf(
        self, node: TreeNode, written: dict[str, TreeNode], removed: set[str]
    ) -> TreeNode | None:
        """Turn an inner node into a leaf if the split rule now makes it one."""
        assert node.children is not None
        entries: dict[str, bytes] = {}
        size = 0
        for digit in node.children:
            for below in self.nodes(self.child(node, digit)):
                if below.entries is None:
                    continue
                entries.update(below.entries)
                size += sum(entry_size(name, text) for name, text in below.entries.items())
                if not is_leaf(len(entries), size, len(node.prefix)):
                    return node
        for prefix in [node.prefix + digit for digit in node.children]:
            for below in list(self.nodes(self.child(node, prefix[-1]))):
                removed.add(below.prefix)
                written.pop(below.prefix, None)
        if not entries:
            removed.add(node.prefix)
            return None
        return _leaf(node.prefix, entries)


def _build(prefix: str, entries: dict[str, bytes], written: dict[str, TreeNode]) -> TreeNode:
    size = sum([len(name) + 3 + len(text) for name, text in entries.items()])
    if is_leaf(len(entries), size, len(prefix)):
        return _leaf(prefix, entries)
    depth = len(prefix)
    groups: dict[str, dict[str, bytes]] = {}
    for name, text in entries.items():
        groups.setdefault(name_digits(name)[depth], {})[name] = text
    children: dict[str, bytes] = {}
    loaded: dict[str, TreeNode] = {}
    for digit, group in groups.items():
        node = _build(prefix + digit, group, written)
        written[node.prefix] = node
        children[digit], loaded[digit] = node.digest, node
    made = _inner(prefix, children)
    made.loaded = loaded
    return made


def _refuse_load(prefix: str, digest: bytes) -> bytes:
    raise FormatError(f"state node {prefix or 'top'} is not at hand")


_EMPTY = _leaf("", {}).digest


def empty_tree(load: Load = _refuse_load) -> StateTree:
    """Return the tree without entries. Its digest is a constant of the format."""
    return StateTree(_leaf("", {}), load)


def build_tree(entries: Mapping[str, bytes], load: Load = _refuse_load) -> TreePatch:
    """Build the tree of all `entries`."""
    return empty_tree(load).patch(entries)


def open_tree(digest: bytes, load: Load) -> StateTree:
    """Return the tree whose top node has this SHA-256; nodes load lazily."""
    return StateTree(None, load, digest)


class Difference(msgspec.Struct, frozen=True, gc=False):
    """One entry in which two trees differ, with its JSON text in each; None if absent."""

    name: str
    mine: bytes | None
    theirs: bytes | None


def diff(mine: StateTree, theirs: StateTree) -> list[Difference]:
    """Return all entries that differ between two local trees; equal subtrees are skipped by hash."""
    steps = diff_steps(mine, theirs.digest)
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send([theirs.find(prefix).raw for prefix, _ in wanted])
    except StopIteration as end:
        found: list[Difference] = end.value
        return found


def diff_steps(
    mine: StateTree, theirs: bytes, lost: list[str] | None = None
) -> Generator[list[tuple[str, bytes]], Sequence[bytes | None], list[Difference]]:
    """Compare a tree with another of which only the digest is known.

    This generator yields the (prefix, SHA-256) pairs of the nodes that it needs next, receives their JSON in the same
    order, and returns the differences. If `lost` is given, a node may be None (unreadable): its prefix is appended to
    `lost`, and its subtree is not compared. Otherwise None raises DamagedError. A node that violates its hash or the
    split rule raises FormatError.
    """
    differences: list[Difference] = []
    read: dict[str, TreeNode] = {}
    frontier: list[tuple[str, bytes, list[TreeNode]]] = []
    if theirs == _EMPTY:
        _compare(_entries_below(mine, [mine.top], ""), {}, differences)  # every tree has a top node
    elif mine.digest != theirs:
        frontier.append(("", theirs, [mine.top]))
    while frontier:
        texts = yield [(prefix, digest) for prefix, digest, _ in frontier]
        following: list[tuple[str, bytes, list[TreeNode]]] = []
        for (prefix, digest, ours), text in zip(frontier, texts, strict=True):
            if lost is not None and (text is None or sha256(text).digest() != digest):
                lost.append(prefix)
                continue
            if text is None:
                raise DamagedError(f"state node {prefix or 'top'} cannot be read")
            node = read[prefix] = parse_node(prefix, text, digest)
            if node.entries is not None:
                _compare(_entries_below(mine, ours, prefix), node.entries, differences)
            else:
                assert node.children is not None
                for digit in DIGITS:
                    below = _below(mine, ours, prefix + digit)
                    want = node.children.get(digit)
                    if want is None:
                        _compare(_entries_below(mine, below, prefix + digit), {}, differences)
                    elif not (
                        len(below) == 1 and below[0].prefix == prefix + digit and below[0].digest == want
                    ):
                        following.append((prefix + digit, want, below))
        frontier = following
    for prefix, node in read.items():
        if node.children is not None and not _must_split(mine, read, lost or (), node):
            raise FormatError(
                f"state node {prefix or 'top'} is an inner node that the split rule does not make"
            )
    return differences


def _must_split(mine: StateTree, read: Mapping[str, TreeNode], lost: Collection[str], node: TreeNode) -> bool:
    """Tell whether the entries below an inner node exceed a leaf.

    Its children were read, or equal ours, which obey the split rule; an inner child exceeds a leaf or is refused
    itself. The size of a lost child is unknown.
    """
    count = size = 0
    prefixes = [node.prefix + digit for digit in node.children or ()]
    for prefix in sorted(prefixes, key=lambda prefix: prefix not in read):
        if prefix in lost:
            return True
        child = read.get(prefix) or mine.find(prefix)
        if child.entries is None:
            return True
        count += len(child.entries)
        size += sum(entry_size(name, text) for name, text in child.entries.items())
        if not is_leaf(count, size, len(node.prefix)):
            return True
    return False


def _below(tree: StateTree, ours: list[TreeNode], prefix: str) -> list[TreeNode]:
    """Return our nodes that can contain entries under `prefix`; `ours`: those for the parent prefix."""
    result: list[TreeNode] = []
    for node in ours:
        if node.children is not None and len(node.prefix) < len(prefix):
            digit = prefix[len(node.prefix)]
            if digit in node.children:
                result.append(tree.child(node, digit))
        else:
            result.append(node)
    return result


def _entries_below(tree: StateTree, ours: list[TreeNode], prefix: str) -> dict[str, bytes]:
    entries: dict[str, bytes] = {}
    for start in ours:
        for node in tree.nodes(start):
            for name, text in (node.entries or {}).items():
                if name_digits(name).startswith(prefix):
                    entries[name] = text
    return entries


def _compare(mine: dict[str, bytes], theirs: dict[str, bytes], differences: list[Difference]) -> None:
    for name, text in theirs.items():
        ours = mine.get(name)
        if ours != text:
            differences.append(Difference(name, ours, text))
    for name in mine.keys() - theirs.keys():
        differences.append(Difference(name, mine[name], None))
