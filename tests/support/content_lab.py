"""Builds dag-pb blocks that the package never writes, and their CIDs. Contains no tests."""

from __future__ import annotations

from collections.abc import Sequence

from ipfsmem.content.cid import CID, DAG_PB
from ipfsmem.content.dagpb import BlockLink, encode_raw, raw_links


def pb_cid(digest: bytes) -> CID:
    """CIDv1 of a dag-pb block with this SHA-256 digest."""
    return CID(1, DAG_PB, b"\x12\x20" + digest)


def encode_node(links: Sequence[BlockLink], data: bytes | None) -> bytes:
    """The canonical dag-pb block of these links and this data."""
    return encode_raw(raw_links(links), data)
