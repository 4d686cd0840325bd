"""How much of somebody else's content we are willing to look at (format section 8).

Numbers only. Reading stops with LimitError before more than this is decoded; nothing here reads.
"""

from __future__ import annotations

from typing import NamedTuple

#: Longest block that is read or written, in bytes.
BLOCK_MAX = 2 * 1024 * 1024
#: Longest digest inside an identity CID, in bytes.
IDENTITY_MAX = 64
#: Longest header of a CAR file, in bytes; enough for about 190 roots.
CAR_HEADER_MAX = 8192
#: Levels of chunk nodes below one file; a thousand links each, so far more than any file needs.
FILE_DEPTH_MAX = 8


class Limits(NamedTuple):
    """What one read may cost: unique blocks, their bytes, names listed, bytes of one file, folders below the root."""

    blocks: int = 250_000
    total_bytes: int = 512 * 1024 * 1024
    entries: int = 250_000
    file_bytes: int = 512 * 1024 * 1024
    depth: int = 16


#: A bundle of a vault that this device belongs to.
OWN_LIMITS = Limits()
#: A bundle of a stranger, opened by CID.
STRANGER_LIMITS = Limits(
    blocks=20_000, total_bytes=64 * 1024 * 1024, entries=20_000, file_bytes=64 * 1024 * 1024
)
