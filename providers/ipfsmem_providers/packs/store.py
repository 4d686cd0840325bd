"""Packs: blocks stored as ordinary, immutable CAR files in an object store (object_store.py).

`packs/<SHA-256 of the file>.car`, each with its index. A pack appears whole under a name derived from its
content, and is removed only when another pack holds all its blocks. So devices need no lock: one that finds a
pack gone lists the packs again. Each block is checked when read. A damaged pack gets an index without its bad
blocks and a note of them (lost_blocks.py), and other packs are read instead.

A pack is marked before it is removed: `packs/<its SHA-256>.going`. Its blocks remain readable, but `has`
omits them, so uploaders send them again. collection.py marks packs, and removes them later.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import time
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import BinaryIO, Final

from ipfsmem.content.car import header
from ipfsmem.content.cid import CID, decode_cid, raw_cid, varint
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.errors import FormatError, ProviderError, ProviderRefused
from ipfsmem_providers.packs.blocking_work import heartbeat
from ipfsmem_providers.packs.index import (
    BlockLocation,
    Index,
    decode_index,
    encode_index,
    open_index,
    open_indexes,
    read_at,
    scan,
)
from ipfsmem_providers.packs.lost_blocks import LOST, LostBlocks
from ipfsmem_providers.packs.object_store import FileInfo, FileWriter, ObjectStore, PassedOver
from ipfsmem_providers.packs.pins import own_name

_log = logging.getLogger("ipfsmem.providers")
#: Unfinished files, and indexes without a pack, are leftovers of a crash when they are this old.
LEFTOVER_SECONDS: Final = 86_400
GOING: Final = ".going"
_SPAN: Final = 4 * 1024 * 1024
_GAP: Final = 16 * 1024
#: Blocks that are read at once to see whether they are there.
_BATCH: Final = 100
_HEX: Final = frozenset("0123456789abcdef")


class PackWriter:
    """One new pack: `add` blocks, `flush` them to the store now and then, and end with `Packs.place` or `drop`."""

    def __init__(self, file: FileWriter, root: CID) -> None:
        self._file = file
        self._pending: list[bytes] = [header([root])]
        self._places: dict[bytes, BlockLocation] = {}
        self._hash = hashlib.sha256()
        self._size = len(self._pending[0])
        self._written = 0

    def add(self, cid: CID, data: bytes) -> None:
        """Add one block; one that was added before is left out. ProviderRefused when it does not match its CID."""
        digest = hashlib.sha256(data).digest()
        if cid.multihash[2:] != digest or cid.multihash[:2] != b"\x12\x20":
            raise ProviderRefused(f"block {cid} does not match the SHA-256 of its CID; it was not stored")
        if digest in self._places:
            return
        size = len(data)
        if size > BLOCK_MAX:
            raise ProviderRefused(f"block {cid} has {size} bytes, {BLOCK_MAX} allowed; it was not stored")
        cid_bytes = cid.encode()
        length = varint(len(cid_bytes) + size)
        offset = self._size + len(length) + len(cid_bytes)
        self._places[digest] = BlockLocation(digest, offset, size)
        self._pending += (length, cid_bytes, data)
        self._size = offset + size

    @property
    def size(self) -> int:
        """Return the bytes of the pack so far."""
        return self._size

    @property
    def unwritten(self) -> int:
        """Return the bytes added and not flushed."""
        return self._size - self._written

    def flush(self) -> None:
        """Write the added bytes. Blocks."""
        data = b"".join(self._pending)
        self._pending = []
        self._written += len(data)
        self._hash.update(data)
        self._file.write(data)
        heartbeat()

    @property
    def stem(self) -> str:
        """Return the file's name without its ending, right once all is flushed; "" for a pack without a block."""
        return self._hash.hexdigest() if self._places else ""

    def index(self) -> bytes:
        """Return the bytes of its index file."""
        return encode_index(self._places.values(), self._size)

    def place(self) -> None:
        """Make the pack durable and visible. Blocks."""
        self._file.place(f"{self.stem}.car")

    def drop(self) -> None:
        """Discard the pack."""
        self._file.drop()


