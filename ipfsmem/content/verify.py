"""Check untrusted blocks against the CIDs by which they were requested."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ipfsmem.content.cid import IDENTITY
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.errors import BlockError, LimitError

if TYPE_CHECKING:
    from ipfsmem.content.cid import CID


def verify_block(cid: CID, data: bytes) -> None:
    """Raise BlockError unless `data` matches `cid`, LimitError if it exceeds the block limit."""
    multihash = cid.multihash
    if len(data) > BLOCK_MAX:
        raise LimitError(f"block {cid} has {len(data)} bytes, {BLOCK_MAX} allowed")
    if multihash[:2] == b"\x12\x20":
        if sha256(data).digest() != multihash[2:]:
            raise BlockError(f"block {cid} does not match its CID")
    elif cid.hash_code == IDENTITY:
        if cid.digest != data:
            raise BlockError(f"block {cid} does not match its CID")
    else:
        raise BlockError(f"block {cid} cannot be checked: hash function {cid.hash_code:#x} is not known")
