"""A provider in memory that serves, records, delays, drops, reorders, rolls back and lies, as configured.

`SimCloud` is the storage; each device of a test opens its own `SimProvider` on it, with its own `Faults` and its own record of
every byte in either direction. The simulator keeps the contract of ipfsmem.provider.contract as long as no fault is set. It is
deterministic: the same test gives the same run.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Final, Literal

import msgspec

from ipfsmem.content.cid import CID, DAG_PB
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.reader import verify_block
from ipfsmem.errors import (
    BlockError,
    FormatError,
    IpfsmemError,
    LimitError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    SealError,
)
from ipfsmem.provider.contract import Block, Capabilities, Pin, unsupported, with_blocks
from ipfsmem.provider.small_objects import is_small, listed, require_boxes, require_names, require_small
from ipfsmem.published import ipns_record
from ipfsmem.testing.clock import MockClock, SeededRandom

#: All capabilities of a provider.
FULL: Final = Capabilities(
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


class SimCloud:
    """The storage of a provider. Tests may read and change it."""

    def __init__(self) -> None:
        self.blocks: dict[CID, bytes] = {}
        self.pins: list[Pin] = []
        self.names: dict[str, list[bytes]] = {}  #: every accepted record, oldest first
        self.small: dict[str, bytes] = {}  #: small objects by name
        self._handles = 0

    def handle(self) -> str:
        """Return a handle for the next pin."""
        self._handles += 1
        return f"pin-{self._handles}"

    def tree(self, root: CID) -> list[CID]:
        """Return the stored CIDs under `root`, depth first, each once."""
        order: dict[CID, None] = {}
        stack = [root]
        while stack:
            cid = stack.pop()
            data = self.blocks.get(cid)
            if cid in order or data is None:
                continue
            order[cid] = None
            if cid.codec == DAG_PB:
                with contextlib.suppress(FormatError):  # a damaged block has no links
                    stack.extend(reversed([link.cid for link in decode_node(data).links]))
        return list(order)

    def collect(self) -> int:
        """Delete the blocks that no pin reaches, as providers do some time after `unpin`. Returns how many."""
        kept = {cid for pin in self.pins for cid in self.tree(pin.cid)}
        lost = [cid for cid in self.blocks if cid not in kept]
        for cid in lost:
            del self.blocks[cid]
        return len(lost)


class Faults:
    """The current faults; all may be changed at any time. `Faults()` is an honest provider."""

    def __init__(self) -> None:
        self.offline = False  #: every call fails
        self.refuse = False  # : every call is refused, as with a revoked token
        self.delay = 0.0  #: seconds of the simulator's clock that each call takes
        self.drop: set[CID] = set()  #: blocks that are not served and not named by `has`
        self.instead: dict[CID, bytes] = {}  #: other bytes for a block
        self.cut: dict[CID, int] = {}  #: maximum bytes of a block
        self.flip: dict[CID, int] = {}  #: the wrong bit of a block
        self.has: Literal["truth", "all", "none"] = "truth"  # : what `has` answers
        self.reorder = False  #: pin lists, blocks and trees are in another order
        self.end_dag_after: int | None = None  #: trees end after this many blocks
        self.other_root: CID | None = None  #: the answer of `put_car`
        self.serve: int | None = None  #: after this many more blocks it is offline
        self.reset_after: int | None = None  #: `put_car` fails after storing this many blocks
        self.old_record: dict[str, int] = {}  #: which of the records of a name is served: 0 the first ever
        self.pins: list[Pin] | None = None  #: a pin list of the past, or an invented one


class Exchange(msgspec.Struct, frozen=True):
    """One call and the bytes sent and received by this device for it, in the order of the wire."""

    call: str
    sent: bytes
    received: bytes


class SimProvider:
    """One device's connection to a SimCloud."""

    def __init__(
        self,
        cloud: SimCloud | None = None,
        *,
        name: str = "simulator",
        capabilities: Capabilities = FULL,
        clock: MockClock | None = None,
        random: SeededRandom | None = None,
    ) -> None:
        self.cloud = cloud if cloud is not None else SimCloud()
        self.faults = Faults()
        self.clock = clock or MockClock()
        self.wire: list[Exchange] = []
        self.calls: list[str] = []  #: names of all calls, failed ones too
        self._name = name
        self._capabilities = capabilities
        self._random = random or SeededRandom()
        self._failing: dict[int, ProviderError] = {}
        self._unanswered: dict[int, ProviderError] = {}
        self.closed = False

    @property
    def name(self) -> str:
        """The given name."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """The given capabilities."""
        return self._capabilities

    def fail_call(self, number: int, error: ProviderError | None = None) -> None:
        """Let the `number`-th call from now (1 is the next) fail before it does anything."""
        self._failing[len(self.calls) + number] = error or _lost("connection refused")

    def lose_answer(self, number: int, error: ProviderError | None = None) -> None:
        """Let the `number`-th call from now do its work and then fail, as if the answer was lost."""
        self._unanswered[len(self.calls) + number] = error or _lost("connection reset")

    def stop_failing(self) -> bool:
        """Cancel planned failures and lost answers; returns whether there were any."""
        waiting = any(number > len(self.calls) for number in (*self._failing, *self._unanswered))
        self._failing.clear()
        self._unanswered.clear()
        return waiting

    def change(self, **abilities: bool) -> None:
        """Gain or lose capabilities, by their names in `Capabilities`, as when an account changes its plan."""
        self._capabilities = msgspec.structs.replace(self._capabilities, **abilities)

    def freeze_pins(self) -> None:
        """Serve the current pin list until `faults.pins` is None again."""
        self.faults.pins = list(self.cloud.pins)

    def sent_bytes(self) -> int:
        """Return how many bytes this device sent."""
        return sum(len(exchange.sent) for exchange in self.wire)

    def received_bytes(self) -> int:
        """Return how many bytes this device received."""
        return sum(len(exchange.received) for exchange in self.wire)

    def saw(self, needle: bytes) -> list[str]:
        """Return the calls in which this device sent `needle`, for canary tests."""
        return [exchange.call for exchange in self.wire if needle in exchange.sent]

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Store blocks; see the contract. A wrong block is refused, those before it stay."""
        number = await self._enter("put_car")
        sent = [str(root).encode(), name.encode()]
        try:
            for count, (cid, data) in enumerate(blocks):
                if self.faults.reset_after is not None and count >= self.faults.reset_after:
                    raise _lost("connection reset")
                sent += (cid.encode(), data)
                try:
                    verify_block(cid, data)
                except (BlockError, LimitError) as error:
                    raise ProviderRefused(f"{self.name} refused block {cid}: {error}") from error
                self.cloud.blocks[cid] = data
            answer = self.faults.other_root or root
        except IpfsmemError:
            self._record("put_car", sent, [])
            raise
        self._leave(number, "put_car", sent, [str(answer).encode()])
        return answer

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Return which blocks are stored, or a lie."""
        number = await self._enter("has", self._capabilities.has)
        stored = {cid for cid in cids if cid in self.cloud.blocks and cid not in self.faults.drop}
        found = {"truth": stored, "all": set(cids), "none": set[CID]()}[self.faults.has]
        answer = [cid.encode() for cid in cids if cid in found]
        self._leave(number, "has", [cid.encode() for cid in cids], answer)
        return found

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return blocks, changed by the faults."""
        number = await self._enter("get_blocks", self._capabilities.blocks)
        found = {cid: data for cid in cids if (data := self._serve(cid)) is not None}
        if self.faults.reorder:
            found = {cid: found[cid] for cid in self._random.shuffled(found)}
        sent, ends = self._cut_off(list(found.items()))
        self._leave(number, "get_blocks", [cid.encode() for cid in cids], [data for _, data in sent])
        if ends is not None:
            raise with_blocks(ends, dict(sent))
        return found

    async def read_stored(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Return blocks as `get_blocks` does: the simulator stores all its blocks itself."""
        number = await self._enter("read_stored", self._capabilities.raw)
        found = {cid: data for cid in cids if (data := self._serve(cid)) is not None}
        sent, ends = self._cut_off(list(found.items()))
        self._leave(number, "read_stored", [cid.encode() for cid in cids], [data for _, data in sent])
        if ends is not None:
            raise with_blocks(ends, dict(sent))
        return found

    async def listing(self) -> dict[str, int]:
        """Return the stored blocks and pins; with the capability `listing`."""
        number = await self._enter("listing", self._capabilities.listing)
        cloud = self.cloud
        found = {str(cid): len(data) for cid, data in cloud.blocks.items() if cid not in self.faults.drop}
        found |= {f"{pin.cid} {pin.name}": 1 for pin in cloud.pins}
        self._leave(number, "listing", [], [name.encode() for name in found])
        return found

    async def put_small(self, name: str, data: bytes) -> None:
        """Store a small object."""
        number = await self._enter("put_small", self._capabilities.small)
        require_small(name, data)
        self.cloud.small[name] = data
        self._leave(number, "put_small", [name.encode(), data], [])

    async def list_small(self, boxes: Collection[str]) -> dict[str, int]:
        """Return the small objects of boxes."""
        number = await self._enter("list_small", self._capabilities.small)
        require_boxes(boxes)
        found = listed(((name, len(data)) for name, data in self.cloud.small.items()), boxes)
        self._leave(number, "list_small", [box.encode() for box in boxes], [name.encode() for name in found])
        return found

    async def get_small(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return small objects that are sound."""
        number = await self._enter("get_small", self._capabilities.small)
        require_names(names)
        there = {name: self.cloud.small.get(name, b"") for name in names}
        found = {name: data for name, data in there.items() if is_small(name, data)}
        self._leave(number, "get_small", [name.encode() for name in names], found.values())
        return found

    async def remove_small(self, names: Collection[str]) -> None:
        """Remove small objects."""
        number = await self._enter("remove_small", self._capabilities.small)
        require_names(names)
        for name in names:
            self.cloud.small.pop(name, None)
        self._leave(number, "remove_small", [name.encode() for name in names], [])

    async def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Yield the tree under `root` in one answer, changed by the faults."""
        number = await self._enter("get_dag", self._capabilities.dag)
        order = self.cloud.tree(root)
        if self.faults.reorder:
            order = self._random.shuffled(order)
        served = [(cid, data) for cid in order if (data := self._serve(cid)) is not None]
        served, ends = self._cut_off(served[: self.faults.end_dag_after])
        self._leave(number, "get_dag", [root.encode()], [data for _, data in served])
        for block in served:
            yield block
        if ends is not None:
            raise ends

    async def pin(self, root: CID, name: str) -> Pin:
        """Pin a root under a name."""
        number = await self._enter("pin", self._capabilities.pin)
        known = [pin for pin in self.cloud.pins if pin.cid == root and pin.name == name]
        if known:
            pin = known[0]
        else:
            pin = Pin(root, name, self.cloud.handle(), self.clock.ms)
            self.cloud.pins.append(pin)
        self._leave(number, "pin", [str(root).encode(), name.encode()], [pin.handle.encode()])
        return pin

    async def pins(self, name: str) -> list[Pin]:
        """Return the pins with this name, newest first, or those of the faults."""
        number = await self._enter("pins", self._capabilities.list)
        source = self.cloud.pins if self.faults.pins is None else self.faults.pins
        latest_first = [pin for pin in source if pin.name == name][::-1]  # also of equal times
        found = sorted(latest_first, key=lambda pin: -pin.created)
        if self.faults.reorder:
            found = self._random.shuffled(found)
        self._leave(number, "pins", [name.encode()], [str(pin.cid).encode() for pin in found])
        return found

    async def unpin(self, pin: Pin) -> None:
        """Remove one pin. Blocks are deleted when a test calls `cloud.collect`."""
        number = await self._enter("unpin", self._capabilities.unpin)
        self.cloud.pins = [known for known in self.cloud.pins if known.handle != pin.handle]
        self._leave(number, "unpin", [pin.handle.encode()], [])

    async def put_name(self, name: str, record: bytes) -> None:
        """Store a record if it is greater than the current one."""
        number = await self._enter("put_name", self._capabilities.names)
        try:
            name = ipns_record.canonical_name(name)
            offered = ipns_record.verify_record(name, record)
        except (FormatError, SealError) as error:
            self._record("put_name", [name.encode(), record], [])
            raise ProviderRefused(f"{self.name} refused a record of {name}: {error}") from error
        records = self.cloud.names.setdefault(name, [])
        if not records or ipns_record.record_order(
            ipns_record.parse_record(records[-1])
        ) < ipns_record.record_order(offered):
            records.append(record)
        self._leave(number, "put_name", [name.encode(), record], [])

    async def get_name(self, name: str) -> bytes | None:
        """Return the newest record of a name, or the past one of the faults."""
        number = await self._enter("get_name", self._capabilities.names)
        try:
            name = ipns_record.canonical_name(name)
        except FormatError as error:
            raise ProviderRefused(f"{self.name} refused {name!r}: {error}") from error
        records = self.cloud.names.get(name, [])
        shown = self.faults.old_record.get(name, len(records) - 1)
        record = records[shown] if 0 <= shown < len(records) else None
        self._leave(number, "get_name", [name.encode()], [record or b""])
        return record

    async def close(self) -> None:
        """Make later calls fail with an error about a bug of the caller."""
        self.closed = True

    def _cut_off(self, blocks: list[Block]) -> tuple[list[Block], ProviderError | None]:
        """Return the blocks that are still sent, and the connection error if that is not all."""
        most = self.faults.serve
        if most is None or len(blocks) <= most:
            self.faults.serve = None if most is None else most - len(blocks)
            return blocks, None
        self.faults.offline, self.faults.serve = True, 0
        return blocks[:most], _lost("connection reset")

    def _serve(self, cid: CID) -> bytes | None:
        faults = self.faults
        data = self.cloud.blocks.get(cid)
        if cid in faults.drop:
            return None
        if cid in faults.instead:
            return faults.instead[cid]
        if data is None:
            return None
        if cid in faults.cut:
            return data[: faults.cut[cid]]
        if cid in faults.flip and data:
            changed = bytearray(data)
            bit = faults.flip[cid] % (8 * len(data))
            changed[bit // 8] ^= 1 << bit % 8
            return bytes(changed)
        return data

    async def _enter(self, call: str, able: bool = True) -> int:
        if self.closed:
            raise AssertionError(f"{call} was called after close")
        self.calls.append(call)
        number = len(self.calls)
        await self.clock.sleep(self.faults.delay)
        error = self._failing.pop(number, None)
        if error is None and self.faults.offline:
            error = _lost("no route to host")
        if error is None and self.faults.refuse:
            error = ProviderRefused(f"{self.name} answered 401: the token was revoked")
        if error is None and not able:
            error = unsupported(self, call)
        if error is not None:
            raise error
        return number

    def _leave(self, number: int, call: str, sent: Iterable[bytes], received: Iterable[bytes]) -> None:
        self._record(call, sent, received)
        error = self._unanswered.pop(number, None)
        if error is not None:
            raise error

    def _record(self, call: str, sent: Iterable[bytes], received: Iterable[bytes]) -> None:
        self.wire.append(Exchange(call, b"\n".join(sent), b"\n".join(received)))


def _lost(reason: str) -> ProviderUnavailable:
    return ProviderUnavailable(f"simulator: {reason}")
