"""The upload list of a space: roots, the shards that each brought along, and the names they stand under.

A w3up service knows no names. A name is one more shard in the list of an upload: a CAR that is its own CID (identity
hash, 59 bytes or fewer) and whose only root is a tag of the name. It takes no room, needs no request, and no reader of
the upload minds it. An upload whose root is DAG-CBOR is the index of shards (w3up_shards.py), kept in the list so that
a new device finds it. This module reads and changes the list; blobs are not its business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from ipfsmem.content.car import header
from ipfsmem.content.cid import CID, IDENTITY, RAW
from ipfsmem.errors import ProviderRefused
from ipfsmem_providers.ucan import CAR_CODEC, DAG_CBOR
from ipfsmem_providers.w3up_rpc import Service

_TAG: Final = b"ipfsmem:"
#: A tag is no longer than this.
_TAG_MAX: Final = 64
_PAGE: Final = 1000
#: Uploads of one space that are looked at.
_MOST: Final = 100_000
_SHA256: Final = b"\x12\x20"


class Upload(msgspec.Struct, frozen=True):
    """One entry: `shards` are digests of CARs, `tags` CIDs that stand for names, `created` milliseconds.

    `inline` are CARs inside their CIDs that are more than a tag (w3up_names.py).
    """

    root: CID
    shards: frozenset[bytes]
    tags: frozenset[CID]
    inline: frozenset[CID]
    created: int
    changed: str

    @property
    def is_pin(self) -> bool:
        """Whether it is a tree that stands under a name."""
        return bool(self.tags) and not self.inline

    @property
    def is_index(self) -> bool:
        """Whether it says what is in shards. Somebody else's may look like it; it is checked when read."""
        return self.root.codec == DAG_CBOR and len(self.shards) == 1 and not self.tags


def tag_of(name: str) -> CID:
    """The shard that stands for a pin name."""
    mark = _TAG + hashlib.sha256(name.encode()).digest()[:16]
    car = header([CID(1, RAW, bytes((IDENTITY, len(mark))) + mark)])
    return CID(1, CAR_CODEC, bytes((IDENTITY, len(car))) + car)


class Uploads:
    """The list of one space, read anew by `refresh`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.known: dict[CID, Upload] = {}

    async def refresh(self) -> dict[CID, Upload]:
        """Read the whole list: a request for each thousand uploads, and more where shards are listed apart."""
        rows: list[Mapping[str, Any]] = []
        cursor = None
        while True:
            details = {"size": _PAGE, **({"cursor": cursor} if cursor else {})}
            (answer,) = await self._service.invoke([("upload/list", details)], what="list uploads")
            page = answer.receipt.ok if isinstance(answer.receipt.ok, dict) else {}
            results = [row for row in page.get("results") or () if isinstance(row, dict)]
            rows += results
            before, cursor = cursor, page.get("cursor")
            if not results or not isinstance(cursor, str) or cursor == before:
                break
            if len(rows) > _MOST:
                raise ProviderRefused(f"the space {self._service.space} lists more than {_MOST} uploads")
        rows = [row for row in rows if isinstance(row.get("root"), CID)]
        apart = [row for row in rows if "shards" not in row and not self._same(row)]
        shards = await self._shards_apart([row["root"] for row in apart])
        fresh: dict[CID, Upload] = {}
        for row in rows:
            root = row["root"]
            links = row.get("shards", shards.get(root))
            fresh[root] = self.known[root] if links is None else _upload(row, links)
        self.known = fresh
        return fresh

    async def one(self, root: CID) -> Upload | None:
        """One entry, without reading the list where the service can do that."""
        allow = {"gone", "HandlerNotFound"}
        (answer,) = await self._service.invoke(
            [("upload/get", {"root": root})], what="look up a root", allow=allow
        )
        row = answer.receipt.ok
        if not isinstance(row, dict) or row.get("root") != root or "shards" not in row:
            return (await self.refresh()).get(root)
        self.known[root] = _upload(row, row["shards"])
        return self.known[root]

    async def add(self, entries: Sequence[tuple[CID, Iterable[CID]]]) -> None:
        """Put roots with shards on the list, in one request; what a root has already stays."""
        calls = [("upload/add", {"root": root, "shards": list(shards)}) for root, shards in entries]
        await self._service.invoke(calls, what="list a root")

    async def remove(self, roots: Sequence[CID]) -> None:
        """Take roots off the list; not there any more is success."""
        await self._service.invoke(
            [("upload/remove", {"root": root}) for root in roots], what="unlist a root", allow={"gone"}
        )
        for root in roots:
            self.known.pop(root, None)

    def _same(self, row: Mapping[str, Any]) -> bool:
        known = self.known.get(row["root"])
        return known is not None and known.changed == _changed(row)

    async def _shards_apart(self, roots: Sequence[CID]) -> dict[CID, list[CID]]:
        """Shards of uploads on services that list them by themselves."""
        found: dict[CID, list[CID]] = {root: [] for root in roots}
        left: dict[CID, str | None] = dict.fromkeys(roots)
        while left:
            calls = [
                ("upload/shard/list", {"root": root, "size": _PAGE, **({"cursor": cursor} if cursor else {})})
                for root, cursor in left.items()
            ]
            answers = await self._service.invoke(calls, what="list shards", allow={"gone"})
            following: dict[CID, str | None] = {}
            for (root, cursor), answer in zip(left.items(), answers, strict=True):
                page = answer.receipt.ok if isinstance(answer.receipt.ok, dict) else {}
                links = [link for link in page.get("results") or () if isinstance(link, CID)]
                found[root] += links
                after = page.get("cursor")
                if links and isinstance(after, str) and after != cursor and len(found[root]) < _MOST:
                    following[root] = after
            left = following
        return found


def _upload(row: Mapping[str, Any], links: Any) -> Upload:
    cids = [link for link in links or () if isinstance(link, CID)] if isinstance(links, list) else []
    return Upload(
        row["root"],
        frozenset(cid.digest for cid in cids if cid.multihash[:2] == _SHA256),
        frozenset(cid for cid in cids if cid.hash_code == IDENTITY and len(cid.digest) <= _TAG_MAX),
        frozenset(cid for cid in cids if cid.hash_code == IDENTITY and len(cid.digest) > _TAG_MAX),
        _milliseconds(row.get("insertedAt")),
        _changed(row),
    )


def _changed(row: Mapping[str, Any]) -> str:
    return str(row.get("updatedAt") or "")


def _milliseconds(text: Any) -> int:
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
