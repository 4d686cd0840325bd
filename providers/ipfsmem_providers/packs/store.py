"""Packs: blocks kept as ordinary CAR files that nobody ever changes, on a shelf (shelf.py).

`packs/<SHA-256 of the file>.car`, each with an index beside it. Files appear whole under a name that says their
content and go only after a file that holds all their blocks is in its place, so devices need no lock between them:
whoever finds a file gone looks again. Each block read is checked; a pack that turns out damaged gets an
index without its bad blocks and a note of them (lost.py), and the other packs are asked. Nothing here knows
roots, pins or names.

A pack that is to go is marked first, `packs/<its SHA-256>.going`: its blocks can still be read but are no longer said
to be stored, so whoever uploads sends them again. collection.py marks packs, and removes them later.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import BinaryIO, Final

from ipfsmem.content.car import header
from ipfsmem.content.cid import CID, decode_cid, raw_cid, varint
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.errors import FormatError, ProviderError, ProviderRefused
from ipfsmem_providers.packs.blocking_work import beat
from ipfsmem_providers.packs.index import (
    Index,
    Place,
    decode_index,
    encode_index,
    open_index,
    open_indexes,
    scan,
)
from ipfsmem_providers.packs.lost import LOST, Lost
from ipfsmem_providers.packs.shelf import Making, Seen, Shelf

_log = logging.getLogger("ipfsmem.providers")
#: Files in the making, and indexes without a pack, are leftovers after a day.
LEFTOVER_SECONDS: Final = 86_400
GOING: Final = ".going"
_SPAN: Final = 4 * 1024 * 1024
_GAP: Final = 16 * 1024
_HEX: Final = frozenset("0123456789abcdef")


class PackWriter:
    """One new pack: `add` blocks, `flush` what is due to be written, then `Packs.place` it, or `drop` it."""

    def __init__(self, file: Making, root: CID) -> None:
        self._file = file
        self._pending: list[bytes] = [header([root])]
        self._places: dict[bytes, Place] = {}
        self._hash = hashlib.sha256()
        self._size = len(self._pending[0])
        self._written = 0

    def add(self, cid: CID, data: bytes) -> None:
        """Take one block; a block that was added before is left out. Raises ProviderRefused for a wrong one."""
        digest = hashlib.sha256(data).digest()
        if cid.multihash[2:] != digest or cid.multihash[:2] != b"\x12\x20":
            raise ProviderRefused(
                f"block {cid} does not have the SHA-256 that its CID says; it was not stored"
            )
        if digest in self._places:
            return
        size = len(data)
        if size > BLOCK_MAX:
            raise ProviderRefused(f"block {cid} has {size} bytes, {BLOCK_MAX} allowed; it was not stored")
        cid_bytes = cid.encode()
        length = varint(len(cid_bytes) + size)
        offset = self._size + len(length) + len(cid_bytes)
        self._places[digest] = Place(digest, offset, size)
        self._pending += (length, cid_bytes, data)
        self._size = offset + size

    @property
    def size(self) -> int:
        """Bytes of the pack so far."""
        return self._size

    @property
    def due(self) -> int:
        """Bytes that were added and are not written."""
        return self._size - self._written

    def flush(self) -> None:
        """Write what is due. Blocks."""
        data = b"".join(self._pending)
        self._pending = []
        self._written += len(data)
        self._hash.update(data)
        self._file.write(data)
        beat()

    @property
    def stem(self) -> str:
        """What the file is named by, once all is written; "" when it holds no block."""
        return self._hash.hexdigest() if self._places else ""

    def index(self) -> bytes:
        """Its index."""
        return encode_index(self._places.values(), self._size)

    def place(self) -> None:
        """Put the pack in its place, durably. Blocks."""
        self._file.place(f"{self.stem}.car")

    def drop(self) -> None:
        """Forget all of it."""
        self._file.drop()


class View:
    """What one look shows: packs and their sizes in bytes, largest first, and those that are marked to go, by name."""

    def __init__(self, files: dict[str, Seen], *, index_last: bool = False) -> None:
        """`index_last`: a pack whose index is not there is not finished."""
        self.files = files
        found = sorted(((seen.size, name) for name, seen in files.items() if _is_pack(name)), reverse=True)
        every = {name: size for size, name in found}
        self.unfinished = {
            name: size for name, size in every.items() if index_last and f"{name[:64]}.idx" not in files
        }
        self.packs = {name: size for name, size in every.items() if name not in self.unfinished}
        self.going = {f"{name[:64]}.car" for name in files if _is_mark(name)}

    @property
    def staying(self) -> dict[str, int]:
        """Those that are not marked."""
        return {name: size for name, size in self.packs.items() if name not in self.going}


class Packs:
    """The packs of one place. Methods block, and may run in several threads and processes."""

    #: More packs than this, and the smallest are merged until half as many are left.
    most: int = 64
    #: Merging never reads more than this many bytes in one go.
    merge_bytes: int = 256 * 1024 * 1024
    #: Packs of this size or more do not count, and are not merged.
    grown: float = float("inf")
    #: What a look shows was all there at one moment; else a file may be passed over that came while another went.
    one_look: bool = False

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._indexes: dict[tuple[str, int], Index] = {}
        # What a pack looked like when it was last looked at closely.
        self._checked: dict[tuple[str, int], object] = {}
        self._damaged: set[tuple[str, int]] = set()
        self._lost = Lost(shelf)

    def look(self, *, recent: bool = False) -> View:
        """What is there now; with `recent` what was seen a moment ago may do."""
        return View(self.shelf.look())

    def listing(self) -> dict[str, int]:
        """Packs and their sizes; another size for one that lost blocks, and none for one that is marked to go."""
        view = self.look()
        found = {}
        for name, size in view.staying.items():
            note = view.files.get(f"{name[:64]}{LOST}")
            found[name] = size + (note.size if note is not None else 0)
        return found

    def lacking(self) -> list[CID]:
        """What packs lost to damage and no pack has: nobody can read it until somebody sends it again."""
        lost: dict[bytes, CID] = {}
        view = self.look(recent=True)
        for name in view.files:
            if _is_mark(name, LOST):
                lost |= self._lost.of(name[:64], view.files)
        here = self.has(lost) if lost else set()
        return [cid for digest, cid in sorted(lost.items()) if digest not in here]

    def has(self, digests: Collection[bytes]) -> set[bytes]:
        """Those of `digests` that some index names, less what was found damaged; a pack that is to go does not count."""
        missing = set(digests)
        seen: set[str] = set()
        while missing:
            view = self.look()
            new = [item for item in view.staying.items() if item[0] not in seen]
            if not new:
                break  # twice the same: nothing was merged away while we looked
            self._open(new, view)
            gone = False
            for name, size in new:
                seen.add(name)
                # Another process may have found damage that the index in this one's memory does not know.
                lost = self._lost.of(name[:64], view.files)
                here = missing - lost.keys() if lost else missing
                places = self._find(name, size, here)
                gone = gone or places is None
                missing.difference_update([place.digest for place in places or ()])
                if not missing:
                    break
            if self._was_all(view) and not gone:
                break
        return set(digests) - missing

    def get(self, digests: Collection[bytes]) -> dict[bytes, bytes]:
        """The blocks with these digests that can be read whole, each checked."""
        missing = set(digests)
        found: dict[bytes, bytes] = {}
        seen: set[str] = set()
        view = None
        while missing:
            view = self.look()
            new = [item for item in view.packs.items() if item[0] not in seen]
            if not new:
                break
            self._open(new, view)
            gone = self._get_from(new, missing, found)
            seen.update(name for name, _ in new)
            if self._was_all(view) and not gone:
                break
        if missing and view is not None:
            # Before a block counts as missing, indexes that are not what was written are made again.
            stale = [item for item in view.packs.items() if self._is_stale(*item, view)]
            stale += view.unfinished.items()
            if stale:
                self._get_from(stale, missing, found)
        return found

    def get_from(self, packs: Sequence[tuple[str, int]], digests: Collection[bytes]) -> dict[bytes, bytes]:
        """The blocks that can be read whole from these packs, each checked."""
        found: dict[bytes, bytes] = {}
        self._get_from(packs, set(digests), found)
        return found

    def _was_all(self, view: View) -> bool:
        """Whether a look showed what was there at one moment: servers give lists in pages of a thousand."""
        return self.one_look and len(view.files) < 1_000

    def _get_from(
        self, packs: Sequence[tuple[str, int]], missing: set[bytes], found: dict[bytes, bytes]
    ) -> bool:
        """Move what can be read from `missing` to `found`; whether a pack was gone."""
        gone = False
        for name, size in packs:
            if not missing:
                break
            try:
                places = self._find(name, size, missing)
                if places is None:
                    gone = True
                    continue
                sound = self._read(name, places)
                if len(sound) < len(places):
                    # The pack or the index is damaged; after a scan the index names only what is sound.
                    sound |= self._read(name, self._rebuild(name, size).find(missing - sound.keys()))
            except FileNotFoundError:
                gone = True
                continue
            found.update(sound)
            missing.difference_update(sound)
        return gone

    def _find(self, name: str, size: int, wanted: set[bytes]) -> list[Place] | None:
        """What the index of a pack names of `wanted`; None when the pack is gone."""
        for _ in range(2):
            index = self.index(name, size)
            if index is None:
                break
            try:
                return index.find(wanted)
            except FileNotFoundError:
                self._indexes.pop((name, size), None)  # gone with its pack, or alone: then it is made again
        return None

    def _read(self, name: str, places: list[Place]) -> dict[bytes, bytes]:
        """The blocks at these places that have the digest they should have; near ones are read together."""
        if not places:
            return {}
        places = sorted((place for place in places if place.length <= BLOCK_MAX), key=_offset)
        parts: list[list[Place]] = []
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
        for part, (start, _), data in zip(parts, spans, self.shelf.ranges(name, spans), strict=True):
            for digest, offset, length in part:
                block = data[offset - start : offset - start + length]
                if sha256(block).digest() == digest:
                    sound[digest] = block
        return sound

    def _open(self, packs: Sequence[tuple[str, int]], view: View) -> None:
        """Read the indexes of these packs that are not known yet, all at once."""
        unread = {
            f"{name[:-4]}.idx": (name, size) for name, size in packs if (name, size) not in self._indexes
        }
        here = {index: pack[1] for index, pack in unread.items() if index in view.files}
        for index, opened in open_indexes(self.shelf, here).items() if here else ():
            self._indexes[unread[index]] = opened

    def index(self, name: str, size: int) -> Index | None:
        """The index of a pack, made anew when it is missing; None when the pack is gone."""
        found = self._indexes.get((name, size))
        if found is None:
            beat()
            found = open_index(self.shelf, f"{name[:-4]}.idx", size)
            if found is None:
                try:
                    return self._rebuild(name, size)
                except FileNotFoundError:
                    return None
            self._indexes[name, size] = found
        return found

    def _is_stale(self, name: str, size: int, view: View) -> bool:
        """Whether the index of a pack was found wanting just now, and made again: it was damaged itself, or the pack
        was, and may have been put right since. Looks once at each pack, and again when its file was changed."""
        with contextlib.suppress(FileNotFoundError):
            stamp = view.files[name].stamp
            if self._checked.get((name, size)) == stamp:
                return False
            self._checked[name, size] = stamp
            index = self.index(name, size)
            if index is not None and (index.damaged or not index.intact()):
                self._rebuild(name, size)
                return True
        return False

    def _rebuild(self, name: str, size: int) -> Index:
        """Scan a pack and write its index anew, naming sound blocks only; the others are noted as lost."""
        places: dict[bytes, Place] = {}
        bad: dict[bytes, CID] = {}
        damaged = False
        with self.shelf.file(name, buffered=True) as file:
            try:
                for section in scan(file):
                    if section.sound:
                        places[section.digest] = Place(section.digest, section.offset, len(section.data))
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
        with contextlib.suppress(OSError, ProviderError):  # a place that cannot be written can still be read
            self.shelf.write(f"{name[:-4]}.idx", data, flush=False)
        return index

    def _note_lost(self, name: str, size: int, bad: dict[bytes, CID], sound: Collection[bytes]) -> None:
        """Note what a pack does not hold any more: sections that are `bad`, and what it held by its index so far."""
        stem = name[:64]
        noted = self._lost.of(stem, self.look(recent=True).files)
        before = self._indexes.get((name, size)) or open_index(self.shelf, f"{stem}.idx", size)
        with contextlib.suppress(OSError):
            if before is not None and before.intact():
                held = {place.digest for place in before.places()}
                # A CID that was hit itself names what was never here.
                bad = {digest: bad.get(digest, raw_cid(digest)) for digest in held}
        lost = {**bad, **noted}
        lost = {digest: cid for digest, cid in lost.items() if digest not in sound}
        if lost.keys() == noted.keys():
            return
        if lost:
            _log.warning(
                "%s is damaged: %d of its blocks cannot be read, for instance %s; a device that has them sends them again",
                f"{self.shelf}/{name}", len(lost), next(iter(lost.values())),
            )  # fmt: skip
        self._lost.note(stem, lost.values())

    def forget(self, name: str) -> None:
        """Drop what is remembered of a pack that was just written."""
        for known in (self._indexes, self._checked, self._damaged):
            for key in [key for key in known if key[0] == name]:
                known.pop(key) if isinstance(known, dict) else known.discard(key)

    def compact(self, view: View | None = None) -> None:
        """Merge the smallest packs when there are too many, and clear leftovers away.

        The merged pack is in place before its parts go, and its bytes follow from the set of its blocks alone. So
        two devices that merge the same set write the same file, and no device removes what another relies on.
        """
        view = view or self.look()
        if sum(size < self.grown for size in view.packs.values()) <= self.most:
            return
        self.sweep(view, time.time() - LEFTOVER_SECONDS)
        with contextlib.suppress(FileNotFoundError):  # another device is at it
            self._merge(self._smallest(view.staying))

    def _smallest(self, packs: Mapping[str, int]) -> list[tuple[str, int]]:
        """Those that are merged of these."""
        small = sorted((size, name) for name, size in packs.items() if size < self.grown)
        parts: list[tuple[str, int]] = []
        total = 0
        for size, name in small:
            if (name, size) in self._damaged:
                continue
            if len(small) - len(parts) < self.most // 2 or total + size > self.merge_bytes:
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
                with self.shelf.file(name, buffered=True) as file:
                    for section in scan(file):
                        if not section.sound:
                            raise FormatError(f"pack {name} is damaged")
                        sections[section.digest] = (section.cid, name, section.offset, len(section.data))
            except FormatError:
                self._damaged.add((name, size))  # left as it is: what is sound in it can still be read
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
        """Take packs away whose blocks all stand elsewhere."""
        for name in packs:
            with contextlib.suppress(OSError):  # gone already, or open elsewhere on Windows
                self.shelf.unlink(name)
                self.shelf.unlink(f"{name[:-4]}.idx")

    def place(self, writer: PackWriter) -> str:
        """Put a pack and its index in place, durably. The pack's file name; "" when it holds nothing."""
        writer.flush()
        stem = writer.stem
        if not stem:
            writer.drop()
            return ""
        # The index first: a pack is never seen without one, and an index without a pack is nothing.
        self.shelf.write(f"{stem}.idx", writer.index(), flush=False)
        try:
            writer.place()
        except OSError:
            with contextlib.suppress(OSError):
                self.shelf.unlink(f"{stem}.idx")
            raise
        for ending in (GOING, LOST):
            with contextlib.suppress(OSError):  # somebody wants just this pack again, and it is whole
                self.shelf.unlink(f"{stem}{ending}")
        self.shelf.flush()
        self.forget(f"{stem}.car")
        return f"{stem}.car"

    def write_merged(self, blocks: dict[bytes, tuple[bytes, str, int, int]]) -> tuple[str, int]:
        """One pack of blocks that lie in others, by digest: CID bytes, pack, offset, length. The new pack's name and size.

        Its bytes follow from the set of blocks alone. FileNotFoundError when a pack is gone or not what it was.
        """
        ordered = sorted(blocks)
        writer = PackWriter(self.shelf.new(), decode_cid(blocks[ordered[0]][0]))
        files: dict[str, BinaryIO] = {}
        try:
            for digest in ordered:
                cid, name, offset, length = blocks[digest]
                if name not in files:
                    files[name] = self.shelf.file(name)
                try:
                    writer.add(decode_cid(cid), _read_at(files[name], offset, length))
                except ProviderRefused as error:
                    raise FileNotFoundError(f"pack {name} changed while it was merged") from error
                if writer.due > _SPAN:
                    writer.flush()
            return self.place(writer), writer.size
        except BaseException:
            writer.drop()
            raise
        finally:
            for file in files.values():
                file.close()

    def sweep(self, view: View, oldest: float) -> None:
        """Remove what a crash left behind: indexes and marks whose pack is gone, last changed before `oldest` (seconds, 1970)."""
        self.shelf.sweep(oldest)
        for name, seen in view.files.items():
            ours = (len(name) == 68 and name.endswith(".idx")) or _is_mark(name) or _is_mark(name, LOST)
            if ours and f"{name[:64]}.car" not in view.files and seen.changed < oldest * 1000:
                with contextlib.suppress(OSError):
                    self.shelf.unlink(name)


def _is_pack(name: str) -> bool:
    return len(name) == 68 and name.endswith(".car") and _HEX.issuperset(name[:64])


def _is_mark(name: str, ending: str = GOING) -> bool:
    return len(name) == 64 + len(ending) and name.endswith(ending) and _HEX.issuperset(name[:64])


def _offset(place: Place) -> int:
    return place.offset


def _read_at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    data = file.read(length)
    while len(data) < length:
        more = file.read(length - len(data))
        if not more:
            break
        data += more
    return data
