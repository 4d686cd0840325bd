"""The upload list of a space: roots, the shards of each, and the pin names that they are listed under.

A w3up service has no pin names. A name is stored as a further shard of an upload: a CAR inside its own CID
(identity hash, 59 bytes or fewer) whose only root is a tag of the name. It needs no storage or request, and
readers of the upload skip it. An upload whose root is DAG-CBOR is an index of shards (shards.py), listed so
that a new device finds it; its mark, made like a tag, says which indexes to read first.
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from ipfsmem.content.car import header
from ipfsmem.content.cid import CAR, CID, DAG_CBOR, IDENTITY, RAW
from ipfsmem.errors import ProviderError
from ipfsmem_providers.http.pages import ListGaps, Pages
from ipfsmem_providers.http.per_loop import PerLoop
from ipfsmem_providers.web3storage.rpc import InvocationResult, Service

_TAG: Final = b"ipfsmem:"
#: Maximum bytes of a tag.
_TAG_MAX: Final = 64
_PAGE: Final = 1000
#: Fields kept of a row.
_FIELDS: Final = ("root", "shards", "insertedAt", "updatedAt")
_SHA256: Final = b"\x12\x20"
#: Characters of an entry that are kept to name it.
_LABEL: Final = 80
#: In front of a mark; then one byte of kind, then a digest or nothing.
_MARK: Final = b"ipfsmem index "
_MARK_MAX: Final = 96
#: Seconds for which the list, once read, serves different questions.
_MOMENT: Final = 15.0


class IndexKind(enum.Enum):
    """The subject of an index: one small shard, large shards, or small ones that were merged and serve older roots.

    The mark of a small shard's index names the shard. The mark of a merged index names that index, since the
    indexes it replaces are listed next to it: gateways know those, and they are removed with it.
    """

    SMALL = b"s"
    LARGE = b"l"
    MERGED = b"p"


class Upload(msgspec.Struct, frozen=True):
    """One entry of the list: `shards` are digests of CARs, `tags` CIDs for names, `created` ms since 1970 UTC.

    `inline`: CARs inside their CIDs other than tags (names.py). `kind` and `marked` (a digest): the mark of
    an index.
    """

    root: CID
    shards: frozenset[bytes]
    tags: frozenset[CID]
    inline: frozenset[CID]
    created: int
    changed: str
    kind: IndexKind | None = None
    marked: bytes = b""

    @property
    def is_pin(self) -> bool:
        """Return whether it is a tree that is listed under a name."""
        return bool(self.tags) and not self.inline

    @property
    def is_index(self) -> bool:
        """Return whether it is an index. Uploads of other programs may look like one; an index is checked when
        it is read."""
        one = len(self.shards) == 1 or (self.kind is IndexKind.MERGED and self.marked in self.shards)
        return self.root.codec == DAG_CBOR and one and not self.tags

    @property
    def small(self) -> bytes:
        """Return the digest of the small shard that this is the index of; b"" for other indexes."""
        return self.marked if self.kind is IndexKind.SMALL else b""

    @property
    def index(self) -> bytes:
        """Return the digest of the index, if this is one."""
        return self.marked if self.kind is IndexKind.MERGED else next(iter(self.shards), b"")


def tag_of(name: str) -> CID:
    """Return the shard of a pin name."""
    mark = _TAG + hashlib.sha256(name.encode()).digest()[:16]
    car = header([CID(1, RAW, bytes((IDENTITY, len(mark))) + mark)])
    return CID(1, CAR, bytes((IDENTITY, len(car))) + car)


def mark_of(kind: IndexKind, digest: bytes = b"") -> CID:
    """Return the shard that marks an index."""
    mark = _MARK + kind.value + digest
    car = header([CID(1, RAW, bytes((IDENTITY, len(mark))) + mark)])
    return CID(1, CAR, bytes((IDENTITY, len(car))) + car)


def _marks(links: Iterable[CID]) -> dict[CID, tuple[IndexKind, bytes]]:
    marks = {}
    for link in links:
        if link.hash_code == IDENTITY and len(link.digest) <= _MARK_MAX:
            _, mark, rest = link.digest.partition(_MARK)
            if mark:
                for kind in IndexKind:
                    for digest in (b"", rest[1:33]):
                        if link == mark_of(kind, digest):
                            marks[link] = kind, digest
    return marks


class Uploads:
    """The list of one space, re-read by `refresh`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.known: dict[CID, Upload] = {}
        #: The entries that the last reading of the list showed before it failed.
        self.part: dict[CID, Upload] = {}
        self._read: float | None = None  #: when the list was read, by the monotonic clock
        self._writes = 0  #: changes made here
        self._written = 0  #: changes that the list, as it was read, surely shows
        self._again = False  #: whether `reread_once` was called since the list was read
        self._asked: set[Hashable] = set()
        self._lock = PerLoop(asyncio.Lock)
        #: Entries of the list that could not be read, or whose shards could not, when it was read last.
        self.gaps = ListGaps(service.redact)

    async def recent(self, question: Hashable, *, own: bool = False) -> tuple[dict[CID, Upload], bool]:
        """Return a recent list, and whether it was just read. `question` is the purpose.

        It is read again when older, when the same question was asked of it before (so the caller wants news),
        and after a change made here, unless `own` allows own changes to come from memory. A caller that does
        not find what it needs calls `refresh` or `reread_once`.
        """
        async with self._lock():
            old = self._read is None or self._service.now() - self._read > _MOMENT
            read = old or question in self._asked or (self._written < self._writes and not own)
            if read:
                await self.refresh()
            self._asked.add(question)
            return self.known, read

    async def reread_once(self) -> dict[CID, Upload]:
        """Return the list, read again once for all names that a sync does not find in it."""
        async with self._lock():
            if not self._again:
                await self.refresh()
                self._again = True
            return self.known

    def note_question(self, question: Hashable) -> None:
        """Make `recent` read the list again for this question."""
        self._asked.add(question)

    async def refresh(self) -> dict[CID, Upload]:
        """Read the whole list: a request per thousand uploads, and more if the service lists shards separately."""
        rows: list[Mapping[str, Any]] = []
        unread: list[str] = []
        began, writes = self._service.now(), self._writes
        try:
            await self._read_rows(rows, unread)
            apart = [row for row in rows if "shards" not in row and not self._same(row)]
            shards = await self._shards_apart([row["root"] for row in apart], unread)
        except ProviderError:
            self.part = {row["root"]: _upload(row, row["shards"]) for row in rows if "shards" in row}
            raise
        fresh: dict[CID, Upload] = {}
        for row in rows:
            root = row["root"]
            links = row["shards"] if "shards" in row else shards.get(root)
            if "shards" in row and not _are_links(links):
                unread.append(str(root))
            fresh[root] = self.known[root] if links is None and "shards" not in row else _upload(row, links)
        self.gaps.note("", dict.fromkeys(unread))
        self.known, self.part = fresh, {}
        # Entries added while the list was being read may not be in it.
        self._read, self._written = (began if writes == self._writes else None), writes
        self._again = False
        self._asked.clear()
        return fresh

    async def _read_rows(self, rows: list[Mapping[str, Any]], unread: list[str]) -> None:
        """Add the entries of the list to `rows`, page by page, and the labels of unreadable ones to `unread`."""
        pages, cursor = Pages(self._service.name), None
        while True:
            details = {"size": _PAGE, **({"cursor": cursor} if cursor else {})}
            (answer,) = await self._service.invoke([("upload/list", details)], what="list uploads")
            results, cursor = _page(answer, pages, unread)
            page = []
            for row in results:
                if isinstance(row, dict) and isinstance(row.get("root"), CID):
                    page.append({name: row[name] for name in _FIELDS if name in row})
                else:
                    unread.append(_label(row))
            rows += page
            if cursor is None:
                break
            pages.goes_on((str(row["root"]) for row in page), cursor, size=answer.message.size)

    async def one(self, root: CID) -> Upload | None:
        """Return one entry, without reading the list if the service supports that."""
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
        """List roots with shards, in one request; shards that a root has already stay."""
        calls = [("upload/add", {"root": root, "shards": list(shards)}) for root, shards in entries]
        self._writes += 1
        await self._service.invoke(calls, what="list a root")
        for root, shards in entries:
            self.note_added(root, shards)

    def note_added(self, root: CID, shards: Iterable[CID]) -> None:
        """Note a new entry. Its time is unknown here."""
        self._writes += 1
        added, previous = _upload({"root": root}, list(shards)), self.known.get(root)
        if previous is not None:
            added = Upload(
                root,
                previous.shards | added.shards,
                previous.tags | added.tags,
                previous.inline | added.inline,
                previous.created,
                "",
                added.kind or previous.kind,
                added.marked or previous.marked,
            )
        self.known[root] = added

    async def remove(self, roots: Sequence[CID]) -> None:
        """Remove roots from the list; absent ones are ignored."""
        self._writes += 1
        await self._service.invoke(
            [("upload/remove", {"root": root}) for root in roots], what="unlist a root", allow={"gone"}
        )
        for root in roots:
            self.known.pop(root, None)

    def _same(self, row: Mapping[str, Any]) -> bool:
        upload = self.known.get(row["root"])
        return upload is not None and upload.changed == _changed(row)

    async def _shards_apart(self, roots: Sequence[CID], unread: list[str]) -> dict[CID, list[CID]]:
        """Return the shards of uploads at services that list them apart. Roots some of whose shards cannot be
        read go to `unread`."""
        shards: dict[CID, list[CID]] = {root: [] for root in roots}
        pending: dict[CID, str | None] = dict.fromkeys(roots)
        pages = {root: Pages(self._service.name) for root in roots}
        while pending:
            calls = [
                ("upload/shard/list", {"root": root, "size": _PAGE, **({"cursor": cursor} if cursor else {})})
                for root, cursor in pending.items()
            ]
            answers = await self._service.invoke(calls, what="list shards", allow={"gone"})
            following: dict[CID, str | None] = {}
            for root, answer in zip(pending, answers, strict=True):
                if answer.receipt.error is not None:  # removed since
                    continue
                odd: list[str] = []
                results, after = _page(answer, pages[root], odd)
                if odd or not _are_links(results):
                    unread.append(str(root))
                links = [link for link in results if isinstance(link, CID)]
                shards[root] += links
                if after is not None:
                    pages[root].goes_on(links, after)
                    following[root] = after
            pending = following
        return {root: list(dict.fromkeys(links)) for root, links in shards.items()}


