"""Run a transaction of writes by this device: each new text gets a new dot and replaces only dots shown to its
writer.

See format section 5. The texts are sealed and signed here, and become durable together when the transaction ends. The
caller knows which dots were shown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256

import msgspec

from ipfsmem.bundle.session_parts import PART_PREFIX
from ipfsmem.causal.authorship import author_of_replacement
from ipfsmem.causal.clock import ZERO, hlc_after_seeing, next_hlc
from ipfsmem.causal.entries import CardName, marker_parts, memory_name, parse_entry
from ipfsmem.causal.state import delete, next_bases, write
from ipfsmem.causal.value import FORGOTTEN, LIVE, Entry, Loc, Value, dot, hash32, sign_value
from ipfsmem.causal.view import in_view_order
from ipfsmem.device.bulk import parallel_map
from ipfsmem.device.codec import Codec
from ipfsmem.device.replica import Replica
from ipfsmem.device.scopes import check_writable, live_scopes, open_scope, own_scopes
from ipfsmem.device.state import StateHeader
from ipfsmem.device.tables import meta
from ipfsmem.device.tables import unscanned as unscanned_rows
from ipfsmem.device.texts_of_others import (
    any_others,
    author_of_text,
    keep_own,
    note_others,
    with_retained_own,
)
from ipfsmem.errors import IpfsmemError, MembershipError

#: Changed entries that are held in memory before they go to the store. (The transaction makes all of them durable in one step
#: anyway.)
_MAX_PENDING = 1_000
#: Longer texts are not sealed ahead: very many of them would be in memory twice.
_MAX_AHEAD_BYTES = 64 * 1024


class Writing:
    """The writes of one transaction so far."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._store = replica.store
        frame = self._store.frame
        self._ctx = dict(frame.ctx)
        self._n = frame.ctx.get(replica.device.id, 0)
        self._hlc = frame.hlc
        self._changes: dict[str, Entry] = {}
        #: The changed entries as they were before.
        self._before: dict[str, Entry] = {}
        #: Scopes that are known to accept writes.
        self._scopes: set[str] = set()
        self._live: set[str] | None = None
        self._own: set[str] | None = None
        self._blocks: list[tuple[bytes, bytes]] = []
        #: Values of `meta` to set, by name.
        self._values: dict[str, bytes] = {}
        self._bodies: dict[str | None, bytes] = {}
        #: Texts that were sealed ahead, by entry: the text, and its key id with the sealed bytes.
        self._sealed: dict[str, tuple[bytes | None, tuple[str, bytes]]] = {}
        #: Whether this device may hold texts of other persons, so that a new text may be one of them.
        self._others = any_others(replica)
        mine = frame.seen.get(replica.device.id)
        self._published = mine.n if mine else 0
        #: Checks to run at the end, by the prefix of the names of a session's parts: for sessions of which a part is changed.
        self._checks: dict[str, Callable[[], None] | None] = {}
        self._by_session = False
        #: The entry that was read last: a write reads its entry several times.
        self._loaded: tuple[bytes | None, str, Entry] | None = None

    @property
    def replica(self) -> Replica:
        """The replica that it writes to."""
        return self._replica

    @property
    def public(self) -> bool:
        """Whether the texts will be published in the clear."""
        return self._replica.config.mode.public

    def entry(self, name: str) -> Entry:
        """Return an entry with the changes of this transaction so far."""
        if name in self._changes:
            return self._changes[name]
        text = self._store.raw(name)
        if self._loaded is None or self._loaded[0] is not text or self._loaded[1] != name:
            self._loaded = text, name, self._store.decoded(name, text)
        return self._loaded[2]

    def body(self, name: str, value: Value) -> bytes | None:
        """Return the body of a value, written in this transaction or before."""
        if value.body in self._bodies:
            return self._bodies[value.body]
        return self._store.body(name, value)

    def put(
        self, name: str, body: bytes, replaces: Sequence[str], *, of: str = "", promoted: bool = False
    ) -> str:
        """Write a text; `replaces` are the dots that its writer was shown. Returns the new dot.

        The text counts as another person's if it replaces a text of theirs or has the bytes of one that this device holds, unless
        a person `promoted` it (format section 5.2); `author` names the author in any case. Raises NotFoundError for a forgotten
        scope, LimitError for one too many.
        """
        self._open(name)
        entry = self.entry(name)
        bases: tuple[tuple[str, ...], Loc | None] = ((), None)
        if memory_name(name) is not None:
            whole = with_retained_own(self._replica, name, entry)
            if not of and not promoted:
                of = self._of(whole, body, replaces)
            if whole:
                old = in_view_order(whole, replaces)
                public = {
                    hash32(v.body) for d, v in whole.items() if v.body is not None and self._is_published(d)
                }
                bases = next_bases(old, public.__contains__)
        return self._add(name, entry, body, replaces, bases, of, tick=True)

    def seal_ahead(self, texts: Iterable[tuple[str, bytes]]) -> None:
        """Seal texts, on all cores, that are about to be written under these names: only short ones under names without an entry."""
        codec = self._replica.codec
        if not codec.ek:  # plain, or under the device's own key with a random nonce
            return
        new = [item for item in texts if len(item[1]) <= _MAX_AHEAD_BYTES and not self.entry(item[0])]
        self._sealed = dict(
            zip((name for name, _ in new), parallel_map(partial(_sealed, codec), new), strict=True)
        )

    def write_alternative(self, name: str, body: bytes, *, of: str | None = None) -> str:
        """Write an imported text: a sibling of the existing values, with clock zero and without bases (section 1.5).

        `author`: the author, "" for the writer; None: as this device knows by its bytes. Returns the new dot.
        """
        self._open(name)
        entry = self.entry(name)
        if of is None:
            is_memory = memory_name(name) is not None
            of = self._of(with_retained_own(self._replica, name, entry), body, ()) if is_memory else ""
        return self._add(name, entry, body, (), ((), None), of, tick=False)

    def keep_again(self, entry: Entry, body: bytes) -> None:
        """Store the block of an entry's text again, as the disk may have lost it. Only where a block is the text itself (plain
        modes)."""
        digest = sha256(body)
        if any(value.loc is not None and value.loc.sha == digest.hexdigest() for value in entry.values()):
            self._replica.db.add_blocks([(digest.digest(), body)])

    def _open(self, name: str) -> None:
        """Check that the scope of an entry accepts writes, and give it a card. Raises NotFoundError, LimitError."""
        parsed = parse_entry(name)
        if parsed.scope and parsed.scope not in self._scopes and not isinstance(parsed, CardName):
            open_scope(self, parsed.scope)
            self._scopes.add(parsed.scope)

    @property
    def live_scopes(self) -> set[str]:
        """The scopes that are not forgotten, including those that this transaction made."""
        if self._live is None:
            self._live = set(live_scopes(self._store))
        return self._live

    @property
    def own_scopes(self) -> set[str]:
        """The live scopes on whose card this device wrote."""
        if self._own is None:
            self._own = own_scopes(self._replica)
        return self._own

    def check_scope(self, scope: str) -> None:
        """Refuse a scope that accepts no writes, as `put` does. Raises NotFoundError, LimitError."""
        check_writable(self, scope)

    def _of(self, entry: Entry, body: bytes, replaces: Sequence[str]) -> str:
        """Return the author of a text, as far as this device knows; "" for the writer."""
        if not entry and not self._others:
            return ""
        mine, digest = self._replica.is_mine, sha256(body).hexdigest()
        return author_of_replacement(entry, replaces, digest, mine) or (
            author_of_text(self._replica, entry, digest) if self._others else ""
        )

    def write_again(self, name: str, value: Value) -> str:
        """Write an earlier value again as a sibling, with its clock and bases. Its body must be on this device. Returns the dot.

        Raises NotFoundError for a forgotten scope, LimitError for one too many.
        """
        self._open(name)
        return self._set(name, self.entry(name), (), msgspec.structs.replace(value, s=""))

    def put_value(self, name: str, replaces: Sequence[str], value: Value, body: bytes | None) -> str:
        """Write a value whose author, clock and bases the caller knows: an op of a mailbox entry, or a marker of such. Returns
        the new dot.

        Raises NotFoundError for a forgotten scope, LimitError for one too many or a fifth own text; nothing is changed then.
        """
        if marker_parts(name) is None:  # the scope of markers has no card
            self._open(name)
        entry = self.entry(name)
        self._hlc = hlc_after_seeing(self._hlc, value.h, self._replica.environment.now())
        if body is None:
            return self._set(name, entry, replaces, value)
        ek, stored = self._replica.codec.seal_body(name, body)
        if not ek and self._replica.vault_tag is not None:
            self._replica.db.set_meta(meta.LOCAL_BODIES, b"1")
        digest = sha256(stored)
        located = msgspec.structs.replace(value, loc=Loc(ek, digest.hexdigest(), len(stored)))
        return self._set(name, entry, replaces, located, (digest.digest(), stored), body)

    def forget(self, name: str, replaces: Sequence[str]) -> str:
        """Write that the user forgot the entry, which hides concurrent edits too. Returns the new dot."""
        value = Value(b=(), body=None, h=self._tick(), kind=FORGOTTEN)
        return self._set(name, self.entry(name), replaces, value)

    def remove(self, name: str, replaces: Sequence[str]) -> None:
        """Delete the values with these dots without a trace; other siblings stay."""
        self._watch(name)
        self._before.setdefault(name, self.entry(name))
        self._changes[name] = delete(self.entry(name), replaces)

    def _add(
        self,
        name: str,
        entry: Entry,
        body: bytes,
        replaces: Sequence[str],
        bases: tuple[tuple[str, ...], Loc | None],
        of: str,
        *,
        tick: bool,
    ) -> str:
        ready, prepared = self._sealed.pop(name, (None, ("", b"")))
        ek, stored = prepared if ready == body else self._replica.codec.seal_body(name, body)
        if not ek and self._replica.vault_tag is not None:
            self._replica.db.set_meta(meta.LOCAL_BODIES, b"1")
        digest = sha256(stored)
        value = Value(
            b=bases[0],
            base=bases[1],
            body=sha256(body).hexdigest(),
            h=self._tick() if tick else ZERO,
            kind=LIVE,
            loc=Loc(ek, digest.hexdigest(), len(stored)),
            author=of,
        )
        return self._set(name, entry, replaces, value, (digest.digest(), stored), body)

    def _set(
        self,
        name: str,
        entry: Entry,
        replaces: Sequence[str],
        value: Value,
        block: tuple[bytes, bytes] | None = None,
        body: bytes = b"",
    ) -> str:
        self._watch(name)
        new = dot(self._replica.device.id, self._n + 1)
        changed = write(entry, replaces, new, value)  # raises before anything is changed
        self._n += 1
        self._before.setdefault(name, entry)
        self._changes[name] = changed
        if block is not None:
            self._blocks.append(block)
            self._bodies[value.body] = body
        if len(self._changes) >= _MAX_PENDING:
            self.commit()
        return new

    @contextlib.contextmanager
    def by_session(self) -> Iterator[None]:
        """Skip the check of a session's parts while the session itself changes them."""
        before, self._by_session = self._by_session, True
        try:
            yield
        finally:
            self._by_session = before

    def _watch(self, name: str) -> None:
        """Have the session checked of which a part is about to be changed."""
        watch = self._replica.watch_part
        if watch is None or self._by_session or PART_PREFIX not in name:
            return
        session = name.rsplit("-", 2)[0]
        if session not in self._checks:
            self._checks[session] = watch(self, name)

    def check_parts(self) -> None:
        """Check the sessions of which a part was changed until now. Raises UsageError."""
        checks, self._checks = list(self._checks.values()), {}
        for check in checks:
            if check is not None:
                self.commit()
                check()

    def _tick(self) -> str:
        self._hlc = next_hlc(self._hlc, self._replica.environment.now())
        return self._hlc

    def _is_published(self, text: str) -> bool:
        device, n = text[:16], int(text[17:])
        return device != self._replica.device.id or n <= self._published

    def set(self, name: str, value: bytes) -> None:
        """Set a value of `meta` together with the changes."""
        self._values[name] = value

    def commit(self) -> None:
        """Pass the changes so far to the store; more may follow."""
        values, self._values = self._values, {}
        if not self._changes:
            for name, value in values.items():
                self._replica.db.set_meta(name, value)
            return
        if self._n:
            self._ctx[self._replica.device.id] = self._n
        frame = StateHeader(dict(self._ctx), self._store.frame.seen, self._hlc)
        if self._replica.vault_tag is not None:
            signed = parallel_map(lambda item: sign_entry(self._replica, *item), list(self._changes.items()))
            self._changes = dict(zip(self._changes, signed, strict=True))
            note_unscanned(self._replica, [name for name, entry in self._changes.items() if entry])
        note_others(self._replica, self._changes)
        self._others = any_others(self._replica)
        keep_own(self._replica, self._before, self._changes)
        self._store.apply(self._changes, frame, self._blocks, values)
        self._changes, self._before, self._blocks, self._bodies = {}, {}, [], {}


