"""Blocks that were found damaged where packs lie: `packs/<sha256>.lost` names those that pack does not hold any more.

A line is a CID. Whoever meets a damaged block notes it here, so that all devices stop counting on it, and one that has it
sends it again, in a pack of its own: the damaged pack is read by others at this moment and is never mended in place.
A note is a hint like an index; it decides only what is said to be stored, never what is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from ipfsmem.content.cid import CID, SHA2_256, parse_cid
from ipfsmem.errors import FormatError, ProviderError
from ipfsmem_providers.packs.shelf import Seen, Shelf

LOST: Final = ".lost"
#: More blocks of one pack than this are not noted: the pack is gone for good, and a note is read at every publish.
MOST: Final = 50_000
_FILE_MAX: Final = MOST * 128


class Lost:
    """The notes of one place. Methods block; what cannot be read is no note, what cannot be written is let be."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._read: dict[str, tuple[Hashable, dict[bytes, CID]]] = {}

    def of(self, stem: str, files: Mapping[str, Seen]) -> dict[bytes, CID]:
        """What a pack lost, by digest. `files` is what a look shows; a note is read again when it changed."""
        name = f"{stem}{LOST}"
        seen = files.get(name)
        if seen is None:
            self._read.pop(stem, None)
            return {}
        known = self._read.get(stem)
        if known is None or known[0] != seen.stamp:
            try:
                known = (seen.stamp, _parse(self._shelf.read(name, _FILE_MAX) or b""))
            except OSError:
                return {}
            self._read[stem] = known
        return known[1]

    def note(self, stem: str, cids: Iterable[CID]) -> None:
        """Write down what a pack lost; nothing: the note goes."""
        lines = sorted(map(str, cids))[:MOST]
        with contextlib.suppress(OSError, ProviderError):  # what cannot be written can still be read
            if lines:
                self._shelf.write(f"{stem}{LOST}", "".join(f"{line}\n" for line in lines).encode())
            else:
                self._shelf.unlink(f"{stem}{LOST}")


def _parse(data: bytes) -> dict[bytes, CID]:
    found = {}
    for line in data.decode("ascii", "replace").splitlines():
        with contextlib.suppress(FormatError):
            cid = parse_cid(line)
            if cid.hash_code == SHA2_256:
                found[cid.digest] = cid
    return found
