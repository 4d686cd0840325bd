"""Store the causal state of a vault on this device: a tree of entries, a journal of later changes, and bodies.

A change is one row in the journal and one fsync. A checkpoint moves the journal into the tree, one path for each
changed entry. The store shows only the state on the disk. Callers decide what a write replaces and what a join keeps;
the codec seals data.
"""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec

from ipfsmem.causal.clock import ZERO
from ipfsmem.causal.entries import SEGMENT, SegmentName, memory_name, segment_name
from ipfsmem.causal.tree import StateTree, TreeNode, empty_tree, name_digits, open_tree
from ipfsmem.causal.value import DeviceCounter, Entry, Loc, Value, decode_entry, encode_entry, hash32
from ipfsmem.device.codec import Codec
from ipfsmem.device.connection import DAMAGED_HINT, DatabaseDamagedError, blob, damaged, not_found_again
from ipfsmem.device.database import Database
from ipfsmem.device.tables import journal, meta, nodes
from ipfsmem.device.tables.journal import link
from ipfsmem.device.tables.nodes import NodeRow
from ipfsmem.errors import FormatError, IpfsmemError, OpenError


class StateHeader(msgspec.Struct, frozen=True):
    """The state without its entries: counters, clock, and the pairs that devices signed."""

    #: The greatest counter of each device that the state has seen, including this device.
    ctx: dict[str, int]
    #: The signed pairs that commits carry, by device.
    seen: dict[str, DeviceCounter]
    #: Last value of the hybrid clock.
    hlc: str = ZERO


class _EntryRow(msgspec.Struct):
    #: The JSON of each changed entry, `null` for a deleted one. (`Raw | None` would only decode null.)
    e: dict[str, msgspec.Raw]
    f: StateHeader


class _Places(msgspec.Struct, gc=False):
    """The two fields of a value that locate its objects."""

    loc: Loc | None = None
    base: Loc | None = None


class _StoredState(msgspec.Struct):
    top: str
    ek: str
    f: StateHeader
    #: Names of the entries in the tree with more than one value: few, and read after every sync.
    many: list[str]
    #: Names of the cards in the tree: read with each read in a scope.
    cards: list[str]


class StateMark(msgspec.Struct, frozen=True, array_like=True):
    """A record of a state, to tell later what may have changed since."""

    #: Digests of the nodes of two digits, and of leaves above them, by prefix.
    nodes: dict[str, bytes] = {}
    #: The entries in the journal, and a hash of its content.
    journal: frozenset[str] = frozenset()
    chain: bytes = b""


class ChangesSince(msgspec.Struct, frozen=True):
    """The entries that may differ from those of a mark."""

    #: The canonical JSON of the existing ones, by name.
    texts: dict[str, bytes]
    #: Where in the tree they are, or were.
    prefixes: tuple[str, ...]
    journal: frozenset[str]
    #: The state covered by this, and whether that is all of it.
    mark: StateMark = StateMark()
    whole: bool = True

    def may_be_gone(self, names: Iterable[str]) -> set[str]:
        """Return those entries of the mark that no longer exist."""
        if not self.prefixes:
            names_known = names if isinstance(names, Mapping) else frozenset(names)
            return {name for name in self.journal if name in names_known and name not in self.texts}
        return {
            name
            for name in names
            if name not in self.texts
            and (name in self.journal or name_digits(name).startswith(self.prefixes))
        }


class DamagedStateError(DatabaseDamagedError):
    """A part of the state on this device differs from what was written; a sync restores it from a provider that has it."""

    hint = (
        "Run: ipfsmem sync, which restores it from a provider that has it. If that does not help, export the "
        "readable part: ipfsmem export --dir DIR. Then: " + DAMAGED_HINT
    )


