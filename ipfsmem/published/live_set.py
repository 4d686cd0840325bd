"""Determine the live set: the blocks that a restore of the newest root reads, and the rings of anchors (format
section 7).

Structure (ring, head, state nodes, folders) leads to the rest; objects are texts and segments. Only local trees are
walked.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipfsmem.content.cid import CID, DAG_PB
from ipfsmem.content.dagpb import decode_node
from ipfsmem.device.database import Database

_TOP, _STRUCTURE, _OBJECTS, _PLAIN, _INNER = range(5)
#: Targets of a name: at the top, in the plain folder, and next to the plain commit.
_BELOW = {
    _TOP: {"o": _OBJECTS, "memory": _PLAIN},
    _PLAIN: {".ipfsmem": _INNER},
    _INNER: {"o": _OBJECTS},
}
_ELSE = {_TOP: _STRUCTURE, _STRUCTURE: _STRUCTURE, _OBJECTS: _OBJECTS, _PLAIN: _PLAIN, _INNER: _STRUCTURE}


class LiveSet(msgspec.Struct, frozen=True):
    """The blocks of one root and its rings, each once.

    `unknown`: folders that are not local; both lists lack what is below them.
    """

    structure: list[CID]
    objects: list[CID]
    unknown: list[CID]

    @property
    def total(self) -> int:
        """Return the number of live blocks."""
        return len(self.structure) + len(self.objects)


def live_set(db: Database, root: CID, rings: Iterable[CID] = ()) -> LiveSet:
    """Walk a published root and the roots of rings, as far as they are local."""
    structure: dict[CID, None] = {}
    objects: dict[CID, None] = {}
    unknown: list[CID] = []
    stack = [(ring, _STRUCTURE) for ring in rings]
    stack.append((root, _TOP))
    while stack:
        cid, region = stack.pop()
        if cid in structure or cid in objects:
            continue
        if cid.codec != DAG_PB:
            (objects if region in (_OBJECTS, _PLAIN) else structure)[cid] = None
            continue
        structure[cid] = None
        block = db.block(cid.digest)
        if block is None:
            unknown.append(cid)
            continue
        names = _BELOW.get(region, {})
        for link in decode_node(block).links:
            # A sharded folder prefixes names with two digits of the slot.
            below = names.get(link.name) or names.get(link.name[2:]) if names else None
            stack.append((link.cid, _ELSE[region] if below is None else below))
    return LiveSet(list(structure), [cid for cid in objects if cid not in structure], unknown)


def tree_bytes(db: Database, root: CID) -> int:
    """Return the bytes of all blocks under a root, by its links; 0 when it is not local."""
    block = db.block(root.digest)
    return len(block) + sum(link.tsize for link in decode_node(block).links) if block is not None else 0
