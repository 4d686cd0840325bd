"""Blobs of a space: store them at the node that the service assigns, and read them.

A blob is stored in four steps (w3-blob): `space/blob/add`, a PUT to the URL that the service allocated, a
receipt for that PUT, and the service's receipt that it accepted the blob. A blob that the service has is not
sent again. Reading starts by asking the service for its location.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from yarl import URL

from ipfsmem.content.cid import CID
from ipfsmem.errors import FormatError, IpfsmemError, ProviderRefused, ProviderUnavailable
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.concurrency import together
from ipfsmem_providers.http.per_loop import PerLoop
from ipfsmem_providers.web3storage import ucan
from ipfsmem_providers.web3storage.rpc import InvocationResult, Service
from ipfsmem_providers.web3storage.shards import Blob, Slice, group_slices
from ipfsmem_providers.web3storage.ucan import AgentMessage, Receipt, Signer

_CONCURRENT: Final = 8
#: Headers of the connection, which the service may not set for a PUT.
_OURS: Final = frozenset(("host", "content-length", "connection", "transfer-encoding"))
_EMPTY: Final = hashlib.sha256().digest()
_ABSENT: Final = frozenset((404, 410))


class _Task(msgspec.Struct):
    """One blob that is being stored, and the tasks that the service made for it."""

    blob: Blob
    address: Mapping[str, Any] | None
    put: CID | None
    keys: Signer | None
    accept: CID
    accepted: Receipt | None
    message: AgentMessage


class Blobs:
    """The blobs of one space."""

    def __init__(self, http: Http, service: Service, url: str, template: str = "") -> None:
        """`url`: of the service. `template`: the URL of a blob with `{digest}` in it; "" asks the service."""
        self._http = http
        self._service = service
        self._host = URL(url).host
        self._template = template
        self._where: dict[bytes, str] = {}
        self._slots = PerLoop(lambda: asyncio.Semaphore(_CONCURRENT))

    # -- writing ---------------------------------------------------------------------------------------------------

    async def add(self, blobs: Sequence[Blob]) -> None:
        """Store blobs; on return the service has accepted each of them."""
        what = "store a blob"
        calls = [
            ("space/blob/add", {"blob": {"digest": blob.multihash, "size": blob.size}}) for blob in blobs
        ]
        tasks = [
            await self._task(blob, answer, what)
            for blob, answer in zip(blobs, await self._service.invoke(calls, what=what), strict=True)
        ]
        waiting = [task for task in tasks if task.address is not None]
        await together(self._put(task) for task in waiting)
        done = [ucan.make_receipt(task.keys, task.put) for task in waiting if task.keys and task.put]
        if done:
            await self._service.conclude(done, what)
        await together(self._confirm(task, what) for task in tasks)

    async def _task(self, blob: Blob, answer: InvocationResult, what: str) -> _Task:
        tokens: dict[str, ucan.Token] = {}
        for cid in answer.receipt.forks:
            token = answer.message.token(cid)
            if token is not None and token.abilities:
                tokens.setdefault(token.abilities[0].can, token)
        try:
            allocate, put, accept = (tokens[can] for can in ("blob/allocate", "http/put", "blob/accept"))
        except KeyError as missing:
            raise self._unavailable(f"did not answer how to {what}: no {missing.args[0]} task") from None
        allocated = answer.message.receipts.get(allocate.cid)
        if allocated is None:
            later = await self._service.receipt(allocate.cid, what=what, wait=True)
            assert later is not None
            allocated = later.receipt
        if allocated.error is not None:
            raise self._service.failure("blob/allocate", allocated.error, what)
        address = allocated.ok.get("address") if isinstance(allocated.ok, dict) else None
        keys = None
        if address is not None:
            keys = self._keys(put, what)
        return _Task(
            blob, address, put.cid, keys, accept.cid, answer.message.receipts.get(accept.cid), answer.message
        )

    def _keys(self, put: ucan.Token, what: str) -> Signer:
        """Return the throw-away key in the task, which signs the receipt of the PUT."""
        for fact in put.facts:
            keys = fact.get("keys")
            inner = keys.get("keys") if isinstance(keys, dict) else None
            for data in inner.values() if isinstance(inner, dict) else ():
                try:
                    return ucan.read_signer(data)
                except (FormatError, TypeError):
                    continue
        raise self._unavailable(f"gave no key to {what} with")

    async def _put(self, task: _Task) -> None:
        address = task.address or {}
        url, fields = address.get("url"), address.get("headers")
        headers = {
            str(name): value
            for name, value in (fields.items() if isinstance(fields, dict) else ())
            if isinstance(value, str) and str(name).lower() not in _OURS
        }
        async with self._slots():
            await self._http.request(
                "PUT", self._allowed(url), body=task.blob, headers=headers, what="store a blob"
            )

    async def _confirm(self, task: _Task, what: str) -> None:
        """Wait for the receipt that the service accepted the blob, and remember the URL in it."""
        receipt, message = task.accepted, task.message
        if receipt is None:
            answer = await self._service.receipt(task.accept, what=what, wait=True)
            assert answer is not None
            receipt, message = answer.receipt, answer.message
        if receipt.error is not None:
            raise self._service.failure("blob/accept", receipt.error, what)
        location = _location(receipt, message)
        if location:
            self._where[task.blob.sha256] = location

    async def remove(self, digests: Collection[bytes]) -> None:
        """Remove blobs; absent ones are ignored."""
        calls = [("space/blob/remove", {"digest": _multihash(digest)}) for digest in sorted(digests)]
        await self._service.invoke(calls, what="remove a blob", allow={"gone"})
        for digest in digests:
            self._where.pop(digest, None)

    # -- reading ---------------------------------------------------------------------------------------------------

    async def whole(self, digest: bytes, most: int) -> bytes | None:
        """Return a whole blob of at most `most` bytes, checked; None when unavailable."""
        url = (await self.locate([digest])).get(digest)
        if url is None:
            return None
        async with self._slots():
            answer = await self._http.request(
                "GET", self._allowed(url), allow=_ABSENT, max_bytes=most, redirects=2, what="read a blob"
            )
        if answer.status in _ABSENT or hashlib.sha256(answer.body).digest() != digest:
            return None
        return answer.body

    async def read(self, shard: bytes, slices: Sequence[Slice]) -> dict[bytes, bytes]:
        """Return checked parts of a blob by their SHA-256; missing or damaged ones are left out."""
        contents = {digest: b"" for _, length, digest in slices if length == 0 and digest == _EMPTY}
        slices = [item for item in slices if item[1] > 0]
        url = (await self.locate([shard])).get(shard) if slices else None
        if url is None:
            return contents
        first, *others = group_slices(slices)
        if await self._read_run(self._allowed(url), first, slices, contents):
            others = [group for group in others if any(digest not in contents for _, _, digest in group)]
            await together(self._read_run(self._allowed(url), group, slices, contents) for group in others)
        return contents

    async def _read_run(
        self, url: str, group: Sequence[Slice], slices: Sequence[Slice], contents: dict[bytes, bytes]
    ) -> bool:
        """Read one group of parts into `contents`. Returns whether the blob exists."""
        exists = False
        async with self._slots(), contextlib.aclosing(self._parts(url, group, slices)) as parts:
            async for digest, data in parts:
                exists = True
                if digest and hashlib.sha256(data).digest() == digest:
                    contents[digest] = data
        return exists

    async def stream(
        self, shard: bytes, slices: Sequence[Slice]
    ) -> AsyncGenerator[tuple[bytes, bytes], None]:
        """Yield parts of a blob as (SHA-256, bytes), unchecked, in their order there, from one request."""
        slices = [item for item in slices if item[1] > 0]
        url = (await self.locate([shard])).get(shard) if slices else None
        if url is not None:
            async with contextlib.aclosing(self._parts(self._allowed(url), slices, slices)) as parts:
                async for digest, data in parts:
                    if digest:
                        yield digest, data

    async def _parts(
        self, url: str, group: Sequence[Slice], slices: Sequence[Slice]
    ) -> AsyncGenerator[tuple[bytes, bytes], None]:
        """Yield the parts of `group`, in one request, as (SHA-256, bytes); before them an empty pair when the
        blob exists.

        A server without range requests sends the whole blob, and then all of `slices` are given.
        """
        start = min(offset for offset, _, _ in group)
        end = max(offset + length for offset, length, _ in group)
        async with self._http.stream(
            "GET",
            url,
            headers={"Range": f"bytes={start}-{max(start, end - 1)}"},
            allow=_ABSENT | {416},
            max_bytes=1 << 40,
            redirects=2,
            what="read blocks",
        ) as answer:
            if answer.status not in (200, 206):
                return
            yield b"", b""
            ordered = sorted(group if answer.status == 206 else slices)
            at = _first_byte(answer.headers.get("Content-Range"), start) if answer.status == 206 else 0
            buffer = bytearray()
            following = 0
            async for piece in answer:
                buffer += piece
                while following < len(ordered):
                    offset, length, digest = ordered[following]
                    if offset < at:  # precedes the bytes received: the answer to another request
                        following += 1
                        continue
                    if offset + length > at + len(buffer):
                        break
                    yield digest, bytes(buffer[offset - at : offset - at + length])
                    following += 1
                if following == len(ordered):
                    return
                drop = max(0, min(ordered[following][0] - at, len(buffer)))
                del buffer[:drop]
                at += drop

    async def locate(self, digests: Collection[bytes]) -> dict[bytes, str]:
        """Return the URLs of blobs by digest; those that the service does not know are left out.

        Asks the service for the task that stored a blob, then for its receipt, which holds the storage node's
        location claim (`assert/location`).
        """
        if self._template:
            return {
                digest: self._template.replace("{digest}", ucan.base58(_multihash(digest)))
                for digest in digests
            }
        missing = [digest for digest in dict.fromkeys(digests) if digest not in self._where]
        if missing:
            calls = [("space/blob/get/0/1", {"digest": _multihash(digest)}) for digest in missing]
            answers = await self._service.invoke(calls, what="find a blob", allow={"gone"})
            causes = {
                digest: answer.receipt.ok["cause"]
                for digest, answer in zip(missing, answers, strict=True)
                if isinstance(answer.receipt.ok, dict) and isinstance(answer.receipt.ok.get("cause"), CID)
            }
            await together(self._learn(digest, cause) for digest, cause in causes.items())
        return {digest: self._where[digest] for digest in digests if digest in self._where}

    async def _learn(self, digest: bytes, cause: CID) -> None:
        async with self._slots():
            added = await self._service.receipt(cause, what="find a blob", wait=False)
            site = added.receipt.ok.get("site") if added and isinstance(added.receipt.ok, dict) else None
            awaited = site.get("ucan/await") if isinstance(site, dict) else None
            task = awaited[1] if isinstance(awaited, list) and len(awaited) > 1 else None
            if not isinstance(task, CID):
                return
            accepted = await self._service.receipt(task, what="find a blob", wait=False)
        location = _location(accepted.receipt, accepted.message) if accepted else ""
        if location:
            self._where[digest] = location

    # -- addresses -------------------------------------------------------------------------------------------------

    def _allowed(self, url: Any) -> str:
        """Return a URL that the service named. Other ports of its own host are trusted like the service;
        other hosts must be public."""
        if not isinstance(url, str):
            raise self._unavailable("returned no address for a blob")
        try:
            parsed = URL(url)
            same_host = parsed.scheme in ("http", "https") and parsed.host == self._host
        except ValueError:
            raise ProviderRefused(f"{self._http.service} returned an address that cannot be read") from None
        if same_host:
            self._http.trust(url)
        return url

    def _unavailable(self, problem: str) -> ProviderUnavailable:
        return self._http.unavailable(f"{self._http.service} {problem}")


def _location(receipt: Receipt, message: AgentMessage) -> str:
    """Return the URL in the location claim that a `blob/accept` receipt points at."""
    site = receipt.ok.get("site") if isinstance(receipt.ok, dict) else None
    try:
        token = message.token(site) if isinstance(site, CID) else None
    except IpfsmemError:
        token = None
    for ability in token.abilities if token else ():
        urls = ability.details.get("location")
        for url in urls if isinstance(urls, list) else [urls]:
            if ability.can == "assert/location" and isinstance(url, str):
                return url
    return ""


def _first_byte(content_range: str | None, default: int) -> int:
    """Return the offset at which a partial answer begins; `default` when it does not say."""
    text = (content_range or "").partition(" ")[2].partition("-")[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else default


def _multihash(digest: bytes) -> bytes:
    return b"\x12\x20" + digest
