"""A device for the crash and race tests: publishes into a folder, or a bucket, as fast as it can and says what was acknowledged.

    python directory_writer.py FOLDER-OR-SPEC DEVICE PUBLISHES MAX_PACKS

Each publish is one tree of a few blocks that follow from (device, number), a pin and a name record. After each a line
`<number>` goes to standard output: from then on nothing of it may ever be lost.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from datetime import UTC, datetime

from ipfsmem_providers.bucket.layout import BucketPacks
from ipfsmem_providers.packs.store import Packs

from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.provider.contract import open_provider
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519

SHARED_SEED = b"\x0c" * 32
SHARED_NAME = ipns_name(Signer25519(SHARED_SEED).public)


def tree(device: str, number: int) -> list[tuple[CID, bytes]]:
    """The blocks of one publish."""
    out = []
    for part in range(1 + number % 5):
        data = f"{device} {number} {part} ".encode() * (1 + (number * 7 + part * 131) % 900)
        out.append((raw_cid(hashlib.sha256(data).digest()), data))
    return out


def record(sequence: int) -> bytes:
    """A record of the name that all devices move."""
    return ipns_record.make_record(SHARED_SEED, "/ipfs/bafkqaaa", sequence, datetime(2036, 1, 1, tzinfo=UTC))


async def main(folder: str, device: str, publishes: int) -> None:
    """Publish, and say so."""
    provider = open_provider(folder)
    for number in range(publishes):
        blocks = tree(device, number)
        root = blocks[0][0]
        await provider.put_car(root, blocks, name=device)
        await provider.pin(root, device)
        await provider.put_name(SHARED_NAME, record(number))
        print(number, flush=True)


if __name__ == "__main__":
    Packs.max_packs = BucketPacks.max_packs = int(sys.argv[4])
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
