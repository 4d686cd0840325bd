"""What a scope shows: the file of each memory and its line in MEMORY.md, from a cache by leaf of the state tree.

A leaf is cached under its hash, so a memory that changes makes its leaf be read again and no other. Each row also carries a
hash of the code that made it, so none is out of date. Only memories with one text that is on this device are cached;
conflicts and what is not fetched are looked at each time. Rows are derived and may be lost.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator

import msgspec

from ipfsmem import invisible_characters
from ipfsmem.bundle import header, index, memory_file
from ipfsmem.bundle.index import IndexItem, index_line
from ipfsmem.bundle.memory_file import MemoryFile, parse_fields
from ipfsmem.causal.entries import MemoryName, memory_entry, parse_entry
from ipfsmem.causal.tree import Node, StateTree
from ipfsmem.causal.value import Entry, Value, decode_entry
from ipfsmem.content import hamt
from ipfsmem.device.replica import Replica
from ipfsmem.device.source_hash import source_hash
from ipfsmem.device.tables import meta
from ipfsmem.errors import FormatError, IpfsmemError


class Shown(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A memory with one text, which is the file byte for byte. `section` and `line` are its place in MEMORY.md, `slot`
    the hash that places the file in a sharded folder.
    """

    key: str
    dot: str
    of: str
    sha: bytes
    size: int
    slot: bytes
    section: str
    line: str


#: What is found of one scope: the memories with one text at hand, and its other entries.
ScopeView = tuple[list[Shown], dict[str, Entry]]


class _Leaf(msgspec.Struct, frozen=True, gc=False, array_like=True):
    #: The cached memories, by scope.
    shown: dict[str, list[Shown]]
    #: Entries that are looked at each time, as canonical JSON: segments, cards, conflicts. By scope.
    others: dict[str, dict[str, bytes]]


class _Row(msgspec.Struct, frozen=True, array_like=True):
    code: bytes
    digest: bytes
    leaf: _Leaf


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Row)