def _sealed(codec: Codec, text: tuple[str, bytes]) -> tuple[bytes | None, tuple[str, bytes]]:
    """Return a text, with its sealed form as `put` would make it; None for one that `put` itself must refuse."""
    name, body = text
    try:
        return body, codec.seal_body(name, body)
    except IpfsmemError:
        return None, ("", b"")


@contextlib.contextmanager
def writing(replica: Replica) -> Iterator[Writing]:
    """Run one transaction of writes: durable when the block ends, rolled back when it raises.

    Raises UsageError if the vault was opened read-only.
    """
    replica.refuse_read_only()
    with replica.transaction():
        change = Writing(replica)
        yield change
        change.check_parts()
        change.commit()
        if replica.store.long:
            # A vault that is never synced must not get slower to open with every write.
            with contextlib.suppress(MembershipError):
                replica.store.checkpoint(folders=replica.vault_tag is not None)


def note_unscanned(replica: Replica, names: Sequence[str]) -> None:
    """Record entries that this device wrote and that were not searched for secrets (inside a transaction)."""
    if names:
        row = replica.codec.seal_row(msgspec.json.encode(list(names)))
        unscanned_rows.add(replica.db.connection, row)


def unscanned(replica: Replica, most: int | None = None) -> list[str]:
    """Return the entries that `take_unscanned` would take now (inside a transaction)."""
    return _unscanned(replica, most)[0][:most]