#: The prefix of the names of cards' entries.
_CARD = "c/"
#: Occurs once in the canonical JSON of each value, and in no string, where quotes are escaped.
_KIND = b'"kind":'
#: Entries in one row of the journal, so that no row needs much memory.
_MAX_ROW_ENTRIES = 1_000
#: A write that leaves a journal of more rows or bytes moves it into the tree, as opening a vault reads the whole journal: 4 MiB
#: after an import cost each process 50 ms.
_LONG_ROWS = 512
_LONG_BYTES = 512 * 1024
#: Maximum bytes of a block that is read together with others.
_MAX_BATCHED_BYTES = 64 * 1024
_GONE = msgspec.Raw(b"null")
_NO_VALUES: Mapping[str, bytes] = {}


@functools.cache
def _places_decoder() -> msgspec.json.Decoder[dict[str, _Places]]:
    """Return the decoder, created on first use: most calls need none."""
    return msgspec.json.Decoder(dict[str, _Places])


_row_decoder = msgspec.json.Decoder(_EntryRow)
_state_decoder = msgspec.json.Decoder(_StoredState)
_encode = msgspec.json.Encoder(order="deterministic").encode


class StateStore:
    """The entries, counters and bodies of one vault."""

    def __init__(self, db: Database, codec: Codec) -> None:
        self.db = db
        self.codec = codec
        self._tree = empty_tree(self._load_node)
        self._tree_ek = ""
        self._many: set[str] = set()
        self._cards: set[str] = set()
        #: Names of the cards in the overlay.
        self._card_changes: set[str] = set()
        self._cards_version = 0
        self._overlay: dict[str, bytes | None] = {}
        self._journal = 0
        self._rows = 0
        self._bytes = 0
        self._chain = b""
        #: The names that the rows of the journal change, in order, and by its hash after each row how many there were.
        self._changed: list[str] = []
        self._changed_at: dict[bytes, int] = {}
        self._version = -1
        self.frame = StateHeader({}, {})
        self.refresh()

    # -- reading -----------------------------------------------------------------------------------------------

    def outdated(self) -> bool:
        """Return whether another process committed something, or a transaction of ours failed."""
        return self.db.version() != self._version

    def refresh(self) -> None:
        """Read the state that is on disk now."""
        version = self.db.version()
        self._reload()
        self._version = version

    def _reload(self) -> None:
        state = self.db.get_meta(meta.STATE)
        if state is None:
            if nodes.any_known(self.db.connection):
                raise damaged(self.db.path, "it has nodes of the state, but not the state itself")
            self._tree, self._tree_ek, self.frame = empty_tree(self._load_node), "", StateHeader({}, {})
            self._many, self._cards = set(), set()
        else:
            stored = self._open(state, "state")
            self._tree_ek = stored.ek
            self.frame = stored.f
            self._many, self._cards = set(stored.many), set(stored.cards)
            if self._tree.digest.hex() != stored.top:
                self._tree = open_tree(bytes.fromhex(stored.top), self._load_node)
                # Read now, while it surely belongs to this state. If it is damaged, its users report that.
                with contextlib.suppress(IpfsmemError):
                    _ = self._tree.top
        self._overlay.clear()
        self._card_changes.clear()
        self._cards_version += 1
        self._journal = self._rows = self._bytes = 0
        self._chain = b"" if state is None else link(b"", state)
        self._begin_changes()
        rows: list[tuple[int, bytes, bytes]] = []
        for seq, row in journal.rows(self.db.connection):
            self._chain = link(self._chain, row)
            rows.append((seq, row, self._chain))
            self._rows += 1
            self._bytes += len(row)
        if self._chain != (self.db.get_meta(meta.JOURNAL_CHAIN) or b""):
            raise damaged(self.db.path, "the journal is not as it was written")
        for seq, row, chain in rows:
            try:
                changes, self.frame = read_row(self.codec, row)
            except (ValueError, FormatError, OpenError) as error:
                raise damaged(self.db.path, f"journal row {seq} cannot be read: {error}") from None
            self._overlay.update(changes)
            self._card_changes.update(name for name in changes if name.startswith(_CARD))
            self._note_changes(changes, chain)
            self._journal = seq

    def _open(self, row: bytes, what: str) -> _StoredState:
        try:
            return _state_decoder.decode(self.codec.open_row(row))
        except (ValueError, FormatError, OpenError) as error:
            raise damaged(self.db.path, f"the {what} cannot be read: {error}") from None

    def _load_node(self, prefix: str, digest: bytes) -> bytes:
        row = nodes.get(self.db.connection, prefix)
        file = None if row is None or row.hash != digest else blob(row.file)
        stored = None if file is None else self.db.block(file)
        try:
            raw = None if stored is None else self.codec.open_node(prefix, self._tree_ek, stored)
        except (FormatError, OpenError):
            raw = None
        if raw is None:
            raise DamagedStateError(
                f"{self.db.path} is damaged: a part of the memory ({prefix or 'top'}) is missing or damaged"
            )
        return raw

    def damaged_nodes(self) -> list[tuple[str, bytes]]:
        """Return prefix and digest of every node of the tree that cannot be read."""
        unread: list[tuple[str, bytes]] = []
        for _ in self._tree.readable(unread):
            pass
        return unread

    def file_of_node(self, prefix: str) -> bytes | None:
        """Return the SHA-256 of a stored node of the tree, None if its row is missing or damaged."""
        row = nodes.get(self.db.connection, prefix)
        file = None if row is None else blob(row.file)
        return file if file is not None and len(file) == 32 else None

    def restore_node(self, prefix: str, digest: bytes, stored: bytes) -> bool:
        """Replace a damaged node of the tree by bytes from elsewhere (inside a transaction). Returns False, and changes nothing,
        if these are not that node."""
        try:
            raw = self.codec.open_node(prefix, self._tree_ek, stored)
        except (FormatError, OpenError):
            return False
        if sha256(raw).digest() != digest:
            return False
        self._keep_nodes([(prefix, digest, stored)])
        return True

    def raw(self, name: str) -> bytes | None:
        """Return the canonical JSON of an entry, None if absent."""
        if name in self._overlay:
            return self._overlay[name]
        return self._tree.get(name)

    def entry(self, name: str) -> Entry:
        """Return the siblings of an entry; empty if absent."""
        return self.decoded(name, self.raw(name))

    def decoded(self, name: str, text: bytes | None) -> Entry:
        """Return the siblings of an entry from its JSON, as `raw` returned it."""
        return {} if text is None else decode_entry(name, text)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield all entries by name, unordered."""
        for name, text in self.texts():
            yield name, decode_entry(name, text)

    def readable_entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield the entries outside damaged nodes, by name, unordered."""
        for name, text in self.texts(readable=True):
            yield name, decode_entry(name, text)

    def memories(self, scope: str = "") -> Iterator[tuple[str, Entry]]:
        """Yield the entries of the memories of a scope by key, unordered."""
        for name, text in self.texts():
            memory = memory_name(name)
            if memory is not None and memory.scope == scope:
                yield memory.key, decode_entry(name, text)

    def segments(self, scope: str = "") -> Iterator[tuple[SegmentName, Entry]]:
        """Yield the timeline segments of a scope, unordered."""
        for name, text in self._segment_texts():
            segment = segment_name(name)
            if segment is not None and segment.scope == scope:
                yield segment, decode_entry(name, text)

    def memories_of(self, scopes: Collection[str]) -> dict[str, list[tuple[str, Entry]]]:
        """Return the memories of several scopes in one pass, by scope; scopes without memories are omitted."""
        tokens, entries = set(scopes), dict[str, list[tuple[str, Entry]]]()
        for name, text in self.texts():
            memory = memory_name(name)
            if memory is not None and memory.scope in tokens:
                entries.setdefault(memory.scope, []).append((memory.key, decode_entry(name, text)))
        return entries

    def segments_of(self, scopes: Collection[str]) -> dict[str, list[tuple[SegmentName, Entry]]]:
        """Return the timeline segments of several scopes in one pass, by scope; scopes without segments are omitted."""
        tokens, entries = set(scopes), dict[str, list[tuple[SegmentName, Entry]]]()
        for name, text in self._segment_texts():
            segment = segment_name(name)
            if segment is not None and segment.scope in tokens:
                entries.setdefault(segment.scope, []).append((segment, decode_entry(name, text)))
        return entries

    def holding(self, text: bytes) -> Iterator[tuple[str, Entry]]:
        """Yield the entries whose JSON contains `text`."""
        for name, stored in self.texts():
            if text in stored:
                yield name, decode_entry(name, stored)

    def unsigned(self) -> Iterator[tuple[str, Entry]]:
        """Yield the entries with an unsigned value, which was written before there was a vault."""
        for name, text in self.texts():
            if text.count(b'"s":"') < text.count(_KIND):
                yield name, decode_entry(name, text)

    def texts(self, *, readable: bool = False) -> Iterator[tuple[str, bytes]]:
        """Yield the canonical JSON of all entries by name, unordered; `readable`: only of those outside damaged nodes."""
        nodes = self._tree.readable([]) if readable else self._tree.nodes()
        for node in nodes:
            for name, text in (node.entries or {}).items():
                if name not in self._overlay:
                    yield name, text
        for name, changed in list(self._overlay.items()):
            if changed is not None:
                yield name, changed

    def _segment_texts(self) -> list[tuple[str, bytes]]:
        """Return those of `texts` that are named like a segment. Memories are passed over without a step of a generator for each."""
        overlay, texts = self._overlay, list[tuple[str, bytes]]()
        for node in self._tree.nodes():
            entries = node.entries or {}
            texts += [(name, entries[name]) for name in entries if name[0] == SEGMENT and name not in overlay]
        texts += [(name, text) for name, text in overlay.items() if text is not None and name[0] == SEGMENT]
        return texts

    def mark(self) -> StateMark:
        """Return the mark of the current state."""
        return StateMark(self._node_digests(), frozenset(self._overlay), self._chain)

    def is_at(self, mark: StateMark) -> bool:
        """Return whether nothing changed since `mark` was taken, which is cheaper than taking another one."""
        return mark.chain == self._chain

    def changes_since(self, mark: StateMark, most: int | None = None) -> ChangesSince:
        """Return what may have changed since a mark; the rest of the tree is not read. With an empty mark, everything. `most`:
        maximum number of changed nodes of the tree; further changes are returned since the mark in the result."""
        here = self._node_digests()
        prefixes = tuple(
            prefix for prefix in here.keys() | mark.nodes.keys() if here.get(prefix) != mark.nodes.get(prefix)
        )
        whole, nodes = most is None or len(prefixes) <= most, here
        if not whole:
            prefixes = prefixes[:most]
            nodes = {prefix: digest for prefix, digest in mark.nodes.items() if prefix not in prefixes}
            nodes.update((prefix, here[prefix]) for prefix in prefixes if prefix in here)
        texts: dict[str, bytes] = {}
        for prefix in prefixes:
            if prefix in here:
                for node in self._tree.nodes(self._tree.find(prefix)):
                    texts.update(node.entries or {})
        journal = mark.journal | self._overlay.keys()
        at = None if prefixes else self._changed_at.get(mark.chain)
        if at is not None:  # the journal of the mark is the beginning of the current one
            journal = frozenset(self._changed[at:])
        for name in journal:
            text = self.raw(name)
            if text is None:
                texts.pop(name, None)
            else:
                texts[name] = text
        reached = StateMark(nodes, frozenset(self._overlay), self._chain)
        return ChangesSince(texts, prefixes, journal, reached, whole)

    def _node_digests(self) -> dict[str, bytes]:
        digests: dict[str, bytes] = {}
        stack = [self._tree.top]
        while stack:
            node = stack.pop()
            if node.children is None:
                digests[node.prefix] = node.digest
            elif node.prefix:
                digests.update({node.prefix + digit: digest for digit, digest in node.children.items()})
            else:
                stack += [self._tree.child(node, digit) for digit in node.children]
        return digests

    def entries_with_siblings(self) -> Iterator[tuple[str, Entry]]:
        """Yield the entries with more than one value; others cost nothing."""
        for name in [name for name in self._many if name not in self._overlay]:
            yield name, self.entry(name)
        for name, changed in list(self._overlay.items()):
            if changed is not None and _holds_many(changed):
                yield name, decode_entry(name, changed)

    @property
    def cards_version(self) -> int:
        """A number that changes whenever a card may have changed."""
        return self._cards_version

    def cards(self) -> dict[str, bytes]:
        """Return the canonical JSON of every card's entry by the token of its scope; other entries cost nothing."""
        names = sorted(self._cards | self._card_changes)
        return {name[len(_CARD) :]: text for name in names if (text := self.raw(name)) is not None}

    def object_digests(self) -> list[bytes]:
        """Return the digest of every object that the state names (bodies and first bases), some several times."""
        decode, of_hex = _places_decoder().decode, bytes.fromhex
        return [
            of_hex(loc.sha)
            for _, text in self.texts()
            for place in decode(text).values()
            for loc in (place.loc, place.base)
            if loc is not None
        ]

    def names(self) -> Iterator[str]:
        """Yield the names of all entries."""
        for name, _ in self._tree.items():
            if name not in self._overlay:
                yield name
        yield from [name for name, changed in self._overlay.items() if changed is not None]

    def body(self, name: str, value: Value) -> bytes | None:
        """Return the body of a value, checked against its hash; None if it is not on this device."""
        if value.body is None or value.loc is None:
            return None
        return _if_right(self.open_located(name, value.loc), value)

    def bodies(self, wanted: Iterable[Value]) -> Callable[[str, Value], bytes | None]:
        """Return `body` for these values: their blocks are read now, in one statement, except for long ones."""
        from ipfsmem.device.bulk import read_blocks  # a read of one memory does not need it

        near = [
            value.loc.sha
            for value in wanted
            if value.loc is not None and value.loc.size <= _MAX_BATCHED_BYTES
        ]
        blocks = read_blocks(self.db, map(bytes.fromhex, near))

        def body(name: str, value: Value) -> bytes | None:
            if value.body is None or value.loc is None:
                return None
            stored = blocks.get(bytes.fromhex(value.loc.sha))
            if stored is None:
                return self.body(name, value)
            return _if_right(self._opened(name, value.loc, stored), value)

        return body

    def base(self, name: str, value: Value) -> bytes | None:
        """Return the first base of a value, checked against its hash; None if it has none, or it is not on this device."""
        if value.base is None or not value.b:
            return None
        body = self.open_located(name, value.base)
        return body if body is not None and hash32(sha256(body).hexdigest()) == value.b[0] else None

    def open_located(self, name: str, loc: Loc) -> bytes | None:
        """Return the object at a location if it is here and intact, otherwise None. Its hash is not compared."""
        return self._opened(name, loc, self.db.block(bytes.fromhex(loc.sha)))

    def _opened(self, name: str, loc: Loc, stored: bytes | None) -> bytes | None:
        if stored is None or len(stored) != loc.size:
            self.db.check_order()
            return None
        try:
            return self.codec.open_body(name, loc.ek, stored)
        except (OpenError, FormatError):
            return None

    # -- changing ----------------------------------------------------------------------------------------------

    def apply(
        self,
        changes: Mapping[str, Entry],
        frame: StateHeader,
        blocks: Iterable[tuple[bytes, bytes]] = (),
        values: Mapping[str, bytes] = _NO_VALUES,
    ) -> None:
        """Write `changes` (an empty entry is deleted), `frame`, the blocks that they need, and values of `meta` by name.

        Call it inside a transaction of the database, after `refresh`; all is durable when the transaction ends.
        """
        if not isinstance(blocks, Sequence):  # perhaps more than should be in memory together
            self.db.add_blocks(blocks)
            blocks = ()
        names = list(changes)
        while len(names) > _MAX_ROW_ENTRIES:
            some, names = names[:_MAX_ROW_ENTRIES], names[_MAX_ROW_ENTRIES:]
            self._append({name: changes[name] for name in some}, frame)
        self._append({name: changes[name] for name in names}, frame, blocks, values)

    def _append(
        self,
        changes: Mapping[str, Entry],
        frame: StateHeader,
        blocks: Sequence[tuple[bytes, bytes]] = (),
        values: Mapping[str, bytes] = _NO_VALUES,
    ) -> None:
        texts = {name: encode_entry(entry) if entry else None for name, entry in changes.items()}
        text = _encode(
            _EntryRow({n: _GONE if t is None else msgspec.Raw(t) for n, t in texts.items()}, frame)
        )
        stored = self.codec.seal_row(text)
        # Without the chain, a row that a damaged disk loses, doubles or moves would show an old text as the new one.
        chain = link(self._chain, stored)
        self._journal = self.db.append(stored, self._journal, {**values, meta.JOURNAL_CHAIN: chain}, blocks)
        self._rows += 1
        self._bytes += len(stored)
        self._chain = chain
        self._overlay.update(texts)
        self._note_changes(texts, self._chain)
        if cards := {name for name in texts if name.startswith(_CARD)}:
            self._card_changes |= cards
            self._cards_version += 1
        self.frame = frame

    def _begin_changes(self) -> None:
        self._changed, self._changed_at = [], {self._chain: 0}

    def _note_changes(self, names: Iterable[str], chain: bytes) -> None:
        self._changed.extend(names)
        self._changed_at[chain] = len(self._changed)

    def mark_outdated(self) -> None:
        """Have the state read again before it is used: after a failed transaction, the state in memory may not be on disk."""
        self._version = -1

    def checkpoint(self, *, folders: bool) -> StateTree:
        """Move the journal into the tree (inside a transaction); with `folders`, also update `s/` and `o/`. Returns the tree.

        Raises MembershipError if the mode seals and no key may seal now.
        """
        reseal = self.codec.ek != self._tree_ek or self.db.get_meta(meta.STATE) is None
        changes = self._overlay
        if not changes and not reseal and not self._journal:
            return self._tree
        if folders:
            self._count_objects(changes)
        patch = self._tree.patch(changes)
        written = {n.prefix: n for n in patch.tree.nodes()} if reseal else patch.written
        self._write_nodes(written, patch.removed)
        if folders:
            from ipfsmem.device.root_folders import state_folder  # only publishing needs it
            from ipfsmem.device.tables import folders as folder_rows

            has_rows = folder_rows.has(self.db.connection, "s")
            state_folder(
                self.db,
                self.codec.extension,
                None if reseal or not has_rows else patch.written.keys() | patch.removed,
            )
        self._tree, self._tree_ek = patch.tree, self.codec.ek
        self._overlay = {}
        self._card_changes = set()
        self._many -= changes.keys()
        self._many.update(name for name, text in changes.items() if text is not None and _holds_many(text))
        self._cards -= changes.keys()
        self._cards.update(
            name for name, text in changes.items() if text is not None and name.startswith(_CARD)
        )
        state = _StoredState(
            patch.tree.digest.hex(), self._tree_ek, self.frame, sorted(self._many), sorted(self._cards)
        )
        stored = self.codec.seal_row(_encode(state))
        self.db.set_meta(meta.STATE, stored)
        journal.clear(self.db.connection)
        self._chain = link(b"", stored)
        self.db.set_meta(meta.JOURNAL_CHAIN, self._chain)
        self._begin_changes()
        self._journal = self._rows = self._bytes = 0
        return self._tree

    def _write_nodes(self, written: Mapping[str, TreeNode], removed: set[str]) -> None:
        nodes.forget(self.db.connection, removed)
        self._keep_nodes(
            (prefix, node.digest, self.codec.seal_node(prefix, node.raw)) for prefix, node in written.items()
        )

    def _keep_nodes(self, written: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Store nodes: (prefix, digest of the JSON, bytes as stored)."""
        rows = []
        blocks = []
        for prefix, digest, stored in written:
            file = sha256(stored).digest()
            blocks.append((file, stored))
            rows.append(NodeRow(prefix, digest, file, len(stored)))
        self.db.add_blocks(blocks)
        lost = nodes.put(self.db.connection, rows)
        if lost is not None:
            raise not_found_again(self.db.path, f"the part {lost.prefix or 'top'} of the memory")

    def _count_objects(self, changes: Mapping[str, bytes | None]) -> None:
        from ipfsmem.device.root_folders import change_objects

        deltas: dict[bytes, tuple[int, int]] = {}
        for name, text in changes.items():
            old = self._tree.get(name)
            for source, sign in ((old, -1), (text, 1)):
                if source is None:
                    continue
                for loc in _locations_in(source):
                    digest = bytes.fromhex(loc.sha)
                    size, delta = deltas.get(digest, (loc.size, 0))
                    deltas[digest] = (size, delta + sign)
        change_objects(self.db, deltas)

    def recount(self) -> bool:
        """Count again how often the state names each object (inside a transaction, after a checkpoint). Returns whether a count
        was wrong."""
        from ipfsmem.device.root_folders import recount_objects

        counts: dict[bytes, tuple[int, int]] = {}
        for _, text in self.texts():
            for loc in _locations_in(text):
                digest = bytes.fromhex(loc.sha)
                counts[digest] = (loc.size, counts.get(digest, (0, 0))[1] + 1)
        return recount_objects(self.db, counts)

    @property
    def tree(self) -> StateTree:
        """The tree as of the last checkpoint."""
        return self._tree

    @property
    def pending(self) -> Mapping[str, bytes | None]:
        """The entries that changed since the last checkpoint, as canonical JSON; None for a deleted one."""
        return self._overlay

    @property
    def long(self) -> bool:
        """Whether the journal is so long that opening the vault becomes slow."""
        return self._rows > _LONG_ROWS or self._bytes > _LONG_BYTES


def read_row(codec: Codec, row: bytes) -> tuple[dict[str, bytes | None], StateHeader]:
    """Return the entries that a row of the journal changes, as canonical JSON (None: deleted), and the frame. Raises ValueError,
    FormatError, OpenError."""
    read = _row_decoder.decode(codec.open_row(row))
    return {name: None if text == _GONE else bytes(text) for name, text in read.e.items()}, read.f


def read_top(codec: Codec, state: bytes) -> bytes:
    """Return the SHA-256 of the top of the tree of a stored state. Raises ValueError, FormatError, OpenError."""
    return bytes.fromhex(_state_decoder.decode(codec.open_row(state)).top)


def read_frame(codec: Codec, state: bytes) -> StateHeader:
    """Return the frame of a stored state. Raises ValueError, FormatError, OpenError."""
    return _state_decoder.decode(codec.open_row(state)).f


def _if_right(body: bytes | None, value: Value) -> bytes | None:
    return body if body is not None and sha256(body).hexdigest() == value.body else None


def _holds_many(text: bytes) -> bool:
    """Return whether canonical JSON of an entry holds more than one value."""
    return text.count(_KIND) > 1


def _locations_in(text: bytes) -> Iterator[Loc]:
    """Yield `locations` of an entry's JSON, without decoding the rest of it."""
    for place in _places_decoder().decode(text).values():
        if place.loc is not None:
            yield place.loc
        if place.base is not None:
            yield place.base


def locations(entry: Entry) -> Iterator[Loc]:
    """Yield every location in an entry: of bodies and first bases."""
    for value in entry.values():
        if value.loc is not None:
            yield value.loc
        if value.base is not None:
            yield value.base
