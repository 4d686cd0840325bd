"""Notes of damaged blocks: `packs/<sha256>.lost` lists the CIDs that a pack has lost, one per line.

A device that finds a damaged block notes it, so that no device relies on it and one that has the block
resends it in another pack: the damaged pack is never changed, since others may be reading it. A note is a
hint like an index: it affects what `has` returns, never what is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from ipfsmem.content.cid import CID, SHA2_256, parse_cid
from ipfsmem.errors import FormatError, ProviderError
from ipfsmem_providers.packs.object_store import FileInfo, ObjectStore

LOST: Final = ".lost"
#: Maximum number of noted blocks per pack: a note is read at every publish.
MOST: Final = 50_000
_FILE_MAX: Final = MOST * 128


class LostBlocks:
    """The notes of one location. Methods block. Unreadable notes are ignored, unwritable ones left out."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._read: dict[str, tuple[Hashable, dict[bytes, CID]]] = {}

    def of(self, stem: str, files: Mapping[str, FileInfo]) -> dict[bytes, CID]:
        """Return the blocks that a pack lost, by digest. `files` is a listing; a note is read again when its
        version changed."""
        name = f"{stem}{LOST}"
        info = files.get(name)
        if info is None:
            self._read.pop(stem, None)
            return {}
        entry = self._read.get(stem)
        if entry is None or entry[0] != info.version:
            try:
                entry = (info.version, _parse(self._store.read(name, _FILE_MAX) or b""))
            except OSError:
                return {}
            self._read[stem] = entry
        return entry[1]

    def note(self, stem: str, cids: Iterable[CID]) -> None:
        """Write down which blocks a pack lost; an empty list removes the note."""
        lines = sorted(map(str, cids))[:MOST]
        with contextlib.suppress(OSError, ProviderError):  # a read-only location can still be read
            if lines:
                self._store.write(f"{stem}{LOST}", "".join(f"{line}\n" for line in lines).encode())
            else:
                self._store.unlink(f"{stem}{LOST}")


def _parse(data: bytes) -> dict[bytes, CID]:
    cids = {}
    for line in data.decode("ascii", "replace").splitlines():
        with contextlib.suppress(FormatError):
            cid = parse_cid(line)
            if cid.hash_code == SHA2_256:
                cids[cid.digest] = cid
    return cids
