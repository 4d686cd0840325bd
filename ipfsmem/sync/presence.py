"""Check that the live set is still at each provider, by the requests of a restore (format section 7).

A pin, a list or the block of the root does not prove that all blocks are there. Each sync reads a listing if there is
one; structure is read daily, every object within seven days, in an order secret to this device. `repair` resends
missing blocks. This module checks and records, and relies only on blocks that it read or asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, DAG_PB, is_cid, parse_cid, raw_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.content.verify import verify_block
from ipfsmem.device.bulk import blocks_here, no_collection
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import objects_not_here
from ipfsmem.device.tables import folders, nodes, objects, presence
from ipfsmem.errors import BlockError, FormatError, IpfsmemError, LimitError, ProviderError
from ipfsmem.provider.contract import MAX_BATCH, Provider, lister, raw_reader
from ipfsmem.published.live_set import LiveSet, live_set
from ipfsmem.sync.company import kept_pauses
from ipfsmem.sync.progress import Progress, no_progress
from ipfsmem.sync.sending import new_blocks
from ipfsmem.sync.times import DAY_MS, HOUR_MS, passed

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch

#: Interval between reads of the structure: below a day, so that exact daily syncs read it daily.
STRUCTURE_MS = 20 * HOUR_MS
#: Interval of the rolling part, which completes a round in less than seven days.
ROLLING_MS = 6 * HOUR_MS
ROUND_MS = 6 * DAY_MS
#: Time that a service accepting whole trees may need to serve one.
PATIENCE_MS = 20 * HOUR_MS
#: Blocks per request for raw blocks.
_BATCH = 2_000
#: New objects read back right after an upload; the others follow in the rolling part.
_SAMPLE = 64
#: The same for structure and objects, where each block is a request and may take hours to be served.
_FEW = 4
#: Maximum number of missing blocks recorded by name.
_NAMED = 10_000


class Extent(msgspec.Struct, frozen=True):
    """The extent of a check beyond the due part. `every`: ask for all blocks and read structure. `read_all`: read all
    blocks, and the trees of the roots `older`."""

    every: bool = False
    read_all: bool = False
    older: tuple[CID, ...] = ()


#: A check of the due part only.
DUE: Final = Extent()


class CopyNotes(msgspec.Struct):
    """This device's notes on a provider's copy: a row of `presence`. Times in milliseconds since 1970 UTC."""

    #: The last listing.
    listing: dict[str, int] | None = None
    #: The root whose tree was found complete, except blocks recorded below as missing, and roots of rings.
    root: str = ""
    rings: list[str] = []
    structure_at: int = 0
    objects_at: int = 0
    #: Position of the rolling check in its order, and when all objects had last been read.
    cursor: str = ""
    round_at: int = 0
    #: Missing blocks there (digests, hex; the first of them), their number, since when.
    missing: list[str] = []
    lacking: int = 0
    since: int = 0
    total: int = 0
    #: Time of the last check, and why nothing can be checked.
    at: int = 0
    unchecked: str = ""
    #: Bytes resent on this day (days since 1970); whether that was given up.
    day: int = 0
    sent: int = 0
    stopped: bool = False


class Presence(msgspec.Struct, frozen=True):
    """The state of one provider's copy, for users and programs.

    `state`: `ok`; `missing`; `waiting`, a service that accepts whole trees does not serve all of it yet;
    `unchecked`, it cannot be checked or was not yet; `stopped`, resent blocks vanished again, so nothing more
    is sent automatically. Of `total` live blocks, `read` were just checked; `missing` are absent, `examples`
    are some of their CIDs; `sent` were resent. `at`: last check, `paused_until`: end of a requested pause,
    both in milliseconds since 1970. `hint`: what to do where a later check does not help.
    """

    provider: str
    state: str
    total: int = 0
    missing: int = 0
    examples: list[str] = []
    read: int = 0
    sent: int = 0
    at: int | None = None
    text: str = ""
    paused_until: int | None = None
    hint: str = ""


def unchecked(provider: str, error: ProviderError) -> Presence:
    """Return the presence at a provider that cannot be checked because of an error."""
    hint = (error.hint or "Test the provider: ipfsmem provider test SPEC") if error.permanent else ""
    return Presence(provider, "unchecked", text=error.in_a_line(), hint=hint)


def load_notes(replica: Replica, provider: str) -> CopyNotes:
    """Return the notes on a provider's copy: empty if absent or damaged, so that everything is due."""
    row = presence.get(replica.db.connection, provider)
    try:
        notes = CopyNotes() if row is None else read_json(row, type=CopyNotes)
        for text in notes.missing:
            _of_hex(text)
    except (msgspec.DecodeError, ValueError, FormatError):
        return CopyNotes()
    return notes if all(map(is_cid, filter(None, [notes.root, *notes.rings]))) else CopyNotes()


