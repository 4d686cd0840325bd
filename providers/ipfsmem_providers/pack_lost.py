"""Blocks of a folder that were found damaged: `packs/<sha256>.lost` names those that pack does not hold any more.

A line is a CID. Whoever meets a damaged block notes it here, so that all devices stop counting on it, and one that has it
sends it again, in a pack of its own: the damaged pack is read by others at this moment and is never mended in place.
A note is a hint like an index; it decides only what is said to be stored, never what is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final

from ipfsmem.content.cid import CID, SHA2_256, parse_cid
from ipfsmem.device.shared_folder import Folder
from ipfsmem.errors import FormatError

LOST: Final = ".lost"
#: More blocks of one pack than this are not noted: the pack is gone for good, and a note is read at every publish.
MOST: Final = 50_000
_FILE_MAX: Final = MOST * 128


class Lost:
    """The notes of one folder. Methods block; what cannot be read is no note, what cannot be written is let be."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._read: dict[str, tuple[tuple[int, int, int], dict[bytes, CID]]] = {}

    def of(self, stem: str) -> dict[bytes, CID]:
        """What a pack lost, by digest. Looks at the file's times only when it was read before."""
        name = f"{stem}{LOST}"
        try:
            status = self._folder.lstat(name)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = self._read.get(stem)
            if known is None or known[0] != stamp:
                known = (stamp, _parse(self._folder.read(name, _FILE_MAX) or b""))
                self._read[stem] = known
        except OSError:
            self._read.pop(stem, None)
            return {}
        return known[1]

    def note(self, stem: str, cids: Iterable[CID]) -> None:
        """Write down what a pack lost; nothing: the note goes."""
        lines = sorted(map(str, cids))[:MOST]
        with contextlib.suppress(OSError):  # a folder that cannot be written can still be read
            if lines:
                self._folder.write(f"{stem}{LOST}", "".join(f"{line}\n" for line in lines).encode())
            else:
                self._folder.unlink(f"{stem}{LOST}")


def _parse(data: bytes) -> dict[bytes, CID]:
    found = {}
    for line in data.decode("ascii", "replace").splitlines():
        with contextlib.suppress(FormatError):
            cid = parse_cid(line)
            if cid.hash_code == SHA2_256:
                found[cid.digest] = cid
    return found
