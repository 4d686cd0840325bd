"""IPNS records in the upload list of a space, so that a wallet alone finds its vault there.

A record is an upload whose root is the record's own CID, with two shards that are CARs inside their own CIDs:
a tag of the name, and the record. It needs no blob, no PUT and no index. Names are read from the list, which
has all names of a sync at once. A greater record is listed before lesser ones are removed, so there is always
one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping

from ipfsmem.content.car import car_bytes, read_car
from ipfsmem.content.cid import CAR, CID, IDENTITY, raw_cid, varint
from ipfsmem.errors import FormatError, SealError
from ipfsmem.published import ipns_record
from ipfsmem_providers.name_records import canonical_name, checked_record
from ipfsmem_providers.web3storage.uploads import Upload, Uploads, tag_of

#: Begins the text of a name's tag, so that it differs from that of a pin name.
_KIND = "ipns "


class SpaceNames:
    """The names of one space."""

    def __init__(self, uploads: Uploads, *, prune: bool) -> None:
        """`prune`: whether lesser records may be removed from the list."""
        self._uploads = uploads
        self._prune = prune

    async def put(self, name: str, record: bytes) -> None:
        """List a record unless a greater one is there, and remove lesser ones. ProviderRefused when the name did not sign it."""
        name, offered = checked_record(name, record)
        # A recent list suffices: a greater record listed since stays next to this one, and wins.
        listed, _ = await self._uploads.recent(("put", name, record), own=True)
        records = self._records(name, listed)
        self._uploads.note_question(name)
        best = ipns_record.newest_record(records.values())
        if best is None or ipns_record.record_order(best) < ipns_record.record_order(offered):
            root = raw_cid(hashlib.sha256(record).digest())
            await self._uploads.add([(root, [tag_of(_KIND + name), _inline(root, record)])])
            best = offered
        lesser = [
            root
            for root, current in records.items()
            if ipns_record.record_order(current) < ipns_record.record_order(best)
        ]
        if lesser and self._prune:
            await self._uploads.remove(lesser)

    async def get(self, name: str) -> bytes | None:
        """Return the greatest record of a name that is listed."""
        name = canonical_name(name)
        listed, just_now = await self._uploads.recent(name, own=True)
        best = ipns_record.newest_record(self._records(name, listed).values())
        if best is None and not just_now:
            best = ipns_record.newest_record(self._records(name, await self._uploads.reread_once()).values())
        return best.encoded if best else None

    def _records(self, name: str, listed: Mapping[CID, Upload]) -> dict[CID, ipns_record.IpnsRecord]:
        """Return valid records of a name, by the roots under which they are listed."""
        tag = tag_of(_KIND + name)
        records = {}
        for root, upload in listed.items():
            if tag in upload.tags:
                with contextlib.suppress(FormatError, SealError):
                    records[root] = ipns_record.verify_record(name, _record(upload))
        return records


def _inline(root: CID, record: bytes) -> CID:
    car = car_bytes([root], [(root, record)])
    return CID(1, CAR, bytes((IDENTITY,)) + varint(len(car)) + car)


def _record(upload: Upload) -> bytes:
    for link in upload.inline:
        for cid, data in read_car(link.digest):
            if cid == upload.root:
                return data
    raise FormatError("no record in it")
