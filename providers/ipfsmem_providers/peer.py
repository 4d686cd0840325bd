"""The `peer` provider: another ipfsmem that serves its blocks (`ipfsmem serve peer`).

    peer:<URL>       such as peer:http://127.0.0.1:8787
    PEER_URL         the URL, when the spec names none
    PEER_TOKEN       its token, a token for each peer (http/tokens.py); reading works without one

Settings of the same names in lower case win over the environment. It can do everything in the contract. The server is
ipfsmem/http/blocks.py, whose heading lists the calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ipfsmem.content.car import CarParser
from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.content.limits import OWN_LIMITS
from ipfsmem.errors import (
    BlockError,
    ConfigError,
    FormatError,
    LimitError,
    ProviderRefused,
    ProviderUnavailable,
)
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Block, Capabilities, Pin, with_blocks
from ipfsmem.provider.small_objects import (
    LISTED_MAX,
    SMALL_BATCH,
    SMALL_MAX,
    is_small,
    listed,
    require_boxes,
    require_names,
    require_small,
)
from ipfsmem_providers.gateways.client import GatewayClient
from ipfsmem_providers.http.body import SpooledCar
from ipfsmem_providers.http.client import Http, urls_of
from ipfsmem_providers.http.errors import short
from ipfsmem_providers.http.pages import ListGaps, readable
from ipfsmem_providers.http.tokens import token_for
from ipfsmem_providers.name_records import canonical_name, checked_record
from ipfsmem_providers.routing.answers import RECORD_TYPE
from ipfsmem_providers.settings import setting

_CAPABILITIES: Final = Capabilities(
    has=True,
    partial_car=True,
    blocks=True,
    dag=True,
    pin=True,
    list=True,
    unpin=True,
    names=True,
    raw=True,
    small=True,
)
_ANSWER_MAX: Final = 8 * 1024 * 1024
#: Maximum bytes of a list of small objects, for each box, and of an answer with some.
_SMALL_LIST_MAX: Final = 200 * LISTED_MAX
_SMALL_READ_MAX: Final = (SMALL_MAX + 1024) * SMALL_BATCH
_PINS_AT_ONCE: Final = 4_000
#: Seconds without progress while the peer collects: it reads all folders of all trees, and may rewrite packs,
#: before it answers.
_COLLECT_SECONDS: Final = 900.0
#: Of the lists that a peer cannot read itself, how many are named.
_NAMED: Final = 3


class _Cids(msgspec.Struct):
    cids: list[Any]
    missing_blocks: list[Any] = msgspec.field(name="lacking", default_factory=list)


class _ListingAnswer(msgspec.Struct):
    entries: dict[str, Any]


class _SmallAnswer(msgspec.Struct):
    objects: dict[str, Any]


class _Freed(msgspec.Struct):
    freed: int


class _RootAnswer(msgspec.Struct):
    root: str


class _PinAnswer(msgspec.Struct):
    cid: str
    name: str
    handle: str
    created: int


class _PinsAnswer(msgspec.Struct):
    pins: list[msgspec.Raw]
    unread: Any = ()  #: unreadable items in the peer's own list


class PeerProvider(ProviderBase):
    """Another ipfsmem as a provider. See ipfsmem.provider.contract for the methods."""

    def __init__(self, rest: str, settings: Mapping[str, Any] | None = None) -> None:
        """`rest` is its URL. No network access. ConfigError without a URL."""
        settings = settings or {}

        def url_of(rest: str) -> str:
            spec = rest or setting(settings, "PEER_URL")
            if not spec:
                raise ConfigError(
                    "the peer provider needs a URL", hint="For instance peer:http://127.0.0.1:8787"
                )
            return urls_of([spec], "peer")[0]

        self._url = url_of(rest)
        token = token_for(
            settings, "PEER_TOKEN", self._url, kind="peer", url_of=url_of, url_setting="PEER_URL"
        )
        self._http = Http(
            "peer",
            trusted=[self._url],
            auth={"Authorization": f"Bearer {token}"} if token else None,
            settings=settings,
            auth_setting="PEER_TOKEN",
        )
        self._gateway = GatewayClient(self._http, self._url)
        self._capabilities = replace(_CAPABILITIES, listing=bool(token))
        self._name = f"peer:{self._http.redact(self._url)}"
        self._gaps = ListGaps(self._http.redact)
        #: Unreadable items that the peer reports in its own pin lists, by pin name.
        self._unread_there: dict[str, list[str]] = {}
        # The damaged blocks that the last answer to `has` named; None once `missing_blocks` has returned them.
        self._lacking: list[CID] | None = None

    @property
    def name(self) -> str:
        """Return `peer:` and the URL."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """Return all capabilities; `listing` needs the token."""
        return self._capabilities

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Send one CAR; the peer checks it entirely before storing any of it."""
        with await SpooledCar.write(root, blocks) as car:
            answer = await self._http.request(
                "POST", f"{self._url}/car", params={"root": str(root), "name": name}, body=car,
                idempotent=True, what="store blocks",
            )  # fmt: skip
        return self._cid(answer.decode(_RootAnswer).root)

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Return the blocks that the peer claims to have, in one request."""
        if not cids:
            return set()
        by_text = {str(cid): cid for cid in cids}
        texts = (await self._ask(by_text)).cids
        return {by_text[text] for text in texts if isinstance(text, str) and text in by_text}

    async def missing_blocks(self) -> list[CID]:
        """Return blocks found damaged there; no request if `has` was called since the last time."""
        if self._lacking is None:
            await self._ask(())
        cids, self._lacking = self._lacking or [], None
        return cids

    async def collect(self) -> int:
        """Let the peer remove unneeded blocks by its own rules (a day between mark and removal); return the
        bytes freed."""
        answer = await self._http.request(
            "POST", f"{self._url}/collect", idempotent=True, stall=_COLLECT_SECONDS, what="free space"
        )
        return max(0, answer.decode(_Freed).freed)

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return checked blocks, in one request. Others than `cids` are left out."""
        missing = set(cids)
        blocks: dict[CID, bytes] = {}
        if not missing:
            return blocks
        parser = CarParser(OWN_LIMITS)
        try:
            async with self._http.stream(
                "POST", f"{self._url}/blocks", json={"cids": [str(cid) for cid in dict.fromkeys(cids)]},
                idempotent=True, max_bytes=2 * OWN_LIMITS.total_bytes, what="get blocks",
            ) as answer:  # fmt: skip
                async for piece in answer:
                    blocks.update(block for block in parser.feed(piece) if block[0] in missing)
            parser.close()
        except ProviderUnavailable as error:
            raise with_blocks(error, blocks) from None
        except (BlockError, LimitError, FormatError) as error:
            raise ProviderRefused(f"{self._name} answered a bad CAR: {error}") from None
        return blocks

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Do `get_blocks`: a peer serves only what it stores."""
        return await self.get_blocks(cids)

    async def listing(self) -> dict[str, int]:
        """Return the peer's listing; empty if its store cannot list."""
        answer = await self._http.request(
            "GET", f"{self._url}/listing", max_bytes=_ANSWER_MAX, allow={404}, what="list its content"
        )
        entries = {} if answer.status == 404 else answer.decode(_ListingAnswer).entries
        return {entry: number for entry, number in entries.items() if isinstance(number, int)}

    async def put_small(self, name: str, data: bytes) -> None:
        """See `SmallArea`."""
        require_small(name, data)
        await self._http.request("PUT", f"{self._url}/small/{name}", body=data, what="store a small object")

    async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
        """See `SmallArea`."""
        require_boxes(boxes)
        if not boxes:
            return {}
        query = "&".join(f"box={box}" for box in sorted(set(boxes)))
        answer = await self._http.request(
            "GET",
            f"{self._url}/small?{query}",
            max_bytes=_SMALL_LIST_MAX * len(boxes),
            what="list small objects",
        )
        entries = answer.decode(_SmallAnswer).objects.items()
        return listed(((name, size) for name, size in entries if isinstance(size, int)), boxes)

    async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
        """See `SmallArea`."""
        require_names(names)
        if not names:
            return {}
        parser, found = CarParser(OWN_LIMITS), dict[CID, bytes]()
        by_cid: dict[CID, list[str]] = {}
        for name in names:
            by_cid.setdefault(raw_cid(bytes.fromhex(name[-64:])), []).append(name)
        try:
            async with self._http.stream(
                "POST", f"{self._url}/small/read", json={"names": list(names)}, idempotent=True,
                max_bytes=_SMALL_READ_MAX, what="read small objects",
            ) as answer:  # fmt: skip
                async for piece in answer:
                    found.update(block for block in parser.feed(piece) if block[0] in by_cid)
            parser.close()
        except (BlockError, LimitError, FormatError) as error:
            raise ProviderRefused(f"{self._name} answered a bad CAR: {error}") from None
        return {name: data for cid, data in found.items() for name in by_cid[cid] if is_small(name, data)}

    async def remove_small(self, names: Collection[str]) -> None:
        """See `SmallArea`."""
        require_names(names)
        if names:
            await self._http.request(
                "POST", f"{self._url}/small/remove", json={"names": list(names)}, idempotent=True,
                what="remove small objects",
            )  # fmt: skip

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield the checked blocks of a tree."""
        async for block in self._gateway.dag(root):
            yield block

    async def pin(self, root: CID, name: str) -> Pin:
        """List a root under a name there."""
        answer = await self._http.request(
            "POST", f"{self._url}/pins", json={"cid": str(root), "name": name}, idempotent=True, what="pin"
        )
        return self._pin(answer.decode(_PinAnswer))

    async def pins(self, name: str) -> list[Pin]:
        """Return pins with this name, newest first."""
        answer = await self._http.request(
            "GET", f"{self._url}/pins", params={"name": name}, max_bytes=_ANSWER_MAX, what="list pins"
        )
        listed = answer.decode(_PinsAnswer)
        unread: list[str] = []
        pin_list = []
        for pin in readable(listed.pins, _PinAnswer, name, ("name",), unread):
            if pin.name == name:
                try:
                    pin_list.append(self._pin(pin))
                except ProviderRefused:
                    unread.append(pin.cid)
        self._gaps.note(name, unread)
        there = listed.unread if isinstance(listed.unread, list) else []
        examples = [short(str(one), self._http.redact) for one in there[:_NAMED]]
        more = [f"{len(there) - _NAMED:,} further lists"] if len(there) > _NAMED else []
        self._unread_there[name] = examples + more
        return pin_list

    async def unpin(self, pin: Pin) -> None:
        """Remove one pin there."""
        params = {"cid": str(pin.cid), "name": pin.name, "handle": pin.handle}
        await self._http.request("DELETE", f"{self._url}/pins", params=params, allow={404}, what="unpin")

    async def unpin_all(self, pins: Sequence[Pin]) -> None:
        """Remove many pins there, a few thousand in a request."""
        for start in range(0, len(pins), _PINS_AT_ONCE):
            part = pins[start : start + _PINS_AT_ONCE]
            entries = [{"cid": str(pin.cid), "name": pin.name, "handle": pin.handle} for pin in part]
            await self._http.request(
                "POST", f"{self._url}/unpin", json={"pins": entries}, idempotent=True, what="unpin"
            )

    async def put_name(self, name: str, record: bytes) -> None:
        """Offer a record, checked here first."""
        name, _ = checked_record(name, record)
        await self._http.request(
            "PUT", f"{self._url}/routing/v1/ipns/{name}", headers={"Content-Type": RECORD_TYPE}, body=record,
            what="put a name",
        )  # fmt: skip

    async def get_name(self, name: str) -> bytes | None:
        """Return the record that the peer has for a name, unchecked; None without one."""
        return await self._gateway.record(canonical_name(name), ours=True)

    def unread(self) -> list[str]:
        """See `Unreading`."""
        records = [f"a record of {name}" for name in sorted(self._gateway.unread)]
        there = (one for texts in self._unread_there.values() for one in texts)
        return list(dict.fromkeys([*records, *self._gaps.unread(), *there]))

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()

    async def _ask(self, cids: Iterable[str]) -> _Cids:
        answer = await self._http.request(
            "POST", f"{self._url}/has", json={"cids": list(cids)}, idempotent=True,
            max_bytes=_ANSWER_MAX, what="name the stored blocks",
        )  # fmt: skip
        message = answer.decode(_Cids)
        self._lacking = []
        for text in message.missing_blocks:
            with contextlib.suppress(ProviderRefused):  # another one's CID does not help to send it again
                self._lacking.append(self._cid(str(text)))
        return message

    def _pin(self, pin: _PinAnswer) -> Pin:
        return Pin(self._cid(pin.cid), pin.name, pin.handle, pin.created)

    def _cid(self, text: str) -> CID:
        try:
            return parse_cid(text)
        except FormatError as error:
            raise ProviderRefused(f"{self._name} returned an invalid CID: {error}") from None
