"""Probe a provider: upload, has, list, read back, name, small objects and unpin, each executed and checked.

It uploads a few random bytes under its own name, removed at the end, and compares what comes back file by
file. It has no access to memories or keys.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from ipfsmem.content.cid import CID, DAG_PB, ipns_name, parse_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.fetch import drive, from_mapping
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import build_tree
from ipfsmem.content.verify import verify_block
from ipfsmem.errors import IpfsmemError
from ipfsmem.provider.abilities import good_for, limits
from ipfsmem.provider.contract import HostTrial, Pin, Provider, small_area
from ipfsmem.provider.small_objects import small_box, small_name
from ipfsmem.published.ipns_record import make_record, verify_record
from ipfsmem.seal.primitives import Signer25519

Outcome = Literal["ok", "cannot", "failed"]

#: Name of the last step, the overall verdict.
OVERALL: Final = "overall"


#: The empty folder of UnixFS, which every gateway can serve.
_EMPTY_FOLDER: Final = parse_cid("bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354")


class Step(msgspec.Struct, frozen=True):
    """One probe step; `cannot`: a missing capability, `failed`: a broken promise."""

    what: str
    outcome: Outcome
    text: str
    seconds: float
    hint: str = ""  #: next step after a failure, if its error has one


class _ContractViolation(Exception):
    """A broken promise of the contract."""


async def probe(provider: Provider, *, now_ms: int, random: Callable[[int], bytes]) -> list[Step]:
    """Probe everything that a provider declares, in order, with a verdict last. Never raises: failures are steps."""
    steps = await _Trial(provider, now_ms, random).run()
    failed = [step.what for step in steps if step.outcome == "failed"]
    can = provider.capabilities
    if failed:
        return [*steps, Step(OVERALL, "failed", f"unreliable: {', '.join(failed)} failed", 0.0)]
    return [*steps, Step(OVERALL, "ok", "; ".join([good_for(can), *limits(can)]), 0.0)]


class _Trial:
    """One tree of three small files at one provider, from upload to unpin.

    Each method runs one check and returns its outcome in words; it raises _Failed for a broken promise, else
    the provider's error.
    """

    def __init__(self, provider: Provider, now_ms: int, random: Callable[[int], bytes]) -> None:
        self.provider, self.now_ms, self.random = provider, now_ms, random
        self.files = {"hello.txt": random(32), "folder/data.bin": random(2000), "folder/none.txt": b""}
        self.tree = build_tree(self.files)
        self.name = f"ipfsmem-test-{random(6).hex()}"
        #: The root under which the provider keeps the tree.
        self.root = self.tree.cid
        self.steps: list[Step] = []

    async def run(self) -> list[Step]:
        """Run every step in order; only the upload if that fails."""
        can = self.provider.capabilities
        if not await self._step("upload", can.put, self._upload) and can.put:
            return self.steps
        if can.blocks and not can.put:
            await self._step("answer", True, self._answer)
        await self._step("has", can.has, self._has)
        await self._step("pin", can.pin, self._pin)
        await self._step("list", can.list, self._list)
        await self._step("fetch blocks", can.blocks and can.put, self._fetch_blocks)
        await self._step("fetch tree", can.dag and can.put, self._fetch_tree)
        await self._step("names", can.names, self._names)
        await self._step("small objects", can.small, self._small)
        await self._step("unpin", can.unpin and can.list, self._unpin)
        if isinstance(self.provider, HostTrial):
            await self._step("host", True, self.provider.try_host)
        return self.steps

    async def _step(self, what: str, able: bool, work: Callable[[], Awaitable[str]]) -> bool:
        """Run one check, record its outcome and return whether it worked."""
        started = time.monotonic()
        outcome: Outcome = "cannot"
        text = hint = ""
        if able:
            try:
                outcome, text = "ok", await work()
            except (IpfsmemError, _ContractViolation) as error:
                outcome, text, hint = "failed", str(error), getattr(error, "hint", "")
        self.steps.append(Step(what, outcome, text, round(time.monotonic() - started, 3), hint))
        return outcome == "ok"

    async def _upload(self) -> str:
        ours = self.tree.cid
        self.root = await self.provider.put_car(ours, self.tree.blocks, name=self.name)
        if self.root != ours and self.provider.capabilities.keeps_root:
            raise _ContractViolation(f"returned the address {self.root} for content with the address {ours}")
        address = "kept" if self.root == ours else self.root
        return f"{len(self.tree.blocks)} blocks as a CAR file, address {address}"

    async def _answer(self) -> str:
        # A read-only provider can only be tested for an answer; an empty one is an answer.
        for cid, data in (await self.provider.get_blocks([_EMPTY_FOLDER])).items():
            verify_block(cid, data)
        return "asked for an empty folder"

    async def _has(self) -> str:
        stored = await self.provider.has([cid for cid, _ in self.tree.blocks])
        if self.root not in stored:
            raise _ContractViolation("does not know the upload")
        return f"{len(stored)} of {len(self.tree.blocks)} blocks"

    async def _pin(self) -> str:
        pin = await self.provider.pin(self.root, self.name)
        return f"handle {pin.handle[:40]}" if pin.handle else "pinned"

    async def _list(self) -> str:
        pins = await self.provider.pins(self.name)
        if self.root not in {pin.cid for pin in pins}:
            raise _ContractViolation("the pin is not in the list")
        return f"{len(pins)} under {self.name}"

    async def _fetch_blocks(self) -> str:
        blocks: dict[CID, bytes] = {}
        wanted = [self.root]
        while wanted:  # from the root down, as a reader asks: some gateways serve a block only by its path
            blocks.update(await self.provider.get_blocks(wanted))
            for cid in wanted:
                if cid not in blocks:
                    raise _ContractViolation(f"block {cid} is not served")
                verify_block(cid, blocks[cid])
            nodes = [decode_node(blocks[cid]) for cid in wanted if cid.codec == DAG_PB]
            links = dict.fromkeys(link.cid for node in nodes for link in node.links)
            wanted = [cid for cid in links if cid not in blocks]
        back = drive(Reader().read_tree(self.root), from_mapping(blocks))
        for path, data in self.files.items():
            if back.get(path) != data:
                how = "with other bytes" if path in back else "not"
                raise _ContractViolation(
                    f"{path} came back {how}: {len(back)} of {len(self.files)} files are there"
                )
        return f"{len(blocks)} blocks, verified; {len(self.files)} files unchanged"

    async def _fetch_tree(self) -> str:
        seen = set()
        async for cid, data in self.provider.get_dag(self.root):
            verify_block(cid, data)
            seen.add(cid)
        if self.root not in seen:
            raise _ContractViolation("the tree was returned without its first block")
        return f"{len(seen)} blocks in one answer, verified"

    async def _names(self) -> str:
        seed, leads_to = self.random(32), f"/ipfs/{self.root}"
        name = ipns_name(Signer25519(seed).public)
        record = make_record(seed, leads_to, 1, (self.now_ms + 3_600_000) * 1_000_000)
        await self.provider.put_name(name, record)
        back = await self.provider.get_name(name)
        if back is None or verify_record(name, back).value != leads_to:
            raise _ContractViolation("another record than the published one is served")
        return f"{name[:16]}… put and read back"

    async def _small(self) -> str:
        area = small_area(self.provider)
        assert area is not None, "declared"
        data = self.random(200)
        name = small_name(box := small_box(self.random(32)), "test", data)
        await area.put_small(name, data)
        try:
            if await area.list_small([box]) != {name: len(data)}:
                raise _ContractViolation("a small object is not in the list")
            if await area.get_small([name]) != {name: data}:
                raise _ContractViolation("a small object was not returned, or with other bytes")
        finally:
            await area.remove_small([name])
        if await area.get_small([name]):
            raise _ContractViolation("a small object is still there after its removal")
        return "put, listed, read back and removed"

    async def _unpin(self) -> str:
        for pin in await self._own_pins():
            await self.provider.unpin(pin)
        if await self._own_pins():
            raise _ContractViolation("still in the list after unpin")
        return "gone from the list"

    async def _own_pins(self) -> list[Pin]:
        return [pin for pin in await self.provider.pins(self.name) if pin.cid == self.root]
