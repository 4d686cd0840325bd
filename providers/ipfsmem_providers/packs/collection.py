"""Garbage collection of packs: remove blocks that no pin needs, lock-free, sparing what others rely on.

Two steps, a day apart.

1. A pack that is largely unneeded is marked: `packs/<sha256>.going`, containing the time. Before that its needed
   blocks are written to another pack. From then on `has` omits it, so uploading devices resend its blocks; a device
   that saw them as stored just before has a day to pin its root.
2. With the pins of that day, blocks needed after all are written to a new pack, and the marked one is removed: it is
   hidden, the pins are read once more, and it is restored if a new pin needs one of its blocks. So a device that pins
   a root and then checks for its whole tree sees only packs that stay.

A crash leaves a pack too many, never one too few; two concurrent collections do the work twice.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, DAG_PB, IDENTITY, RAW, SHA2_256
from ipfsmem.content.dagpb import decode_node
from ipfsmem.errors import FormatError, ProviderRefused
from ipfsmem_providers.packs.hidden import hidden_file, settled_by
from ipfsmem_providers.packs.index import scan
from ipfsmem_providers.packs.object_store import FileInfo
from ipfsmem_providers.packs.store import GOING, Inventory, Packs

#: A pack is not marked before it is this old, and not removed before its mark is.
DAY_MS: Final = 86_400_000
#: A pack is marked when at least one part in this many of its bytes is not needed.
_WORTH: Final = 4
_BATCH: Final = 2_000
_MARK_MAX: Final = 256


class Roots(NamedTuple):
    """Roots whose trees are kept. The trees of pinned roots must be complete here; those that names point at may be elsewhere."""

    pinned: frozenset[CID]
    named: frozenset[CID]


class _Mark(msgspec.Struct):
    since: int


class Collector(ABC):
    """Marks and removes packs of one location; `now` is in milliseconds since 1970 UTC. Methods block."""

    def __init__(self, packs: Packs, now: int) -> None:
        self._packs = packs
        self._now = now
        #: Digests of the blocks in each pack that is being removed.
        self._leaving: dict[str, set[bytes]] = {}

    def due(self, inventory: Inventory) -> bool:
        """Return whether a pack was marked long enough ago to be removed, or a stopped collection hid one."""
        return bool(self.unsettled(inventory.files)) or bool(self._due(inventory))

    def unsettled(self, files: Mapping[str, FileInfo]) -> set[str]:
        """Return hidden packs and pins of a day ago that no sweep tried to settle."""
        return {
            name
            for name, info in files.items()
            if hidden_file(name)
            and self._now - info.modified >= DAY_MS
            and settled_by(name, files) not in self._packs.passed_over
        }

    def mark(self, roots: Roots) -> int:
        """Mark packs of which a good part is not needed. Returns the bytes that will be free when they are removed."""
        live, inventory, useless = self._useless(roots)
        if not useless:
            return 0
        staying = [item for item in inventory.unmarked.items() if item not in useless]
        rewritten, broken = self._rescue(useless, staying, live)
        marked = [(name, size) for name, size in useless if name not in broken]
        for name, _ in marked:
            mark = msgspec.json.encode(_Mark(self._now))
            self._packs.store.write(f"{name[:64]}{GOING}", mark, flush=False)
        self._packs.store.flush()
        return max(0, sum(size for _, size in marked) - rewritten)

    def unneeded(self, roots: Roots) -> int:
        """Return the bytes of the packs that `mark` would mark. Only reads."""
        return sum(size for _, size in self._useless(roots)[2])

    def _useless(self, roots: Roots) -> tuple[set[bytes], Inventory, list[tuple[str, int]]]:
        """Return the needed digests, the packs, and those of them to be marked."""
        inventory = self._packs.inventory()
        if not roots.pinned:
            return set(), inventory, []  # perhaps a sync program has not brought the pins yet
        live = self._live(roots)
        inventory = self._packs.inventory()
        useless = [item for item in inventory.unmarked.items() if self._is_useless(*item, inventory, live)]
        return live, inventory, useless

    def remove(self, read: Callable[[], Roots]) -> int:
        """Remove packs that were marked a day ago, after saving their blocks that are needed by now. Returns the bytes that are
        free. `read` reads the roots; it is called again before each removal."""
        inventory = self._sweep()  # first: a tree may need a pack that a stopped collection hid
        left = self.unsettled(inventory.files)
        while left and self._packs.passed_over.limit == math.inf:  # a sweep settles a bounded number
            inventory, before = self._sweep(), left
            left = self.unsettled(inventory.files)
            if not left < before:
                break
        due = self._due(inventory)
        if not due:
            return 0
        roots = read()
        if not roots.pinned:
            return 0
        live = self._live(roots)
        inventory = self._packs.inventory()
        sizes = inventory.packs | inventory.unfinished
        leaving = [(name, sizes[name]) for name in due if name in sizes]
        rewritten, broken = self._rescue(leaving, list(inventory.unmarked.items()), live)
        self._leaving = {name: self._digests(name, size) for name, size in leaving if name not in broken}
        freed = 0
        for name in due:
            if name not in broken and self._take_away(name, lambda: self._is_needed(name, roots, read)):  # noqa: B023
                freed += sizes.get(name, 0)
        self._packs.store.flush()
        return max(0, freed - rewritten)

    def _sweep(self) -> Inventory:
        return self._packs.sweep((self._now - DAY_MS) / 1000)

    @abstractmethod
    def _take_away(self, name: str, is_needed: Callable[[], bool]) -> bool:
        """Remove a marked pack, unless it was recently rewritten, or `is_needed` says that a new pin needs
        it; tell whether it was removed."""

    def _due(self, inventory: Inventory) -> list[str]:
        names = []
        for name in sorted(inventory.marked):
            with contextlib.suppress(msgspec.DecodeError):
                data = self._packs.store.read(f"{name[:64]}{GOING}", _MARK_MAX)
                if data is not None and self._now - read_json(data, type=_Mark).since >= DAY_MS:
                    names.append(name)
        return names

    def _live(self, roots: Roots) -> set[bytes]:
        """Return digests of all blocks in the trees of the roots. ProviderRefused when a folder of a tree is
        missing."""
        live: set[bytes] = set()
        # A CID determines its block's codec: calling others' folder a raw block must not hide its contents.
        seen: set[CID] = set()
        # Anybody can leave a record here, of any CID; only blocks with SHA-256 are kept here.
        files = {cid for cid in roots.named if cid.hash_code == SHA2_256 and cid.codec in (DAG_PB, RAW)}
        here = self._packs.get({cid.digest for cid in files})
        level = {*roots.pinned, *(cid for cid in files if cid.digest in here)}
        while level:
            seen.update(level)
            live.update(cid.digest for cid in level)
            nodes = [cid for cid in level if cid.codec == DAG_PB]
            if unknown := next((cid for cid in level if cid.codec not in (DAG_PB, RAW)), None):
                raise _unsure(unknown)
            below: set[CID] = set()
            for start in range(0, len(nodes), _BATCH):
                part = nodes[start : start + _BATCH]
                blocks = self._packs.get({cid.digest for cid in part if cid.hash_code != IDENTITY})
                for cid in part:
                    inline = cid.hash_code == IDENTITY
                    try:
                        links = decode_node(cid.digest if inline else blocks[cid.digest]).links
                    except (KeyError, FormatError):
                        raise _unsure(cid) from None
                    below.update(link.cid for link in links if link.cid not in seen)
            level = below
        return live

    def _is_useless(self, name: str, size: int, inventory: Inventory, live: set[bytes]) -> bool:
        """Return whether a pack is old enough, and enough of it in no tree, to be marked."""
        if self._now - inventory.files[name].modified < DAY_MS:
            return False
        try:
            index = self._packs.index(name, size)
            places = list(index.places()) if index is not None else []
        except FileNotFoundError:
            return False
        dead = sum(place.length for place in places if place.digest not in live)
        total = sum(place.length for place in places)
        return bool(places) and (dead * _WORTH >= total > 0 or all(p.digest not in live for p in places))

    def _rescue(
        self, leaving: list[tuple[str, int]], staying: list[tuple[str, int]], live: set[bytes]
    ) -> tuple[int, set[str]]:
        """Write the needed blocks of packs that leave to new packs, durably. Returns how many bytes that took, and the packs
        that must stay, as a needed block of theirs cannot be read."""
        needed = self._needed(leaving, staying, live)
        broken: set[str] = set()
        new_packs: list[dict[bytes, tuple[bytes, str, int, int]]] = [{}]
        total = 0
        for name, size in leaving:
            mine = needed & self._digests(name, size)
            if not mine:
                continue
            with contextlib.suppress(FormatError), self._packs.store.open_file(name, buffered=True) as file:
                for section in scan(file):
                    if section.sound and section.digest in mine:
                        # A pack must not exceed what the location accepts in one piece.
                        if total + len(section.data) > self._packs.merge_bytes:
                            new_packs.append({})
                            total = 0
                        mine.discard(section.digest)
                        needed.discard(section.digest)
                        new_packs[-1][section.digest] = (section.cid, name, section.offset, len(section.data))
                        total += len(section.data)
            if mine:
                broken.add(name)
        return sum(map(self._write, new_packs)), broken

    def _needed(
        self, leaving: list[tuple[str, int]], staying: list[tuple[str, int]], live: set[bytes]
    ) -> set[bytes]:
        """Return the live blocks of leaving packs that no staying pack can provide; an index alone is no proof."""
        inside = set().union(*(self._digests(*item) for item in leaving)) & live
        needed = sorted(inside)
        for start in range(0, len(needed), _BATCH):
            inside -= self._packs.get_from(staying, needed[start : start + _BATCH]).keys()
        return inside

    def _digests(self, name: str, size: int) -> set[bytes]:
        index = self._packs.index(name, size)
        return {place.digest for place in index.places()} if index is not None else set()

    def _write(self, blocks: dict[bytes, tuple[bytes, str, int, int]]) -> int:
        if not blocks:
            return 0
        return self._packs.write_merged(blocks)[1]

    def _is_needed(self, name: str, before: Roots, read: Callable[[], Roots]) -> bool:
        """Return whether a root that is not in `before` needs a block of a pack that is being removed, or may need it."""
        if name not in self._leaving:
            return True  # it was hidden when packs were examined, and restored or put again since
        roots = read()
        new = Roots(roots.pinned - before.pinned, roots.named - before.named)
        if not new.pinned and not new.named:
            return False
        try:
            live = self._live(new)
        except ProviderRefused:
            return True  # this pack may hold what is missing
        needed = live & self._leaving[name]
        return bool(needed - self._packs.has(needed))


def _unsure(cid: CID) -> ProviderRefused:
    return ProviderRefused(
        f"{cid}, which a pin needs, is missing or cannot be read, so nothing was removed",
        hint="Let the folder's sync program finish, or sync the device whose newest version it is. An older version that is missing there blocks this until it is no longer kept.",
    )