def store_notes(replica: Replica, provider: str, notes: CopyNotes) -> None:
    """Store the notes on a provider's copy (inside a transaction)."""
    presence.put(replica.db.connection, provider, msgspec.json.encode(notes))


def can_be_checked(provider: Provider) -> bool:
    """Tell whether a provider lists what it stores or serves its own blocks."""
    return lister(provider) is not None or raw_reader(provider) is not None


class Checker:
    """One check of one root at one provider. `answered`: the root as known to that provider."""

    def __init__(
        self,
        replica: Replica,
        provider: Provider,
        root: CID,
        answered: CID,
        rings: Iterable[CID],
        notes: CopyNotes,
        progress: Progress = no_progress,
        served: Collection[CID] = (),
    ) -> None:
        """`served`: blocks that this provider has just served."""
        self._replica, self._provider = replica, provider
        self._root, self._answered = root, answered
        self._rings = [ring for ring in rings if replica.db.has_block(ring.digest)]
        self._notes = notes
        self._progress = progress
        self._raw = raw_reader(provider)
        self._live: LiveSet | None = None
        self._absent: dict[CID, None] = {}
        self._present: set[CID] = set()
        #: Whether this check goes beyond what is new.
        self.thorough = False
        #: Whether something listed there is gone.
        self.shrunk = False
        #: Blocks of older roots not in the newest, if requested.
        self.older: list[CID] = []
        #: Already read there in this sync.
        self._served = set(served)

    @property
    def live(self) -> LiveSet:
        """Return the live set, walked once."""
        if self._live is None:
            live_blocks = live_set(self._replica.db, self._root, self._rings)
            lost = [raw_cid(digest) for digest in sorted(objects_not_here(self._replica.db))]
            self._live = msgspec.structs.replace(live_blocks, objects=[*live_blocks.objects, *lost])
        return self._live

    async def check_due(self, extent: Extent) -> bool:
        """Check what is due, and as far as `extent` says; tell whether there was anything to check.

        Raises ProviderError if the provider cannot answer.
        """
        notes, now = self._notes, self._replica.environment.now()
        listing = await self._listing()
        self.shrunk = (
            listing is not None
            and notes.listing is not None
            and any(listing.get(name) != size for name, size in notes.listing.items())
        )
        first = notes.root == ""
        every, read_all = extent.every or self.shrunk, extent.read_all
        rings = sorted(map(str, self._rings))
        structure_due = passed(notes.structure_at, now, STRUCTURE_MS) and not first
        rolling_due = passed(notes.objects_at, now, ROLLING_MS) and not first
        fresh = notes.root != str(self._root) or notes.rings != rings
        lost = [raw_cid(digest) for digest in sorted(objects_not_here(self._replica.db))]
        notes.listing = listing
        self.thorough = every or read_all or structure_due or bool(notes.missing)
        if not (every or read_all or structure_due or rolling_due or fresh or notes.missing or lost):
            return False
        await self._look_at_missing(lost)
        if every or read_all:
            await self._look_at_all(read_all=read_all)
        elif fresh:
            await self._look_at_new()
        await self._read_trees(extent.older)
        if (structure_due or every) and not read_all:
            await self._read_structure()
        if structure_due or every or first:
            notes.structure_at = now
        if first:
            notes.objects_at = notes.round_at = now
        elif rolling_due and not read_all:
            await self._read_part(now)
        if read_all:
            notes.structure_at = notes.objects_at = notes.round_at = now
        notes.at, notes.total = now, max(self._count(), self.seen)
        if len(self._absent) <= _NAMED:  # missing blocks are asked for by name
            notes.root, notes.rings = str(self._root), rings
        return True

    async def look_at_older(self, roots: Iterable[CID], *, but: Iterable[CID] = ()) -> None:
        """Check the blocks of older roots kept there that the newest lacks, if local and so resendable; not
        those of `but`."""
        db = self._replica.db
        older_only: dict[CID, None] = {}
        with no_collection():
            for root in roots:
                older_only.update((cid, None) for cid in new_blocks(db, root, [self._root]))
        for cid in but:
            older_only.pop(cid, None)
        here = blocks_here(db, [cid.digest for cid in older_only])
        self.older = [cid for cid in older_only if cid.digest in here]
        await self._ask(self.older)
        self._notes.total = max(self._notes.total, self.seen)

    async def list_again(self) -> None:
        """Record the listing after a resend: what vanishes from here on is noticed."""
        self._notes.listing = await self._listing()

    async def look_again(self, cids: Collection[CID]) -> set[CID]:
        """Return those of `cids` that are there now."""
        for cid in cids:
            self._absent.pop(cid, None)
            self._present.discard(cid)
            self._served.discard(cid)
        await self._ask(cids)
        return {cid for cid in cids if cid not in self._absent}

    @property
    def missing(self) -> list[CID]:
        """Return the absent blocks among those checked, structure first."""
        structure = set(self.live.structure) if self._absent else set()
        return sorted(self._absent, key=lambda cid: cid not in structure)

    @property
    def seen(self) -> int:
        """Return the number of blocks checked."""
        return len(self._present) + len(self._absent)

    async def _listing(self) -> dict[str, int] | None:
        lists = lister(self._provider)
        return await lists.listing() if lists is not None else None

    async def _look_at_all(self, *, read_all: bool) -> None:
        blocks = [*self.live.structure, *self.live.objects]
        if read_all or not self._provider.capabilities.has:
            await self._read(blocks if read_all else self.live.structure)
        else:
            await self._ask(blocks)

    async def _look_at_missing(self, lost: Iterable[CID]) -> None:
        """Check what was missing last time and is still live, and what is not local.

        What a read found missing is read again: a provider that lost it may keep claiming to have it.
        """
        if self._notes.missing:
            live = {*self.live.structure, *self.live.objects}
            await self._read([cid for cid in map(_of_hex, self._notes.missing) if cid in live])
        await self._ask(lost)

    async def _look_at_new(self) -> None:
        """Check this root's blocks beyond the one found there before.

        Services that accept whole trees may take hours to serve them, one request per block: a few are read
        now, the rest later.
        """
        before = [parse_cid(self._notes.root)] if self._notes.root else []
        rings = [ring for ring in self._rings if str(ring) not in self._notes.rings]
        with no_collection():
            new = set(new_blocks(self._replica.db, self._root, before))
            new.update(cid for ring in rings for cid in new_blocks(self._replica.db, ring, before))
        objects = self._objects_among(new)
        if self._provider.capabilities.has:
            if len(objects) > _SAMPLE:
                await self._ask(objects)
            await self._read([*(new - objects), *self._ordered(objects)[:_SAMPLE]])
        else:
            structure = self._ordered(new - objects)[:_FEW] if self._answered == self._root else []
            await self._read([*structure, *self._ordered(objects)[:_FEW]])

    async def _read_trees(self, roots: Collection[CID]) -> None:
        """Read the trees of roots kept there, from the root down, by what is read: they need not be local."""
        level = list(dict.fromkeys(roots)) if self._raw is not None else []
        seen = set(level)
        while level:
            below: dict[CID, None] = {}
            for start in range(0, len(level), _BATCH):
                part = level[start : start + _BATCH]
                self._progress(f"reading {self._provider.name}", len(seen) - len(level) + start, len(seen))
                unknown = [cid for cid in part if cid not in self._present]
                blocks = await self._stored(unknown)
                self._note([cid for cid in unknown if cid not in blocks], blocks)
                for cid in part:
                    data = blocks.get(cid) or self._replica.db.block(cid.digest)
                    if data is not None and cid.codec == DAG_PB:
                        below.update((link.cid, None) for link in decode_node(data).links)
            level = [cid for cid in below if cid not in seen]
            seen.update(level)

    def _objects_among(self, blocks: Collection[CID]) -> set[CID]:
        """Return which blocks are texts or segments, without walking the whole tree."""
        files = {cid.digest: cid for cid in blocks if cid.codec != DAG_PB}
        # A damaged row may hold another digest than the one that found it.
        digests = objects.known_among(self._replica.db.connection, files)
        return {cid for digest, cid in files.items() if digest in digests}

    def _count(self) -> int:
        """Return the number of live blocks as far as known without a walk."""
        if self._live is not None:
            return self._live.total
        db = self._replica.db.connection
        return objects.count(db) + nodes.count(db) + folders.count(db) + 3 + 2 * len(self._rings)

    async def _read_structure(self) -> None:
        if self._answered != self._root:
            await self._read_foreign()
        else:
            await self._read(self.live.structure)

    async def _read_foreign(self) -> None:
        """Check structure in a provider's own layout: compare its files with ours by path."""
        if self._raw is None:
            return
        try:
            absent = await drive_async(
                absent_files(Reader(), self._root, self._answered), self._blocks_of_both
            )
        except ProviderError:
            raise
        except IpfsmemError:  # a folder is gone
            absent = [self._root]
        self._note(absent, present=[])

    async def _blocks_of_both(self, cids: Iterable[CID]) -> dict[CID, bytes]:
        every = list(cids)
        ours = {cid: data for cid in every if (data := self._replica.db.block(cid.digest)) is not None}
        missing = [cid for cid in every if cid not in ours]
        return ours | (await self._stored(missing) if missing else {})

    async def _read_part(self, now: int) -> None:
        """Read the next part of the rolling round."""
        notes = self._notes
        ordered = self._ordered(self.live.objects)
        span = now - notes.objects_at if notes.objects_at <= now else ROUND_MS
        count = min(len(ordered), -(-len(ordered) * min(span, ROUND_MS) // ROUND_MS))
        keys = [self._key(cid) for cid in ordered]
        start = next((i for i, key in enumerate(keys) if key > notes.cursor), 0)
        part = [ordered[(start + i) % len(ordered)] for i in range(count)]
        await self._read(part)
        if part:
            if start + count >= len(ordered) or count == len(ordered):
                notes.round_at = now
            notes.cursor = self._key(part[-1])
        notes.objects_at = now

    def _ordered(self, objects: Iterable[CID]) -> list[CID]:
        """Return objects in an order derived from a secret of this device, different for each provider."""
        return sorted(objects, key=self._key)

    @cached_property
    def _keyed(self) -> Any:
        secret = sha256(b"presence\0" + self._replica.device.row_key + self._provider.name.encode()).digest()
        return blake2b(digest_size=8, key=secret)

    def _key(self, cid: CID) -> str:
        state = self._keyed.copy()  # cheaper than keying a new one for each of ten thousand
        state.update(cid.digest)
        return str(state.hexdigest())

    async def _ask(self, cids: Iterable[CID]) -> None:
        """Check blocks in the provider's cheapest way."""
        if not self._provider.capabilities.has:
            await self._read(cids)
            return
        done = self._present | self._absent.keys() | self._served
        unasked = [cid for cid in dict.fromkeys(cids) if cid not in done]
        for start in range(0, len(unasked), MAX_BATCH):
            part = unasked[start : start + MAX_BATCH]
            self._progress(f"checking {self._provider.name}", start, len(unasked))
            there = await self._provider.has(part)
            self._note([cid for cid in part if cid not in there], there)

    async def _read(self, cids: Iterable[CID]) -> None:
        """Read blocks where they are stored; if impossible, ask."""
        unread = [cid for cid in dict.fromkeys(cids) if cid not in self._absent and cid not in self._served]
        if self._raw is None:
            if self._provider.capabilities.has:
                await self._ask(unread)
            return
        for start in range(0, len(unread), _BATCH):
            part = unread[start : start + _BATCH]
            self._progress(f"reading {self._provider.name}", start, len(unread))
            blocks = await self._stored(part)
            self._note([cid for cid in part if cid not in blocks], blocks)

    async def _stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        assert self._raw is not None
        blocks = await self._raw.read_stored(cids)
        return {cid: data for cid, data in blocks.items() if _is_sound(cid, data)}

    def _note(self, absent: Iterable[CID], present: Iterable[CID]) -> None:
        self._present.update(present)
        for cid in absent:
            self._absent[cid] = None
            self._present.discard(cid)


def absent_files(reader: Reader, ours: CID, theirs: CID) -> Fetch[list[CID]]:
    """A read (content.fetch): return the structure files of the tree `ours` that `theirs` does not have with
    the same bytes."""
    mine = yield from reader.walk(ours)
    there = yield from reader.walk(theirs)
    structure = {path: cid for path, cid in mine.items() if is_structure(path)}
    absent = [cid for path, cid in structure.items() if path not in there]
    both = {path: there[path] for path in structure if path in there}
    files = yield from reader.read_files(both.values())
    absent += [
        structure[path] for path, cid in both.items() if sha256(files[cid]).digest() != structure[path].digest
    ]
    return absent


def is_structure(path: str) -> bool:
    """Tell whether a root's file is needed to find the others."""
    path = path.removeprefix("memory/.ipfsmem/")
    return path in ("keyring.json", "head.ipm", "commit.json") or path.startswith("s/")


def note_missing(notes: CopyNotes, missing: Collection[CID], now: int) -> None:
    """Record the blocks that a check finally found missing."""
    notes.missing = [cid.encode().hex() for cid in missing][:_NAMED]
    notes.lacking = len(missing)
    notes.since = (notes.since or now) if missing else 0


def describe_copy(replica: Replica, provider: Provider, *, read: int = 0, sent: int = 0) -> Presence:
    """Describe what is known of a provider's copy. Local."""
    description = _describe_copy(replica, provider, read, sent)
    return msgspec.structs.replace(description, paused_until=kept_pauses(replica).get(provider.name))


def _describe_copy(replica: Replica, provider: Provider, read: int, sent: int) -> Presence:
    notes = load_notes(replica, provider.name)
    if not can_be_checked(provider):
        return Presence(
            provider.name,
            "unchecked",
            text="cannot be checked: it neither lists nor serves its content",
            hint="Add a provider that lists or serves its content: ipfsmem provider add SPEC",
        )
    examples = [str(_of_hex(text)) for text in notes.missing[:3]]
    at = notes.at or None
    if notes.lacking and _may_be_late(replica, provider, notes):
        state, text = "waiting", f"{notes.lacking:,} of its {notes.total:,} parts are not served yet"
    elif notes.lacking:
        verb = "is" if notes.lacking == 1 else "are"
        state, text = "missing", f"{notes.lacking:,} of its {notes.total:,} parts {verb} missing"
        if notes.stopped:
            state, text = (
                "stopped",
                f"{text}; parts that were sent again went missing again, so no more are sent automatically",
            )
    elif not notes.at:
        state, text = "unchecked", "not checked yet: ipfsmem sync"
    else:
        state, text = "ok", ""
    return Presence(
        provider.name, state, notes.total, notes.lacking, examples, read, sent, at, notes.unchecked or text
    )


def _may_be_late(replica: Replica, provider: Provider, notes: CopyNotes) -> bool:
    """Tell whether a service that accepts whole trees may still need hours to serve one."""
    return not provider.capabilities.has and not passed(notes.since, replica.environment.now(), PATIENCE_MS)


def _of_hex(text: str) -> CID:
    from ipfsmem.content.cid import decode_cid

    return decode_cid(bytes.fromhex(text))


def _is_sound(cid: CID, data: bytes) -> bool:
    try:
        verify_block(cid, data)
    except (BlockError, LimitError, FormatError):
        return False
    return True
