"""Limits on untrusted content (format section 8). Readers raise LimitError before they decode more."""

from __future__ import annotations

from typing import NamedTuple

#: Maximum bytes of a block, read or written.
BLOCK_MAX = 2 * 1024 * 1024
#: Maximum bytes of a digest inside an identity CID.
IDENTITY_MAX = 64
#: Maximum bytes of a CAR header; enough for about 190 roots.
CAR_HEADER_MAX = 8192
#: Maximum levels of chunk nodes in a file: with a thousand links per node, more than any file needs.
FILE_DEPTH_MAX = 8


class Limits(NamedTuple):
    """Limits of one read: unique blocks, bytes of these, listed names, bytes of one file, folders below the root."""

    blocks: int = 250_000
    total_bytes: int = 512 * 1024 * 1024
    entries: int = 250_000
    file_bytes: int = 512 * 1024 * 1024
    depth: int = 16


#: For the published tree of a vault that this device belongs to.
OWN_LIMITS = Limits()
#: For the tree of an unknown publisher, opened by CID.
STRANGER_LIMITS = Limits(
    blocks=20_000, total_bytes=64 * 1024 * 1024, entries=20_000, file_bytes=64 * 1024 * 1024
)
