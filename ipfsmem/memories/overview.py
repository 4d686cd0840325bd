"""Caches the shown memories of each scope, with their files and lines in MEMORY.md, per leaf of the state tree.

A leaf is cached under its hash, so after a change only the leaf of the changed memory is read. Each row also contains a hash of the
code that created it, and is ignored by other code. Only memories with exactly one text that is on this device are cached; conflicts
and texts that are not fetched are looked up each time. The rows may be deleted at any time.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile, parse_fields
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.causal.entries import MemoryName, memory_entry, parse_entry
from ipfsmem.causal.tree import StateTree, TreeNode
from ipfsmem.causal.value import Entry, Value, decode_entry
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.errors import FormatError, IpfsmemError

if TYPE_CHECKING:
    from ipfsmem.recall.priority import PriorityFactors


class ShownMemory(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A memory with exactly one text, which is its file byte for byte.

    `dot` and `of`: the dot and the author of the text (`Value`). `sha` and `size`: SHA-256 and bytes of the text. `section` and
    `line`: its place in MEMORY.md. `slot`: the hash that determines its position in a sharded folder.
    """

    key: str
    dot: str
    of: str
    sha: bytes
    size: int
    slot: bytes
    section: str
    line: str


class IndexLine(msgspec.Struct, frozen=True, gc=False):
    """The line of a memory in MEMORY.md; the section is empty for a memory in no index."""

    section: str
    text: str
    #: The factors of its priority if not all lines fit.
    factors: PriorityFactors


#: The view of one scope: the memories with exactly one text that is on this device, and all other entries by name.
ScopeView = tuple[list[ShownMemory], dict[str, Entry]]


class _Leaf(msgspec.Struct, frozen=True, gc=False, array_like=True):
    #: The cached memories, by scope.
    shown: dict[str, list[ShownMemory]]
    #: Entries that are looked up each time, as canonical JSON: segments, cards, conflicts. By scope.
    others: dict[str, dict[str, bytes]]


class _LeafRow(msgspec.Struct, frozen=True, array_like=True):
    code: bytes
    digest: bytes
    leaf: _Leaf


_encode = msgspec.msgpack.Encoder().encode


@functools.cache
def _decoder() -> msgspec.msgpack.Decoder[_LeafRow]:
    """Return the decoder, created on first use because most commands need none."""
    return msgspec.msgpack.Decoder(_LeafRow)


