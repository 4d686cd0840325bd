"""Stores packs, pins and name records in a git branch (packs/provider.py).

- BranchChanges are gathered (`BranchChanges`), and become one commit.
- Indexes are not in the branch: every device has the packs, and makes them itself.
- git keeps no times. A pack is as old as its index on this device, every other file is new: collection waits too
  long rather than too short.
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, Final

from ipfsmem.errors import ProviderRefused
from ipfsmem_providers.directory.files import FolderObjectStore
from ipfsmem_providers.git.errors import OTHER_HINT
from ipfsmem_providers.git.program import LocalFailure
from ipfsmem_providers.git.repository import FILE_MAX, STORE_NAMES, BranchTree, CacheRepository, TreeEntry
from ipfsmem_providers.packs.collection import Collector
from ipfsmem_providers.packs.lost_blocks import LOST
from ipfsmem_providers.packs.object_store import CollectedFile, FileInfo, Head, PassedOver
from ipfsmem_providers.packs.store import GOING, Packs

INDEX: Final = ".idx"
#: A larger file is written to the cache repository immediately instead of being held in memory until the commit.
_SMALL: Final = 256 * 1024
#: Maximum bytes of files that are cached in memory, and that are read in one batch.
_KEPT: Final = 64 * 1024 * 1024
#: Maximum bytes of lists and records that one call reads.
_HEADS_MAX: Final = 256 * 1024 * 1024


class BranchChanges:
    """The changes of one commit: paths below the root."""

    def __init__(self) -> None:
        self.puts: dict[str, bytes | TreeEntry] = {}
        self.gone: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.puts or self.gone)

    def removals(self, tree: BranchTree) -> list[str]:
        """Return the paths to remove from a tree, including the marks and damage notes of packs that are put."""
        gone = set(self.gone)
        for path in self.puts:
            if path.startswith("packs/") and path.endswith(".car"):
                gone |= {f"{path[:-4]}{ending}" for ending in (GOING, LOST)}
        there = {f"{kind}/{name}" for kind, files in tree.stores.items() for name in files}
        return sorted((gone & there) - self.puts.keys())


#: The state of a pack: the object ids of its file and of the note of its damaged blocks ("" for none).
PackState = tuple[str, str]


def pack_states(tree: BranchTree) -> dict[str, PackState]:
    """Return the states of the packs of a tree by name. A changed state or a missing pack may mean lost blocks."""
    packs = tree.stores["packs"]
    return {
        name: (entry.oid, lost.oid if (lost := packs.get(f"{name[:-4]}{LOST}")) is not None else "")
        for name, entry in packs.items()
        if name.endswith(".car")
    }


class BranchView:
    """The branch within one step: a tree, and the uncommitted changes."""

    def __init__(self, tree: BranchTree, changes: BranchChanges) -> None:
        self.tree, self.changes = tree, changes

    def get(self, path: str) -> bytes | TreeEntry | None:
        if path in self.changes.puts:
            return self.changes.puts[path]
        kind, _, name = path.partition("/")
        return None if path in self.changes.gone else self.tree.stores[kind].get(name)

    def entries(self, kind: str) -> dict[str, bytes | TreeEntry]:
        files: dict[str, bytes | TreeEntry] = dict(self.tree.stores[kind])
        for path in self.changes.gone:
            if path.startswith(f"{kind}/"):
                files.pop(path[len(kind) + 1 :], None)
        for path, put in self.changes.puts.items():
            if path.startswith(f"{kind}/"):
                files[path[len(kind) + 1 :]] = put
        return files


class BlobReader:
    """Reads files of the branch by object id, with a cache of the files read last."""

    def __init__(self, repository: CacheRepository) -> None:
        self._repository = repository
        self._kept: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def read(self, entries: Sequence[TreeEntry]) -> dict[str, bytes]:
        """Return the bytes by object id. Raises LocalFailure if an object is not on this device: a listed file is never treated as
        absent."""
        with self._lock:
            blobs = {entry.oid: self._kept[entry.oid] for entry in entries if entry.oid in self._kept}
        part: list[TreeEntry] = []
        for entry in [*entries, None]:
            if part and (entry is None or sum(one.size for one in part) + entry.size > _KEPT):
                oids = [one.oid for one in part]
                read = self._repository.blobs(oids, sum(one.size for one in part))
                blobs |= {oid: data for oid, data in zip(oids, read, strict=True) if data is not None}
                part = []
            if entry is not None and entry.oid not in blobs:
                part.append(entry)
        if gone := [entry.oid for entry in entries if entry.oid not in blobs]:
            raise LocalFailure(f"missing blob {gone[0]}")
        self._keep(blobs)
        return blobs

    def _keep(self, blobs: Mapping[str, bytes]) -> None:
        with self._lock:
            self._kept |= blobs
            total = sum(map(len, self._kept.values()))
            while total > _KEPT and self._kept:
                total -= len(self._kept.pop(next(iter(self._kept))))


class GitObjectStore:
    """`packs`, `pins`, `names` or `small` in a branch, as an object store (packs/object_store.py)."""

    cheap_read_bytes = 1 << 20

    def __init__(
        self,
        kind: str,
        view: Callable[[], BranchView],
        repository: CacheRepository,
        blobs: BlobReader,
        where: str,
    ) -> None:
        """`view` returns the branch within the current step."""
        self._kind, self._view, self._repository, self._blobs, self._where = (
            kind, view, repository, blobs, where,
        )  # fmt: skip
        self._local = FolderObjectStore(repository.folder, "indexes")

    def __str__(self) -> str:
        return f"{self._where}/{self._kind}"

    def files(self, prefix: str = "") -> dict[str, FileInfo]:
        """Return regular files, and the indexes on this device."""
        entries = self._view().entries(self._kind)
        now = time.time_ns() // 1_000_000
        indexes = self._indexes(entries)
        infos = {}
        for name, entry in entries.items():
            size = len(entry) if isinstance(entry, bytes) else entry.size
            if (
                name.startswith(prefix)
                and 0 <= size <= FILE_MAX
                and not name.endswith(INDEX)
                and _is_ours(name)
            ):
                index = indexes.get(f"{name[:-4]}{INDEX}") if name.endswith(".car") else None
                version = hash(entry) if isinstance(entry, bytes) else entry.oid
                infos[name] = FileInfo(size, index.modified if index is not None else now, version)
        return infos | {name: info for name, info in indexes.items() if name.startswith(prefix)}

    def refresh(self) -> bool:
        """Do nothing: a step works on one commit."""
        return False

    def not_files(self, prefix: str = "") -> frozenset[str]:
        """Return links, folders and submodules, and files that are too large."""
        return frozenset(
            name
            for name, entry in self._view().entries(self._kind).items()
            if name.startswith(prefix)
            and _is_ours(name)
            and isinstance(entry, TreeEntry)
            and not 0 <= entry.size <= FILE_MAX
        )

    def containing(self, part: str) -> frozenset[str]:
        """Return nothing: no sync program works in a branch."""
        return frozenset()

    def read(self, name: str, limit: int) -> bytes | None:
        """Return a whole small file."""
        head = self.heads([name], limit + 1).get(name)
        return head.data if head is not None and head.size <= limit else None

    def heads(self, names: Sequence[str], length: int) -> dict[str, Head]:
        """Return the files that exist, read in one batch; of a file with more than `length` bytes only the size. Raises
        ProviderRefused if they are too many to hold in memory."""
        local = [name for name in names if name.endswith(INDEX)]
        heads_by_name = self._local.heads(local, length) if local else {}
        view = self._view()
        sizes = {
            name: len(one) if isinstance(one, bytes) else one.size
            for name in names
            if not name.endswith(INDEX) and (one := view.get(f"{self._kind}/{name}")) is not None
        }
        small = [name for name, size in sizes.items() if 0 <= size <= length]
        if (total := sum(sizes[name] for name in small)) > _HEADS_MAX:
            raise ProviderRefused(
                f"{self} holds {total:,} bytes of lists and records; at most {_HEADS_MAX:,} are read",
                hint=OTHER_HINT,
            )
        heads_by_name |= {name: Head(b"", size) for name, size in sizes.items() if length < size <= FILE_MAX}
        return heads_by_name | {name: Head(data, len(data)) for name, data in self._contents(small).items()}

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """Yield parts of a file, cut from the whole of it."""
        if name.endswith(INDEX):
            yield from self._local.ranges(name, spans)
            return
        data = self._whole(name)
        for start, end in spans:
            yield data[start:end]

    def open_file(self, name: str, *, buffered: bool = False) -> BinaryIO:
        """Return a whole file in memory: packs are small here."""
        if name.endswith(INDEX):
            return self._local.open_file(name, buffered=buffered)
        return io.BytesIO(self._whole(name))

    def write(self, name: str, data: bytes, *, flush: bool = True) -> None:
        """Add a file to the step's changes; an index stays on this device."""
        if name.endswith(INDEX):
            self._local.write(name, data, flush=False)
            return
        changes = self._view().changes
        path = f"{self._kind}/{name}"
        if len(data) > _SMALL:
            changes.puts[path] = TreeEntry("100644", self._repository.store(data), len(data))
        else:
            changes.puts[path] = data
        changes.gone.discard(path)

    def new_file(self) -> CollectedFile:
        """Collect a file in memory."""
        return CollectedFile(self)

    def unlink(self, name: str) -> None:
        """Remove a file with the step's commit."""
        if name.endswith(INDEX):
            self._local.unlink(name)
            return
        view, path = self._view(), f"{self._kind}/{name}"
        if view.get(path) is None:
            raise FileNotFoundError(path)
        view.changes.puts.pop(path, None)
        if name in view.tree.stores[self._kind]:
            view.changes.gone.add(path)

    def set_aside(self, name: str) -> None:
        """Rename a link, folder or submodule; it stays in the branch."""
        view, path = self._view(), f"{self._kind}/{name}"
        entry = view.get(path)
        if not isinstance(entry, TreeEntry):
            raise FileNotFoundError(path)
        view.changes.puts[f"{self._kind}/aside-{name}"] = entry
        view.changes.gone.add(path)

    def flush(self) -> None:
        """Do nothing: the step's commit is durable."""

    def sweep(self, oldest: float, passed_over: PassedOver | None = None) -> None:
        """Do nothing: an interrupted step leaves nothing in the branch."""

    def held_open(self) -> AbstractContextManager[None]:
        """Do nothing: a step works on one commit."""
        return nullcontext()

    def _indexes(self, entries: Mapping[str, object]) -> dict[str, FileInfo]:
        """Return the indexes of existing packs, and remove the others."""
        if self._kind != "packs":
            return {}
        infos = {}
        for name, info in self._local.files().items():
            if f"{name[:-4]}.car" in entries:
                infos[name] = info
            elif name.endswith(INDEX) and info.modified < (time.time() - 86_400) * 1000:
                with contextlib.suppress(OSError):
                    self._local.unlink(name)
        return infos

    def _whole(self, name: str) -> bytes:
        data = self._contents([name]).get(name)
        if data is None:
            raise FileNotFoundError(f"{self._kind}/{name}")
        return data

    def _contents(self, names: Sequence[str]) -> dict[str, bytes]:
        view = self._view()
        entries_by_name = {name: view.get(f"{self._kind}/{name}") for name in names}
        entries = {
            name: one
            for name, one in entries_by_name.items()
            if isinstance(one, TreeEntry) and 0 <= one.size <= FILE_MAX
        }
        read = self._blobs.read([*entries.values()]) if entries else {}
        contents = {name: read[entry.oid] for name, entry in entries.items() if entry.oid in read}
        return contents | {name: one for name, one in entries_by_name.items() if isinstance(one, bytes)}