def take_unscanned(replica: Replica, most: int | None = None) -> list[str]:
    """Take the entries written since the last call, to be searched for secrets (inside a transaction).

    `most`: maximum number; the rest stays for the next call.
    """
    names, done = _unscanned(replica, most)
    unscanned_rows.forget(replica.db.connection, done)
    note_unscanned(replica, [] if most is None else names[most:])
    return names[:most]


def _unscanned(replica: Replica, most: int | None) -> tuple[list[str], list[int]]:
    """Return the names of at least `most` entries, as they are recorded, and the rows that record them."""
    marks: set[str] = set()
    done: list[int] = []
    for key, row in unscanned_rows.rows(replica.db.connection):
        marks.update(_noted(replica, row))
        done.append(key)
        if most is not None and len(marks) >= most:
            break
    return sorted(marks), done


def _noted(replica: Replica, row: bytes) -> list[str]:
    """Return the names in a row; for a damaged row all that this device wrote. A damaged plain row contains invalid names."""
    try:
        names = msgspec.json.decode(replica.codec.open_row(row), type=list[str])
        with replica.reading():
            if all(replica.store.entry(name) for name in names):
                return names
    except (IpfsmemError, msgspec.DecodeError, TypeError):
        pass
    return own_entries(replica)


def own_entries(replica: Replica) -> list[str]:
    """Return the names of all entries that have a value of this device."""
    mine = replica.device.id
    return sorted(name for name, entry in replica.store.entries() if any(dot[:16] == mine for dot in entry))


