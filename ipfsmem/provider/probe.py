"""Trying a provider out: upload, question, listing, reading back, name, unpin, each done for real and checked.

What it uploads is a few random bytes under a name of its own, gone again at the end. What comes back is compared with
what was sent, file by file. It is given no memory and no key.
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
from ipfsmem.provider.contract import Provider
from ipfsmem.published.ipns_record import make_record, verify_record
from ipfsmem.seal.primitives import Signer25519

Outcome = Literal["ok", "cannot", "failed"]

#: The last step: what it comes to.
ALTOGETHER: Final = "altogether"


#: The empty folder of UnixFS, which every gateway can give.
_EMPTY_FOLDER: Final = parse_cid("bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354")


class Step(msgspec.Struct, frozen=True):
    """One thing that was tried: `cannot` is a missing capability, `failed` a broken promise."""

    what: str
    outcome: Outcome
    text: str
    seconds: float
    hint: str = ""  #: what to do about a failure, where its error says so


class _Failed(Exception):
    """A promise of the contract that was not kept."""


async def probe(provider: Provider, *, now_ms: int, random: Callable[[int], bytes]) -> list[Step]:
    """Try everything that a provider says it can do, in order, and say at the end what it comes to. Raises nothing: what
    fails is in the steps."""
    steps = await _tried(provider, now_ms=now_ms, random=random)
    failed = [step.what for step in steps if step.outcome == "failed"]
    can = provider.capabilities
    if failed:
        return [*steps, Step(ALTOGETHER, "failed", f"not to be relied on: {', '.join(failed)} failed", 0.0)]
    return [*steps, Step(ALTOGETHER, "ok", "; ".join([good_for(can), *limits(can)]), 0.0)]


async def _tried(provider: Provider, *, now_ms: int, random: Callable[[int], bytes]) -> list[Step]:
    files = {"hello.txt": random(32), "folder/data.bin": random(2000), "folder/none.txt": b""}
    tree = build_tree(files)
    name = f"ipfsmem-test-{random(6).hex()}"
    cids = [cid for cid, _ in tree.blocks]
    can = provider.capabilities
    steps: list[Step] = []
    placed: list[CID] = []

    async def attempt(what: str, able: bool, work: Callable[[], Awaitable[str]]) -> None:
        started = time.monotonic()
        outcome: Outcome = "cannot"
        text = hint = ""
        if able:
            try:
                outcome, text = "ok", await work()
            except (IpfsmemError, _Failed) as error:
                outcome, text, hint = "failed", str(error), getattr(error, "hint", "")
        steps.append(Step(what, outcome, text, round(time.monotonic() - started, 3), hint))

    async def upload() -> str:
        answered = await provider.put_car(tree.cid, tree.blocks, name=name)
        if answered != tree.cid and can.keeps_root:
            raise _Failed(f"gave the address {answered} to what has the address {tree.cid}")
        placed.append(answered)
        return (
            f"{len(tree.blocks)} blocks as a CAR file, address {'kept' if answered == tree.cid else answered}"
        )

    await attempt("upload", can.put, upload)
    if can.put and not placed:
        return steps
    root = placed[0] if placed else tree.cid

    async def question() -> str:
        there = await provider.has(cids)
        if root not in there:
            raise _Failed("does not know what it took")
        return f"{len(there)} of {len(tree.blocks)} blocks"

    async def pin() -> str:
        made = await provider.pin(root, name)
        return f"handle {made.handle[:40]}" if made.handle else "pinned"

    async def listing() -> str:
        pins = await provider.pins(name)
        if root not in {found.cid for found in pins}:
            raise _Failed("the pin is not in the list")
        return f"{len(pins)} under {name}"

    async def fetch() -> str:
        found: dict[CID, bytes] = {}
        wanted = [root]
        while wanted:  # from the root down, as a reader asks: some gateways serve a block only by its path
            found.update(await provider.get_blocks(wanted))
            for cid in wanted:
                if cid not in found:
                    raise _Failed(f"block {cid} is not served")
                verify_block(cid, found[cid])
            links = [
                link.cid for cid in wanted if cid.codec == DAG_PB for link in decode_node(found[cid]).links
            ]
            wanted = [cid for cid in dict.fromkeys(links) if cid not in found]
        back = drive(Reader().read_tree(root), from_mapping(found))
        for path, data in files.items():
            if back.get(path) != data:
                how = "with other bytes" if path in back else "not"
                raise _Failed(f"{path} came back {how}: {len(back)} of {len(files)} files are there")
        return f"{len(found)} blocks, verified; {len(files)} files as they were sent"

    async def dag() -> str:
        seen = set()
        async for cid, data in provider.get_dag(root):
            verify_block(cid, data)
            seen.add(cid)
        if root not in seen:
            raise _Failed("the tree came without its beginning")
        return f"{len(seen)} blocks in one answer, verified"

    async def names() -> str:
        seed = random(32)
        key = ipns_name(Signer25519(seed).public)
        record = make_record(seed, f"/ipfs/{root}", 1, (now_ms + 3_600_000) * 1_000_000)
        await provider.put_name(key, record)
        back = await provider.get_name(key)
        if back is None or verify_record(key, back).value != f"/ipfs/{root}":
            raise _Failed("the record that was put is not what is served")
        return f"{key[:16]}… put and read back"

    async def unpin() -> str:
        pins = [found for found in await provider.pins(name) if found.cid == root]
        for found in pins:
            await provider.unpin(found)
        if any(found.cid == root for found in await provider.pins(name)):
            raise _Failed("still in the list after unpin")
        return "gone from the list"

    async def answer() -> str:
        # It was given nothing to be asked for, so what can be tried is that it answers; that it has nothing is an answer.
        found = await provider.get_blocks([_EMPTY_FOLDER])
        for cid, data in found.items():
            verify_block(cid, data)
        return "asked for an empty folder"

    if not can.put and can.blocks:
        await attempt("answer", True, answer)
    await attempt("has", can.has, question)
    await attempt("pin", can.pin, pin)
    await attempt("list", can.list, listing)
    await attempt("fetch blocks", can.blocks and can.put, fetch)
    await attempt("fetch tree", can.dag and can.put, dag)
    await attempt("names", can.names, names)
    await attempt("unpin", can.unpin and can.list, unpin)
    return steps