def _is_ours(name: str) -> bool:
    """Return whether a name has the form of our files: other names are never listed, stored or sent."""
    return name.isascii() and name.isprintable()


class GitPacks(Packs):
    """The packs of a branch. Merging sends them again, so many small ones are kept."""

    max_packs = 256
    merge_bytes = 16 * 1024 * 1024
    large_bytes = 4 * 1024 * 1024
    consistent_listing = True


class GitCollector(Collector):
    """Marks and removes packs of a branch. A collection is one commit on the commit that it read; after a lost race it is
    repeated."""

    def _take_away(self, name: str, is_needed: Callable[[], bool]) -> bool:
        """Remove a marked pack, unless a new pin needs one of its blocks; then it stays without its mark."""
        is_due = not is_needed()
        for ending in (".car", GOING, LOST, INDEX) if is_due else (GOING,):
            with contextlib.suppress(OSError):
                self._packs.store.unlink(f"{name[:64]}{ending}")
        self._packs.forget(name)
        return is_due


def object_stores(
    view: Callable[[], BranchView], repository: CacheRepository, where: str
) -> tuple[GitObjectStore, ...]:
    """Return the object stores, in the order of STORE_NAMES."""
    blobs = BlobReader(repository)
    return tuple(GitObjectStore(kind, view, repository, blobs, where) for kind in STORE_NAMES)


def default_cache(home: Path | None) -> Path:
    """Return the folder of cache repositories: in the home folder of this device's vaults, else in the user's cache."""
    return home / ".cache" / "git" if home is not None else Path.home() / ".cache" / "ipfsmem" / "git"