def sign_entry(replica: Replica, name: str, entry: Entry) -> Entry:
    """Return the entry with this device's unsigned values signed: new ones, and those written while there was no vault."""
    vault = replica.vault_tag
    assert vault is not None
    return {
        d: sign_value(replica.device.signer, name, d, v, vault)
        if not v.s and d[:16] == replica.device.id
        else v
        for d, v in entry.items()
    }


def seal_entry(replica: Replica, name: str, entry: Entry) -> tuple[Entry, list[tuple[bytes, bytes]]]:
    """Return an entry whose bodies are all sealed under epoch keys that the ring names, as far as this device can open them, and
    the new blocks: location is not identity."""
    codec, sealed, blocks = replica.codec, {}, []
    names = replica.ring.view.names if replica.ring is not None else frozenset()
    for d, value in entry.items():
        changed = {}
        for field, loc in (("loc", value.loc), ("base", value.base)):
            here = loc is None or loc.ek in names
            body = None if here or loc is None else replica.store.open_located(name, loc)
            if body is not None:
                ek, stored = codec.seal_body(name, body)
                digest = sha256(stored)
                blocks.append((digest.digest(), stored))
                changed[field] = Loc(ek, digest.hexdigest(), len(stored))
        sealed[d] = msgspec.structs.replace(value, **changed)
    return sealed, blocks