class Overview:
    """The memories of one replica as they are shown."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        #: By prefix, with the hash of the leaf.
        self._leaves: dict[str, tuple[bytes, _Leaf]] = {}
        #: Section and line by entry and hash of a text that was read, until its leaf has them.
        self._lines: dict[tuple[str, str], tuple[str, str]] = {}
        #: Prefixes whose row is not written yet.
        self._made: set[str] = set()
        #: Prefixes that had a row when rows were last written.
        self._kept: set[str] = set()

    def look(self, scope: str = "", *, keep: bool = False) -> ScopeView:
        """The memories of a scope that have one text at hand, in no order that means anything, and those of its entries
        that are anything else.

        Inside `reading` or a transaction; `keep` only inside a transaction: then the next process is as quick.
        """
        return self.scopes({scope}, keep=keep).get(scope, ([], {}))

    def scopes(self, wanted: Collection[str] | None = None, *, keep: bool = False) -> dict[str, ScopeView]:
        """`look` for each of these scopes (None: all) of which an entry exists."""
        found: dict[str, ScopeView] = {}

        def of(scope: str) -> ScopeView | None:
            if wanted is not None and scope not in wanted:
                return None
            return found.setdefault(scope, ([], {}))

        met = 0
        for leaf in self._walk(self._replica.store.tree, keep):
            for scope, ones in leaf.shown.items():
                if (there := of(scope)) is not None:
                    there[0].extend(ones)
            for scope, texts in leaf.others.items():
                met += len(texts)
                if (there := of(scope)) is not None:
                    there[1].update({name: decode_entry(name, text) for name, text in texts.items()})
        pending = self._replica.store.pending
        changed = {name: parse_entry(name) for name in pending}
        for scope in {parsed.scope for parsed in changed.values()}:
            if (there := of(scope)) is not None:
                there[0][:] = [one for one in there[0] if memory_entry(one.key, scope) not in pending]
        for name, parsed in changed.items():
            text = pending[name]
            if (there := of(parsed.scope)) is not None:
                there[1].pop(name, None)
                if text is not None:
                    there[1][name] = decode_entry(name, text)
        if len(self._lines) > 2 * (met + len(pending)) + 100:
            self._lines.clear()  # mostly of texts that are gone
        return {scope: there for scope, there in found.items() if there[0] or there[1]}

    def _walk(self, tree: StateTree, keep: bool) -> Iterator[_Leaf]:
        """Every leaf of a tree. Those that are remembered are not even loaded."""
        leaves: dict[str, tuple[bytes, _Leaf]] = {}
        stack: list[tuple[str, bytes, Node | None, str]] = [("", tree.digest, None, "")]
        while stack:
            prefix, digest, parent, digit = stack.pop()
            leaf = self._remembered(prefix, digest)
            if leaf is None:
                node = tree.top if parent is None else tree.child(parent, digit)
                if node.children is not None:
                    stack.extend((prefix + d, child, node, d) for d, child in node.children.items())
                    continue
                leaf, whole = self._made_of(node)
                if not whole:
                    yield leaf
                    continue
                self._made.add(prefix)
            leaves[prefix] = digest, leaf
            yield leaf
        self._leaves = leaves
        if keep:
            self._keep()

    def line(self, name: str, value: Value) -> tuple[str, str] | None:
        """Section and line of a memory with this one text; None when it is not at hand."""
        if value.body is None:
            return None
        known = self._lines.get((name, value.body))
        if known is None:
            data = self._replica.store.body(name, value)
            if data is None:
                return None
            file = head_of(data)
            known = index_line(IndexItem(_key(name), file.name, file.description, file.type))
            self._lines[name, value.body] = known
        return known

    def _made_of(self, node: Node) -> tuple[_Leaf, bool]:
        """What a leaf shows, and whether all texts were at hand that it depends on."""
        assert node.entries is not None
        leaf, whole = _Leaf({}, {}), True
        for name, text in node.entries.items():
            entry = decode_entry(name, text)
            parsed = parse_entry(name)
            others = leaf.others.setdefault(parsed.scope, {})
            if not isinstance(parsed, MemoryName) or len(entry) != 1:
                others[name] = text
                continue
            ((dot, value),) = entry.items()
            if value.body is None:
                continue  # forgotten: shows nothing
            loc, line = value.loc, self.line(name, value)
            if line is None or loc is None or loc.ek or loc.sha != value.body:
                others[name] = text
                whole = whole and line is not None
                continue
            self._lines.pop((name, value.body), None)
            slot = hamt.name_hash(file_name(parsed.key))
            sha = bytes.fromhex(loc.sha)
            shown = leaf.shown.setdefault(parsed.scope, [])
            shown.append(Shown(parsed.key, dot, value.of, sha, loc.size, slot, *line))
        return leaf, whole

    def _remembered(self, prefix: str, digest: bytes) -> _Leaf | None:
        known = self._leaves.get(prefix)
        if known is not None and known[0] == digest:
            return known[1]
        try:
            stored = self._replica.db.get_meta(meta.SHOWN + prefix)
            row = _decoder.decode(self._replica.codec.open_row(stored)) if stored is not None else None
        except (IpfsmemError, msgspec.DecodeError, UnicodeDecodeError):
            return None  # derived: made again
        return row.leaf if row is not None and row.digest == digest and row.code == _code() else None

    def _keep(self) -> None:
        """Write rows for leaves that are new, and drop those of prefixes that are none any more."""
        db, codec = self._replica.db, self._replica.codec
        made, self._made = self._made & self._leaves.keys(), set()
        for prefix in made:
            digest, leaf = self._leaves[prefix]
            db.set_meta(meta.SHOWN + prefix, codec.seal_row(_encode(_Row(_code(), digest, leaf))))
        if made or self._kept != self._leaves.keys():
            self._kept = set(self._leaves)
            known = meta.names(db.connection, meta.SHOWN)
            meta.forget(db.connection, [one for one in known if one[len(meta.SHOWN) :] not in self._leaves])


def _key(name: str) -> str:
    parsed = parse_entry(name)
    assert isinstance(parsed, MemoryName)
    return parsed.key


def file_name(key: str) -> bytes:
    """The name of a memory's file."""
    return b"%b.md" % key.encode()


def head_of(data: bytes) -> MemoryFile:
    """The header of a text; an empty one where it cannot be read."""
    try:
        return parse_fields(data)
    except FormatError:
        return MemoryFile({}, "")


def _code() -> bytes:
    """Changes with the code that makes a line of a text."""
    return source_hash(header, hamt, index, invisible_characters, memory_file, sys.modules[__name__])
