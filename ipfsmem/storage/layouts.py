"""What a published root holds in each publishing mode (format section 6): the sealed layout and the plain one.

A layout puts the blocks of a root among the replica's blocks and answers its CID. It decides no content: commit and
ring come in as they are. Must run inside a transaction, right after a checkpoint with folders.
"""

from __future__ import annotations

from ipfsmem.content.cid import CID, decode_cid
from ipfsmem.content.dagpb import RawLink
from ipfsmem.replica.folders import add_file, add_folder, objects_folder, state_folder
from ipfsmem.replica.replica import Replica


class SealedLayout:
    """`keyring.json`, `head.ipm`, `s/`, `o/`: nothing that can be read without a key but the ring's public part."""

    def build(self, replica: Replica, head: bytes, keyring: bytes) -> CID:
        """The root for a sealed commit and the ring beside it."""
        db = replica.db
        links: list[RawLink] = [
            (b"keyring.json", *add_file(db, keyring)),
            (b"head.ipm", *add_file(db, head)),
            (b"s", *state_folder(db, replica.codec.extension, ())),
        ]
        objects = objects_folder(db)
        if objects:
            links.append((b"o", *objects))
        return decode_cid(add_folder(db, links)[0])
