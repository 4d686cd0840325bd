"""The `web3storage` provider: any service that speaks w3up (UCAN RPC), such as a self-hosted Storacha, at its URL.

    web3storage:<service URL>
    W3UP_SERVICE_DID   the service's DID, such as did:web:up.example.org; by default did:web:<host>
    W3UP_PRINCIPAL     the key that acts, Mg...
    W3UP_PROOF         a delegation from the space to that key (its text, or a file with it); not needed when the key is
                       the space's own
    W3UP_SPACE         the space's DID; by default the one in the delegation
    W3UP_RECEIPTS      the URL of receipts; by default <service URL>/receipt/
    W3UP_BLOBS         the URL of a blob, with {digest} (base58btc) in it; by default the service is asked for it
    W3UP_GATEWAY       trustless gateways to read from as well, with commas
    W3UP_READ=off      never read: only publish and list
    W3UP_SHARD_BYTES   size of a shard at most

Settings of the same names in lower case override the environment. The provider can do what the delegation allows; at
least `space/blob/add` and `upload/add` are needed.

A publish sends one CAR shard with the new blocks, its index, and an entry in the upload list that names that shard only, so
its cost does not grow with the history. A root's blocks are therefore in the shards of several uploads. When there are many
small shards, a publish copies their blocks that its tree needs into its own shard, and one index replaces theirs; they
serve older roots until those are unpinned. When a root is unpinned, its shards that other roots need move to the entry
of one of those, and the others are removed. The needed ones are found by walking the remaining trees; if that is
impossible, nothing is removed.

The old token service of web3.storage is not supported: it ended in January 2024.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from yarl import URL

from ipfsmem.content.cid import CID
from ipfsmem.errors import ConfigError, FormatError, ProviderError, ProviderRefused
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Block, Capabilities, Pin, unsupported, with_blocks
from ipfsmem_providers.gateways import Gateways
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.settings import choice, setting
from ipfsmem_providers.web3storage import ucan
from ipfsmem_providers.web3storage.blobs import Blobs
from ipfsmem_providers.web3storage.contents import Contents
from ipfsmem_providers.web3storage.merge import MergePlan, plan_merge, with_merged_blocks
from ipfsmem_providers.web3storage.names import SpaceNames
from ipfsmem_providers.web3storage.rpc import Service
from ipfsmem_providers.web3storage.settings import check_delegation, identity, service_url, shard_size
from ipfsmem_providers.web3storage.shards import (
    SMALL_BYTES,
    Blob,
    Shard,
    Slices,
    make_index,
    shard_cid,
    shards,
)
from ipfsmem_providers.web3storage.uploads import IndexKind, Upload, Uploads, mark_of, tag_of

_NAME_MAX: Final = 255
#: When there are more small shards than this, a publish merges them into its own.
_MANY: Final = 32


class Web3Storage(ProviderBase):
    """A space at a w3up service as a provider. See ipfsmem.provider.contract for the methods."""

    def __init__(self, rest: str, settings: Mapping[str, Any] | None = None) -> None:
        """`rest` is the service's URL. No network access. ConfigError for unusable settings."""
        settings = settings or {}
        self._url = service_url(rest, settings)
        signer, proof, space = identity(settings)
        secrets = (setting(settings, "W3UP_PRINCIPAL"), setting(settings, "W3UP_PROOF"))
        self._http = Http("web3storage", trusted=[self._url], secrets=secrets, settings=settings)
        if proof is not None:
            check_delegation(proof, signer, space, self._http.timing.wall())
        self._proof, self._space = proof, space
        did = setting(settings, "W3UP_SERVICE_DID") or f"did:web:{URL(self._url).host}"
        try:
            ucan.did_bytes(did)
        except FormatError as error:
            raise ConfigError(f"W3UP_SERVICE_DID cannot be used: {error}") from None
        receipts = setting(settings, "W3UP_RECEIPTS") or f"{self._url.rstrip('/')}/receipt/"
        self._http.trust(receipts)
        template = setting(settings, "W3UP_BLOBS")
        if template:
            if "{digest}" not in template:
                raise ConfigError("W3UP_BLOBS has no {digest} in it")
            self._http.trust(template.replace("{digest}", "z"))
        service = Service(self._http, self._url, did, signer, space, proof, receipts)
        self._uploads = Uploads(service)
        self._names = SpaceNames(self._uploads, prune=self._may("upload/remove"))
        self._service = service
        self._blobs = Blobs(self._http, service, self._url, template)
        self._contents = Contents(self._blobs)
        self._last: tuple[CID, CID] | None = (
            None  #: root and name that put_car listed last, so that `pin` need not
        )
        gateway = setting(settings, "W3UP_GATEWAY")
        self._gateway = Gateways(gateway.split(","), settings) if gateway else None
        self._many = _MANY
        self._shard_bytes = shard_size(setting(settings, "W3UP_SHARD_BYTES"))
        read = choice(settings, "W3UP_READ", ("on", "off")) == "on" and self._may("upload/list")
        self._reads = read and (bool(template) or self._may("space/blob/get/0/1"))
        self._capabilities = Capabilities(
            has=self._reads,
            partial_car=True,
            blocks=self._reads or self._gateway is not None,
            dag=self._reads,
            pin=True,
            list=self._may("upload/list"),
            unpin=self._may("upload/list") and self._may("upload/remove"),
            names=self._may("upload/list"),
            raw=self._reads,
            listing=self._may("upload/list"),
        )

    @property
    def name(self) -> str:
        """Return `web3storage:`, the service's URL and the end of the space's DID."""
        return f"web3storage:{self._url}#{self._space[-8:]}"

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities that delegation and settings allow."""
        return self._capabilities

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Send shards with the blocks, and their index; then list the root. Shards that the service has are not sent again."""
        tag = _tag(name)
        slices_of: dict[bytes, Slices] = {}
        waiting: Shard | None = None
        merge = await self._merge()
        if merge is not None:
            blocks = with_merged_blocks(root, blocks, merge.small.values())
        filled = shards(root, blocks, most_bytes=self._shard_bytes)
        try:
            async for shard in filled:
                full, waiting = waiting, shard
                slices_of[shard.sha256] = shard.slices
                if full is not None:
                    with full:
                        await self._blobs.add([full])
            if waiting is not None:
                await self._send_last(root, waiting, slices_of, merge)
        finally:
            await filled.aclose()
            if waiting is not None:
                waiting.close()
        await self._uploads.add([(root, [tag, *(shard_cid(digest) for digest in slices_of)])])
        self._contents.add_shards(slices_of)
        self._last = (root, tag)
        if merge is not None and waiting is not None:
            await self._clear(merge)
        return root

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Return the blocks in a listed shard of this space."""
        self._need(self._reads, "say which blocks it has")
        uploads, just_now = await self._uploads.recent(("has", frozenset(cids)))
        # A root is listed only when its tree is complete.
        if not all(cid in uploads and uploads[cid].is_pin for cid in cids):
            await self._look(cids, just_now)
            return {cid for cid in cids if self._contents.positions(cid)}
        return set(cids)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the shards, then from the gateways, if any."""
        self._need(self._capabilities.blocks, "serve blocks")
        blocks: dict[CID, bytes] = {}
        lost: ProviderError | None = None
        if self._reads:
            lost = await self._find(cids)
            blocks = await self._contents.blocks(cids)
        if self._gateway is not None:
            blocks |= await self._gateway.get_blocks([cid for cid in cids if cid not in blocks])
        return _unless_lost(blocks, cids, lost)

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks from the shards alone."""
        self._need(self._reads, "serve blocks of its own")
        lost = await self._find(cids)
        return _unless_lost(await self._contents.blocks(cids), cids, lost)

    async def listing(self) -> dict[str, int]:
        """Return the upload list: each root, with a number that changes when its shards do."""
        self._need(self._capabilities.listing, "list what it stores")
        uploads, _ = await self._uploads.recent("listing", own=True)
        return {
            str(root): int.from_bytes(sha256(b"".join(sorted(upload.shards))).digest()[:6])
            for root, upload in uploads.items()
            if not upload.inline  # records come and go with each publish, and are read by their names
        }

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Return the checked blocks of a tree; each of its shards is read once."""
        self._need(self._reads, "send a whole tree at once")
        return self._tree(root)

    async def pin(self, root: CID, name: str) -> Pin:
        """List `root` under `name`. A root has one time, that of its upload, under all its names."""
        tag = _tag(name)
        upload: Upload | None = None
        just_listed, self._last = self._last == (root, tag), None
        if not just_listed:
            await self._uploads.add([(root, [tag])])
        if self._may("upload/get") and self._may("upload/list"):
            upload = await self._uploads.one(root)
            if just_listed and (
                upload is None or tag not in upload.tags
            ):  # somebody else unpinned it meanwhile
                await self._uploads.add([(root, [tag])])
                upload = await self._uploads.one(root)
            if upload is None or tag not in upload.tags:
                raise self._http.unavailable(f"{self.name} accepted {root} but does not list it")
        return _pin(root, name, upload)

    async def pins(self, name: str) -> list[Pin]:
        """Return roots with this name, newest first."""
        self._need(self._capabilities.list, "list pins")
        tag = _tag(name)
        try:
            uploads, _ = await self._uploads.recent(("pins", tag))
        except ProviderError as error:
            error.pins = _pins(self._uploads.part, name, tag)
            raise
        return _pins(uploads, name, tag)

    def unread(self) -> list[str]:
        """See `Unreading`."""
        return self._uploads.gaps.unread()

    async def unpin(self, pin: Pin) -> None:
        """Remove one name of a root; with the last name, also the root and the shards that no other root needs."""
        self._need(self._capabilities.unpin, "unpin")
        uploads = dict(await self._uploads.refresh())
        upload = uploads.get(pin.cid)
        tag = _tag(pin.name)
        if upload is None or tag not in upload.tags:
            return
        if upload.tags != {tag}:
            # An entry can only grow, so it is removed and made again without this name.
            rest = [*(upload.tags - {tag}), *map(shard_cid, upload.shards)]
            await self._uploads.remove([pin.cid])
            await self._uploads.add([(pin.cid, rest)])
            return
        del uploads[pin.cid]
        others = [item for item in uploads.values() if item.is_pin]
        listed = {digest for item in uploads.values() for digest in item.shards}
        unlisted = upload.shards - listed
        needed = unlisted & await self._needed(others) if unlisted else unlisted
        if needed:
            heir = max(others, key=lambda item: (tag in item.tags, item.created))
            await self._uploads.add([(heir.root, [shard_cid(digest) for digest in sorted(needed)])])
        await self._uploads.remove([pin.cid])
        if self._may("space/blob/remove"):
            await self._drop(unlisted - needed, uploads)

    async def put_name(self, name: str, record: bytes) -> None:
        """Keep a record in the upload list unless a greater one is there."""
        self._need(self._capabilities.names, "keep names")
        await self._names.put(name, record)

    async def get_name(self, name: str) -> bytes | None:
        """Return the greatest record of a name in the upload list."""
        self._need(self._capabilities.names, "keep names")
        return await self._names.get(name)

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
        if self._gateway is not None:
            await self._gateway.close()

    # -- parts -----------------------------------------------------------------------------------------------------

    async def _find(self, cids: Sequence[CID]) -> ProviderError | None:
        """Find the positions of blocks; requests nothing if known. Return why a part of the upload list could not be read."""
        if all(self._contents.positions(cid) for cid in cids):
            return None
        try:
            _, just_now = await self._uploads.recent(("blocks", frozenset(cids)))
        except ProviderError as error:
            self._contents.set_uploads({**self._uploads.known, **self._uploads.part}.values())
            await self._contents.search(cids)
            return error
        await self._look(cids, just_now)
        return None

    async def _look(self, cids: Collection[CID], just_now: bool) -> None:
        """Search the cached upload list, and unless just read, a new one for blocks not found."""
        self._contents.set_uploads(self._uploads.known.values())
        if not await self._contents.search(cids) and not just_now:
            self._contents.set_uploads((await self._uploads.refresh()).values())
            await self._contents.search(cids)

    async def _tree(self, root: CID) -> AsyncIterator[Block]:
        lost = await self._find([root])
        if lost is not None and not self._contents.positions(root):
            raise lost
        async with contextlib.aclosing(self._contents.tree(root)) as blocks:
            async for block in blocks:
                yield block

    async def _merge(self) -> MergePlan | None:
        """Return the small shards to merge with this publish. A failure does not fail the publish."""
        if not (self._reads and self._may("upload/remove")):
            return None
        try:
            return await plan_merge(self._contents, self._uploads.known, self._many)
        except ProviderError:
            return None

    async def _clear(self, merge: MergePlan) -> None:
        """Remove the replaced indexes from the list. When this is cut off, the next publish does it."""
        with contextlib.suppress(ProviderError):
            await self._uploads.remove([item.root for item in merge.replaced])

    async def _send_last(
        self, root: CID, shard: Shard, slices_of: Mapping[bytes, Slices], merge: MergePlan | None
    ) -> None:
        """Send the last shard and the index of all, and list the index, so that blocks can be found before the root is listed."""
        small = len(slices_of) == 1 and shard.size <= SMALL_BYTES
        with contextlib.ExitStack() as stack:
            index = make_index(root, slices_of)
            blob = stack.enter_context(Blob.of(index.car))
            mark = mark_of(IndexKind.SMALL, shard.sha256) if small else mark_of(IndexKind.LARGE)
            blobs, entries = [blob], [(index.root, [blob.cid, mark])]
            if merge is not None and merge.slices:
                past = make_index(root, merge.slices)
                blob = stack.enter_context(Blob.of(past.car))
                blobs.append(blob)
                old = [shard_cid(item.index) for item in merge.replaced if item.small in merge.slices]
                entries.append((past.root, [blob.cid, mark_of(IndexKind.MERGED, blob.sha256), *old]))
            await self._blobs.add([shard, *blobs])
        calls: list[tuple[str, Mapping[str, Any]]] = []
        for blob, (entry, links) in zip(blobs, entries, strict=True):
            calls.append(("upload/add", {"root": entry, "shards": links}))
            if self._may("space/index/add"):
                # Gateways find blocks by it; not all services support it.
                calls.append(("space/index/add", {"index": blob.cid}))
        await self._service.invoke(calls, what="announce an index", allow={"HandlerNotFound"})
        for entry, links in entries:
            self._uploads.note_added(entry, links)

    async def _needed(self, others: Sequence[Upload]) -> set[bytes]:
        """Return the shards that the roots `others` need; all shards when unknown."""
        everything = {digest for upload in self._uploads.known.values() for digest in upload.shards}
        if not others:
            return set()
        if not self._reads:
            return everything
        await self._contents.read_all_indexes(self._uploads.known.values())
        needed: set[bytes] = set()
        for upload in others:
            digests = await self._contents.shards_of(upload.root)
            if digests is None:
                return everything
            needed |= digests
        return needed

    async def _drop(self, dead: Collection[bytes], uploads: Mapping[CID, Upload]) -> None:
        """Remove shards, and the indexes of which all shards are removed."""
        if not dead:
            return
        dead_indexes: list[Upload] = []
        if self._reads:
            await self._contents.read_all_indexes(uploads.values())
            listed = {digest for item in uploads.values() if not item.is_index for digest in item.shards}
            dead_indexes = [
                item
                for item in uploads.values()
                if item.is_index and (about := self._contents.shards_of_index(item)) and not about & listed
            ]
            await self._uploads.remove([item.root for item in dead_indexes])
        await self._blobs.remove({*dead, *(digest for item in dead_indexes for digest in item.shards)})
        self._contents.forget_shards(dead)

    def _may(self, can: str) -> bool:
        proof = self._proof
        return proof is None or any(item.covers(can, self._space) for item in proof.token.abilities)

    def _need(self, can: bool, what: str) -> None:
        if not can:
            raise unsupported(self, what)


def _tag(name: str) -> CID:
    if not 0 < len(name) <= _NAME_MAX:
        raise ProviderRefused(f"a pin name has 1 to {_NAME_MAX} characters, this has {len(name)}")
    return tag_of(name)


def _unless_lost(
    blocks: dict[CID, bytes], cids: Sequence[CID], lost: ProviderError | None
) -> dict[CID, bytes]:
    """Return `blocks`; raises `lost` with them when one of `cids` may be in an unread part of the list."""
    if lost is not None and len(blocks) < len(set(cids)):
        raise with_blocks(lost, blocks)
    return blocks


def _pins(uploads: Mapping[CID, Upload], name: str, tag: CID) -> list[Pin]:
    """Return the roots with this name, newest first."""
    pins = [_pin(root, name, one) for root, one in uploads.items() if one.is_pin and tag in one.tags]
    return sorted(pins, key=lambda pin: (-pin.created, pin.handle))


def _pin(root: CID, name: str, upload: Upload | None) -> Pin:
    return Pin(root, name, str(root), upload.created if upload else 0)