def _page(answer: InvocationResult, pages: Pages, unread: list[str]) -> tuple[list[Any], str | None]:
    """Return the entries of a page, and the cursor of the next one. A malformed page is an entry of `unread`."""
    page = answer.receipt.ok if isinstance(answer.receipt.ok, dict) else {}
    results, cursor = page.get("results"), page.get("cursor")
    if not isinstance(results, list):
        unread.append("a page that is not a list")
        results = []
    if cursor is not None and not isinstance(cursor, str):
        raise pages.unread("returns a page cursor that is not text")
    return results, cursor or None


def _are_links(links: Any) -> bool:
    return isinstance(links, list) and all(isinstance(link, CID) for link in links)


def _label(row: Any) -> str:
    """Return an unreadable entry's own label."""
    return str(row.get("root", "without a root") if isinstance(row, dict) else row)[:_LABEL]


def _upload(row: Mapping[str, Any], links: Any) -> Upload:
    cids = [link for link in links or () if isinstance(link, CID)] if isinstance(links, list) else []
    marks = _marks(cids)
    cids = [cid for cid in cids if cid not in marks]
    kind, marked = next(iter(marks.values()), (None, b""))
    return Upload(
        row["root"],
        frozenset(cid.digest for cid in cids if cid.multihash[:2] == _SHA256),
        frozenset(cid for cid in cids if cid.hash_code == IDENTITY and len(cid.digest) <= _TAG_MAX),
        frozenset(cid for cid in cids if cid.hash_code == IDENTITY and len(cid.digest) > _TAG_MAX),
        _milliseconds(row.get("insertedAt")),
        _changed(row),
        kind,
        marked,
    )


def _changed(row: Mapping[str, Any]) -> str:
    return str(row.get("updatedAt") or "")


def _milliseconds(text: Any) -> int:
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