class SummaryCache:
    """Cache of the shown memories of one replica by scope, for lists, MEMORY.md and linked folders."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        #: The cached leaves by their prefix in the tree, each with its hash.
        self._leaves: dict[str, tuple[bytes, _Leaf]] = {}
        #: Lines of texts that were read and whose leaf is not cached yet, by (entry name, hash of the text, clock of its write).
        self._lines: dict[tuple[str, str, str], IndexLine] = {}
        #: Prefixes of cached leaves whose row is not written yet.
        self._unwritten: set[str] = set()
        #: Prefixes that had a row when rows were last written.
        self._stored: set[str] = set()

    def look(self, scope: str = "", *, keep: bool = False) -> ScopeView:
        """Return the view of one scope, with the memories in no particular order.

        Call it inside `reading` or a transaction. `keep`, inside a transaction only, stores the cache, so that the next process
        need not read the texts again.
        """
        return self.scopes({scope}, keep=keep).get(scope, ([], {}))

    def scopes(self, chosen: Collection[str] | None = None, *, keep: bool = False) -> dict[str, ScopeView]:
        """Return `look` for each of these scopes, or for all (None); a scope without entries is left out."""
        views: dict[str, ScopeView] = {}

        def view_of(scope: str) -> ScopeView | None:
            if chosen is not None and scope not in chosen:
                return None
            return views.setdefault(scope, ([], {}))

        uncached = 0
        for leaf in self._walk(self._replica.store.tree, keep):
            for scope, memories in leaf.shown.items():
                if (view := view_of(scope)) is not None:
                    view[0].extend(memories)
            for scope, entries in leaf.others.items():
                uncached += len(entries)
                if (view := view_of(scope)) is not None:
                    view[1].update({name: decode_entry(name, entry) for name, entry in entries.items()})
        pending = self._replica.store.pending
        changed = {name: parse_entry(name) for name in pending}
        for scope in {parsed.scope for parsed in changed.values()}:
            if (view := view_of(scope)) is not None:
                view[0][:] = [memory for memory in view[0] if memory_entry(memory.key, scope) not in pending]
        for name, parsed in changed.items():
            entry = pending[name]
            if (view := view_of(parsed.scope)) is not None:
                view[1].pop(name, None)
                if entry is not None:
                    view[1][name] = decode_entry(name, entry)
        if len(self._lines) > 2 * (uncached + len(pending)) + 100:
            self._lines.clear()  # most cached lines belong to texts that no longer exist
        return {scope: view for scope, view in views.items() if view[0] or view[1]}

    def _walk(self, tree: StateTree, keep: bool) -> Iterator[_Leaf]:
        """Yield every leaf of a tree, without loading the nodes of cached leaves."""
        leaves: dict[str, tuple[bytes, _Leaf]] = {}
        stack: list[tuple[str, bytes, TreeNode | None, str]] = [("", tree.digest, None, "")]
        while stack:
            prefix, digest, parent, digit = stack.pop()
            leaf = self._cached_leaf(prefix, digest)
            if leaf is None:
                node = tree.top if parent is None else tree.child(parent, digit)
                if node.children is not None:
                    stack.extend((prefix + d, child, node, d) for d, child in node.children.items())
                    continue
                leaf, complete = self._read_leaf(node)
                if not complete:
                    yield leaf
                    continue
                self._unwritten.add(prefix)
            leaves[prefix] = digest, leaf
            yield leaf
        self._leaves = leaves
        if keep:
            self._write_rows()

    def line(self, name: str, value: Value) -> IndexLine | None:
        """Return the line in MEMORY.md of an entry whose only text is `value`; None if the text is not on this device."""
        if value.body is None:
            return None
        cached = self._lines.get((name, value.body, value.h))
        if cached is None:
            data = self._replica.store.body(name, value)
            if data is None:
                return None
            cached = self.keep_line(name, value, head_of(data))
        return cached

    def keep_line(self, name: str, value: Value, head: MemoryFile) -> IndexLine:
        """Cache the line of an entry whose only text is `value` and whose header the caller has read, so that `line` does not read
        the text."""
        line = line_of(_key(name), head, value)
        if value.body is not None:
            self._lines[name, value.body, value.h] = line
        return line

    def _read_leaf(self, node: TreeNode) -> tuple[_Leaf, bool]:
        """Return the content of a leaf, and whether all its texts are on this device, so that it may be cached."""
        from ipfsmem.content.hamt import name_hash

        assert node.entries is not None
        leaf, complete = _Leaf({}, {}), True
        for name, text in node.entries.items():
            entry = decode_entry(name, text)
            parsed = parse_entry(name)
            others = leaf.others.setdefault(parsed.scope, {})
            if not isinstance(parsed, MemoryName) or len(entry) != 1:
                others[name] = text
                continue
            ((dot, value),) = entry.items()
            if value.body is None:
                continue  # forgotten: no text is shown
            loc, line = value.loc, self.line(name, value)
            if line is None or loc is None or loc.ek or loc.sha != value.body:
                others[name] = text
                complete = complete and line is not None
                continue
            self._lines.pop((name, value.body, value.h), None)
            slot = name_hash(file_name(parsed.key))
            sha = bytes.fromhex(loc.sha)
            shown = leaf.shown.setdefault(parsed.scope, [])
            shown.append(
                ShownMemory(parsed.key, dot, value.author, sha, loc.size, slot, line.section, line.text)
            )
        return leaf, complete

    def _cached_leaf(self, prefix: str, digest: bytes) -> _Leaf | None:
        leaf = self._leaves.get(prefix)
        if leaf is not None and leaf[0] == digest:
            return leaf[1]
        try:
            stored = self._replica.db.get_meta(meta.SHOWN + prefix)
            row = _decoder().decode(self._replica.codec.open_row(stored)) if stored is not None else None
        except (IpfsmemError, msgspec.DecodeError, UnicodeDecodeError):
            return None  # the row is derived from the state and is created again
        return row.leaf if row is not None and row.digest == digest and row.code == _code() else None

    def _write_rows(self) -> None:
        """Store the leaves that were read, and delete the rows of prefixes that are no longer leaves."""
        db, codec = self._replica.db, self._replica.codec
        new, self._unwritten = self._unwritten & self._leaves.keys(), set()
        for prefix in new:
            digest, leaf = self._leaves[prefix]
            db.set_meta(meta.SHOWN + prefix, codec.seal_row(_encode(_LeafRow(_code(), digest, leaf))))
        if new or self._stored != self._leaves.keys():
            self._stored = set(self._leaves)
            rows = meta.names(db.connection, meta.SHOWN)
            meta.forget(db.connection, [row for row in rows if row[len(meta.SHOWN) :] not in self._leaves])


def line_of(key: str, file: MemoryFile, value: Value) -> IndexLine:
    """Return the line of a memory with this header."""
    from ipfsmem.bundle.index import index_line, item_of
    from ipfsmem.memories.priority import priority_factors

    return IndexLine(*index_line(item_of(key, file)), priority_factors(file, hlc_ms(value.h)))


def _key(name: str) -> str:
    parsed = parse_entry(name)
    assert isinstance(parsed, MemoryName)
    return parsed.key


def file_name(key: str) -> bytes:
    """Return the name of a memory's file."""
    return b"%b.md" % key.encode()


def head_of(data: bytes) -> MemoryFile:
    """Return the fields of a text's header; empty if they cannot be read."""
    try:
        return parse_fields(data)
    except FormatError:
        return MemoryFile({}, "")


def _code() -> bytes:
    """Return a hash of the code that derives a row from a text, so that rows of other code are ignored."""
    from ipfsmem import invisible_characters
    from ipfsmem.bundle import header, index, memory_file, session_parts
    from ipfsmem.content import hamt
    from ipfsmem.device.source_hash import source_hash

    return source_hash(
        header, hamt, index, invisible_characters, memory_file, session_parts, sys.modules[__name__]
    )