class Inventory:
    """The packs of a location in one listing: names and sizes in bytes, largest first, and which are marked."""

    def __init__(self, files: dict[str, FileInfo], *, index_last: bool = False) -> None:
        """`index_last`: a pack is written before its index, so one without an index is unfinished."""
        self.files = files
        packs = sorted(((info.size, name) for name, info in files.items() if is_pack(name)), reverse=True)
        every = {name: size for size, name in packs}
        self.unfinished = {
            name: size for name, size in every.items() if index_last and f"{name[:64]}.idx" not in files
        }
        self.packs = {name: size for name, size in every.items() if name not in self.unfinished}
        self.marked = {f"{name[:64]}.car" for name in files if _is_mark(name)}

    @property
    def unmarked(self) -> dict[str, int]:
        """Return the packs that are not marked, with their sizes."""
        return {name: size for name, size in self.packs.items() if name not in self.marked}


class Packs:
    """The packs of one location. Methods block; usable from several threads and processes."""

    #: When there are more packs than this, the smallest are merged until half as many are left.
    max_packs: int = 64
    #: Merging never reads more than this many bytes in one go.
    merge_bytes: int = 256 * 1024 * 1024
    #: Packs of this size or more are neither counted nor merged.
    large_bytes: float = float("inf")
    #: Whether a listing is a snapshot. Otherwise a file may be absent from it that appeared while another was removed.
    consistent_listing: bool = False

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        #: Hidden files that a sweep could not settle.
        self.passed_over = PassedOver()
        self._indexes: dict[tuple[str, int], Index] = {}
        # A pack's properties when it was last examined.
        self._checked: dict[tuple[str, int], object] = {}
        self._damaged: set[tuple[str, int]] = set()
        self._lost = LostBlocks(store)

    def inventory(self, *, recent: bool = False) -> Inventory:
        """Return the current packs; with `recent` a recent inventory suffices."""
        return Inventory(self.store.files())

    def listing(self) -> dict[str, int]:
        """Return unmarked packs and their sizes; a pack that lost blocks has another size than before."""
        inventory = self.inventory()
        sizes = {}
        for name, size in inventory.unmarked.items():
            note = inventory.files.get(f"{name[:64]}{LOST}")
            sizes[name] = size + (note.size if note is not None else 0)
        return sizes

    def missing_blocks(self) -> list[CID]:
        """Return blocks lost to damage that no other pack holds, so that somebody must resend them."""
        lost: dict[bytes, CID] = {}
        inventory = self.inventory(recent=True)
        for name in inventory.files:
            if _is_mark(name, LOST):
                lost |= self._lost.of(name[:64], inventory.files)
        here = self.has(lost) if lost else set()
        return [cid for digest, cid in sorted(lost.items()) if digest not in here]

    def has(self, digests: Collection[bytes]) -> set[bytes]:
        """Return those of `digests` that the index of an unmarked pack names and that were not found damaged."""
        missing = set(digests)
        # A server may delete a file before it renames the new one, so a pack that is gone once may be there again.
        seen: set[str] = set()
        gone: set[str] = set()
        while missing:
            inventory = self.inventory()
            new = [item for item in inventory.unmarked.items() if item[0] not in seen]
            if not new:
                break  # the same packs twice: none was merged away meanwhile
            self._open(new, inventory)
            some_removed = False
            for name, size in new:
                # Another process may have found damage since this one read the index.
                lost = self._lost.of(name[:64], inventory.files)
                here = missing - lost.keys() if lost else missing
                places = self._find(name, size, here)
                if places is None and name not in gone:
                    some_removed = True
                    gone.add(name)
                else:
                    seen.add(name)
                missing.difference_update([place.digest for place in places or ()])
                if not missing:
                    break
            if self._is_complete(inventory) and not some_removed:
                break
        return set(digests) - missing

    def get(self, digests: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the blocks with these digests; each was checked, and those that cannot be read are left out."""
        missing = set(digests)
        blocks: dict[bytes, bytes] = {}
        seen: set[str] = set()
        gone: set[str] = set()
        inventory = None
        while missing:
            inventory = self.inventory()
            new = [item for item in inventory.packs.items() if item[0] not in seen]
            if not new:
                break
            self._open(new, inventory)
            removed = self._get_from(new, missing, blocks) - gone
            gone |= removed
            seen.update(name for name, _ in new if name not in removed)
            outdated = bool(missing) and self.store.refresh()
            if self._is_complete(inventory) and not removed and not outdated:
                break
        if missing and inventory is not None:
            # Damaged indexes are rebuilt before a block is declared missing.
            stale = [item for item in inventory.packs.items() if self._is_stale(*item, inventory)]
            stale += inventory.unfinished.items()
            if stale:
                self._get_from(stale, missing, blocks)
        return blocks

    def get_from(self, packs: Sequence[tuple[str, int]], digests: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the blocks with these digests in these packs only; each was checked."""
        blocks: dict[bytes, bytes] = {}
        self._get_from(packs, set(digests), blocks)
        return blocks

    def _is_complete(self, inventory: Inventory) -> bool:
        """Return whether an inventory is a snapshot: servers list a thousand files per answer."""
        return self.consistent_listing and len(inventory.files) < 1_000

    def _get_from(
        self, packs: Sequence[tuple[str, int]], missing: set[bytes], blocks: dict[bytes, bytes]
    ) -> set[str]:
        """Move what these packs have from `missing` to `blocks`; return the packs that had been removed."""
        removed: set[str] = set()
        for name, size in packs:
            if not missing:
                break
            try:
                places = self._find(name, size, missing)
                if places is None:
                    removed.add(name)
                    continue
                sound = self._read(name, size, places)
                if len(sound) < len(places):
                    # The pack or the index is damaged; after a scan the index names only sound blocks.
                    places = self._rebuild(name, size).find(missing - sound.keys())
                    sound |= self._read(name, size, places)
            except FileNotFoundError:
                removed.add(name)
                continue
            blocks.update(sound)
            missing.difference_update(sound)
        return removed

    def _find(self, name: str, size: int, digests: set[bytes]) -> list[BlockLocation] | None:
        """Return the positions of the blocks with `digests` in a pack, by its index; None when the pack was removed."""
        for _ in range(2):
            index = self.index(name, size)
            if index is None:
                break
            try:
                return index.find(digests)
            except FileNotFoundError:
                self._indexes.pop(
                    (name, size), None
                )  # removed with its pack, or alone: then it is made again
        return None

    def _read(self, name: str, size: int, places: list[BlockLocation]) -> dict[bytes, bytes]:
        """Return the sound blocks at these positions of a pack of `size` bytes, reading close ones together.

        Positions outside the pack are skipped: an index may claim any.
        """
        inside = (one for one in places if one.length <= BLOCK_MAX and one.offset + one.length <= size)
        places = sorted(inside, key=_offset)
        if not places:
            return {}
        parts: list[list[BlockLocation]] = []
        spans: list[tuple[int, int]] = []
        for place in places:
            start, end = spans[-1] if spans else (0, 0)
            if spans and place.offset <= end + _GAP and end - start < _SPAN:
                parts[-1].append(place)
                spans[-1] = (start, max(end, place.offset + place.length))
            else:
                parts.append([place])
                spans.append((place.offset, place.offset + place.length))
        sound: dict[bytes, bytes] = {}
        sha256 = hashlib.sha256
        for part, (start, _), data in zip(parts, spans, self.store.ranges(name, spans), strict=True):
            for digest, offset, length in part:
                block = data[offset - start : offset - start + length]
                if sha256(block).digest() == digest:
                    sound[digest] = block
        return sound

    def _open(self, packs: Sequence[tuple[str, int]], inventory: Inventory) -> None:
        """Read the indexes of these packs that are not in memory yet, in one request to the store."""
        unread = {
            f"{name[:-4]}.idx": (name, size) for name, size in packs if (name, size) not in self._indexes
        }
        here = {index: pack[1] for index, pack in unread.items() if index in inventory.files}
        for index, opened in open_indexes(self.store, here).items() if here else ():
            self._indexes[unread[index]] = opened

    def index(self, name: str, size: int) -> Index | None:
        """Return the index of a pack, made again from the pack when it is missing; None when the pack was removed."""
        pack_index = self._indexes.get((name, size))
        if pack_index is None:
            heartbeat()
            pack_index = open_index(self.store, f"{name[:-4]}.idx", size)
            if pack_index is None:
                try:
                    return self._rebuild(name, size)
                except FileNotFoundError:
                    return None
            self._indexes[name, size] = pack_index
        return pack_index

    def _is_stale(self, name: str, size: int, inventory: Inventory) -> bool:
        """Check the index of a pack, once for each version of the pack's file. Returns whether it was made again: the index
        was damaged, or the pack had been and may have been put right since."""
        with contextlib.suppress(FileNotFoundError):
            version = inventory.files[name].version
            if self._checked.get((name, size)) == version:
                return False
            self._checked[name, size] = version
            index = self.index(name, size)
            if index is not None and (index.damaged or not index.intact()):
                self._rebuild(name, size)
                return True
        return False

    def _rebuild(self, name: str, size: int) -> Index:
        """Scan a pack and write a new index of its sound blocks; note the others as lost."""
        places: dict[bytes, BlockLocation] = {}
        bad: dict[bytes, CID] = {}
        damaged = False
        with self.store.open_file(name, buffered=True) as file:
            try:
                for section in scan(file):
                    if section.sound:
                        places[section.digest] = BlockLocation(
                            section.digest, section.offset, len(section.data)
                        )
                    else:
                        damaged = True
                        if section.digest:
                            bad[section.digest] = decode_cid(section.cid)
            except FormatError:
                damaged = True
        self._note_lost(name, size, bad, places.keys())
        data = encode_index(places.values(), size, damaged=damaged)
        index = decode_index(data)
        self._indexes[name, size] = index
        with contextlib.suppress(OSError, ProviderError):  # a read-only location can still be read
            self.store.write(f"{name[:-4]}.idx", data, flush=False)
        return index

    def _note_lost(self, name: str, size: int, bad: dict[bytes, CID], sound: Collection[bytes]) -> None:
        """Note the blocks that a pack lost: its `bad` sections, and those that its index named and no scan finds."""
        stem = name[:64]
        noted = self._lost.of(stem, self.inventory(recent=True).files)
        before = self._indexes.get((name, size)) or open_index(self.store, f"{stem}.idx", size)
        with contextlib.suppress(OSError):
            if before is not None and before.intact():
                digests = {place.digest for place in before.places()}
                # If a section's CID is damaged, it names a block that was never here.
                bad = {digest: bad.get(digest, raw_cid(digest)) for digest in digests}
        lost = {**bad, **noted}
        lost = {digest: cid for digest, cid in lost.items() if digest not in sound}
        if lost.keys() == noted.keys():
            return
        if lost:
            _log.warning(
                "%s is damaged: %d of its blocks cannot be read, for instance %s; a device that has them sends them again",
                f"{self.store}/{name}", len(lost), next(iter(lost.values())),
            )  # fmt: skip
        self._lost.note(stem, lost.values())

    def forget(self, name: str) -> None:
        """Drop cached data of a pack that was written or removed."""
        for cache in (self._indexes, self._checked, self._damaged):
            for key in [key for key in cache if key[0] == name]:
                cache.pop(key) if isinstance(cache, dict) else cache.discard(key)

    def compact(self, inventory: Inventory | None = None) -> None:
        """Merge the smallest packs when there are too many, and remove leftovers of crashes.

        The merged pack is placed before the small ones are removed, and its bytes depend only on the set of
        its blocks. So two devices that merge the same packs write the same file, and neither removes what the
        other relies on.
        """
        inventory = inventory or self.inventory()
        if sum(size < self.large_bytes for size in inventory.packs.values()) <= self.max_packs:
            return
        inventory = self.sweep(time.time() - LEFTOVER_SECONDS)
        with contextlib.suppress(FileNotFoundError):  # another device is at it
            self._merge(self._smallest(inventory.unmarked))

    def _smallest(self, packs: Mapping[str, int]) -> list[tuple[str, int]]:
        """Return the packs to merge."""
        small = sorted((size, name) for name, size in packs.items() if size < self.large_bytes)
        parts: list[tuple[str, int]] = []
        total = 0
        for size, name in small:
            if (name, size) in self._damaged:
                continue
            if len(small) - len(parts) < self.max_packs // 2 or total + size > self.merge_bytes:
                break
            parts.append((name, size))
            total += size
        return parts

    def _merge(self, parts: list[tuple[str, int]]) -> None:
        blocks: dict[bytes, tuple[bytes, str, int, int]] = {}
        whole: list[str] = []
        for name, size in parts:
            sections: dict[bytes, tuple[bytes, str, int, int]] = {}
            try:
                with self.store.open_file(name, buffered=True) as file:
                    for section in scan(file):
                        if not section.sound:
                            raise FormatError(f"pack {name} is damaged")
                        sections[section.digest] = (section.cid, name, section.offset, len(section.data))
            except FormatError:
                self._damaged.add((name, size))  # not merged: its sound blocks can still be read
                continue
            whole.append(name)
            for digest, section_place in sections.items():
                if digest not in blocks or section_place[0] < blocks[digest][0]:
                    blocks[digest] = section_place
        if len(whole) < 2 or not blocks:
            return
        merged, _ = self.write_merged(blocks)
        self._remove([name for name in whole if name != merged])

    def _remove(self, packs: Sequence[str]) -> None:
        """Remove packs whose blocks are all in another one."""
        for name in packs:
            with contextlib.suppress(OSError):  # removed already, or open in another program on Windows
                self.store.unlink(name)
                self.store.unlink(f"{name[:-4]}.idx")

    def place(self, writer: PackWriter) -> str:
        """Make a new pack durable and visible, with its index. Returns its file name; "" when it holds no block."""
        writer.flush()
        stem = writer.stem
        if not stem:
            writer.drop()
            return ""
        # The index comes first: nobody sees a pack without one, and an index without a pack is ignored.
        self.store.write(f"{stem}.idx", writer.index(), flush=False)
        try:
            writer.place()
        except OSError:
            with contextlib.suppress(OSError):
                self.store.unlink(f"{stem}.idx")
            raise
        for ending in (GOING, LOST):
            with contextlib.suppress(OSError):  # this very pack was marked or damaged before
                self.store.unlink(f"{stem}{ending}")
        self.store.flush()
        self.forget(f"{stem}.car")
        return f"{stem}.car"

    def write_merged(self, blocks: dict[bytes, tuple[bytes, str, int, int]]) -> tuple[str, int]:
        """Write one pack of blocks from others. `blocks`: digest -> CID bytes, pack, offset and length there.

        Returns the new pack's name and size; its bytes depend only on the set of blocks. FileNotFoundError
        when a pack was removed or changed.
        """
        ordered = sorted(blocks)
        writer = PackWriter(self.store.new_file(), decode_cid(blocks[ordered[0]][0]))
        files: dict[str, BinaryIO] = {}
        try:
            for digest in ordered:
                cid, name, offset, length = blocks[digest]
                if name not in files:
                    files[name] = self.store.open_file(name)
                try:
                    writer.add(decode_cid(cid), read_at(files[name], offset, length))
                except ProviderRefused as error:
                    raise FileNotFoundError(f"pack {name} changed while it was merged") from error
                if writer.unwritten > _SPAN:
                    writer.flush()
            return self.place(writer), writer.size
        except BaseException:
            writer.drop()
            raise
        finally:
            for file in files.values():
                file.close()

    def sweep(self, oldest: float) -> Inventory:
        """Restore hidden packs, and remove leftovers of crashes that were last changed before `oldest` (Unix time, seconds):
        unfinished files, and indexes and marks without a pack. Returns the packs."""
        before = self.passed_over.copy()
        self.store.sweep(oldest, self.passed_over)
        inventory = self.inventory()
        if self._save_hidden(self.passed_over - before, inventory):
            inventory = self.inventory()
        # Of a pack that is hidden just now, too.
        packs = {name[-68:-4] for name in inventory.files if is_pack(name[-68:])}
        for name, info in inventory.files.items():
            ours = (len(name) == 68 and name.endswith(".idx")) or _is_mark(name) or _is_mark(name, LOST)
            if ours and name[:64] not in packs and info.modified < oldest * 1000:
                with contextlib.suppress(OSError):
                    self.store.unlink(name)
        return inventory

    def _save_hidden(
        self, passed_over: Iterable[tuple[str, Hashable, Hashable]], inventory: Inventory
    ) -> bool:
        """Store the blocks that only damaged hidden packs hold, next to a damaged pack of their name. Tells whether a file was
        written or removed."""
        left, changed = self.passed_over.limit, False
        for key in sorted(passed_over, key=itemgetter(0)):
            name = key[0]
            size = inventory.files[name].size if name in inventory.files else 0
            if own_name(name) in inventory.packs and 0 < size <= left:
                left -= size
                with contextlib.suppress(OSError, ProviderError):
                    if self._save_blocks(name):
                        changed = True
                    else:
                        self.passed_over.worthless.add(key)
        return changed

    def _save_blocks(self, name: str) -> bool:
        """Store blocks of a hidden pack that no unmarked pack has; remove it when each that it names can be read elsewhere."""
        named: dict[bytes, tuple[bytes, str, int, int]] = {}
        sound: set[bytes] = set()
        is_whole = True
        with self.store.open_file(name, buffered=True) as file:
            try:
                for section in scan(file):
                    is_whole = is_whole and section.digest != b""
                    if section.sound or (section.digest and section.digest not in sound):
                        named[section.digest] = (section.cid, name, section.offset, len(section.data))
                    if section.sound:
                        sound.add(section.digest)
            except FormatError:
                is_whole = False
        missing = self._unreadable(named)
        parts: list[dict[bytes, tuple[bytes, str, int, int]]] = []
        total: float = math.inf
        for digest in sorted(missing & sound):
            # A pack must not exceed what the location accepts in one piece.
            if (total := total + named[digest][3]) > self.merge_bytes:
                parts.append({})
                total = named[digest][3]
            parts[-1][digest] = named[digest]
        for part in parts:
            self.write_merged(part)
        if is_whole and not self._unreadable(named):
            with contextlib.suppress(FileNotFoundError):
                self.store.unlink(name)
            return True
        return bool(parts)

    def _unreadable(self, digests: Iterable[bytes]) -> set[bytes]:
        """Return those of `digests` that cannot be read in any unmarked pack; an index alone is no proof."""
        wanted, missing = sorted(digests), set(digests)
        packs = list(self.inventory().unmarked.items())
        for start in range(0, len(wanted), _BATCH):
            missing -= self.get_from(packs, wanted[start : start + _BATCH]).keys()
        return missing


def is_pack(name: str) -> bool:
    """Return whether a file has the name of a pack."""
    return len(name) == 68 and name.endswith(".car") and _HEX.issuperset(name[:64])


def _is_mark(name: str, ending: str = GOING) -> bool:
    return len(name) == 64 + len(ending) and name.endswith(ending) and _HEX.issuperset(name[:64])


def _offset(place: BlockLocation) -> int:
    return place.offset
