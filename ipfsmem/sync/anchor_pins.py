"""Publish anchors at providers without names, as a pinned root with the anchor's records and its ring (format section
7).

Recovery phrases and other wallets find the vault by such a root. It is valid only if every record is verified and the
last one names the keyring.json next to it, so it proves as much as the same records at names. No record is signed
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, ipns_name, parse_cid
from ipfsmem.content.dagpb import decode_node
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.device.tables import meta
from ipfsmem.errors import FormatError, ProviderError, ProviderRefused
from ipfsmem.provider.contract import Pin, Provider, same_root
from ipfsmem.published.ipns_record import MAX_RECORD, IpnsRecord, verify_record
from ipfsmem.ring.keyring import MAX_RING
from ipfsmem.sync.names import Names, pin_name, target
from ipfsmem.sync.pin_lists import readable_pins

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch
    from ipfsmem.sync.context import SyncContext
    from ipfsmem.sync.fetch import Fetcher

RING = "keyring.json"
SUFFIX = ".ipns"
#: Maximum number of chained names, and so of records in an anchor's root.
MAX_HOPS = 8
#: Maximum number of roots of a pin list that are read, newest first, and of concurrent reads.
MAX_PINS = 10_000
PINS_AT_ONCE = 128


class AnchorRoot(msgspec.Struct, frozen=True):
    """The content of an anchor's root: the bytes of the ring, and by name the records that lead from the anchor to
    it."""

    keyring: bytes
    records: dict[str, bytes]

    def tree(self) -> BuiltTree:
        """Build the root for publishing. Deterministic in ring and records."""
        files = {name + SUFFIX: record for name, record in self.records.items()}
        return build_tree({RING: self.keyring, **files})


def ring_tree(keyring: bytes) -> BuiltTree:
    """Build the root that an anchor's record names: a folder with only these bytes."""
    return build_tree({RING: keyring})


def chain(
    anchor: bytes, record_of: Callable[[str], IpnsRecord | None]
) -> tuple[dict[str, bytes], CID] | None:
    """Return the records from an anchor to a root, and that root; None if one is missing or they form a cycle."""
    name = ipns_name(anchor)
    records: dict[str, bytes] = {}
    while len(records) < MAX_HOPS and name not in records:
        record = record_of(name)
        if record is None:
            return None
        records[name] = record.encoded
        leads = target(record)
        if isinstance(leads, CID):
            return records, leads
        name = leads
    return None


def read_anchor_root(reader: Reader, root: CID, anchor: bytes) -> Fetch[AnchorRoot]:
    """Read an anchor's pinned root.

    Raises FormatError, LimitError, SignatureError, NotFoundError unless its records, each signed by its name,
    lead from the anchor to the ring next to them.
    """
    links = {link.name: link.cid for link in (yield from reader.list_directory(root))}
    record_files = [name for name in links if name.endswith(SUFFIX)]
    if RING not in links or not 0 < len(record_files) <= MAX_HOPS:
        raise FormatError(f"root {root} does not hold a key ring and the records of an anchor")
    files = yield from reader.read_files([links[name] for name in record_files], max_bytes=MAX_RECORD)
    records = {name.removesuffix(SUFFIX): files[links[name]] for name in record_files}
    verified = {name: verify_record(name, record) for name, record in records.items()}
    led = chain(anchor, verified.get)
    keyring = yield from reader.read_file(links[RING], max_bytes=MAX_RING)
    # A provider may lay files out in its own way, so the root in the record is rebuilt from the bytes.
    if led is None or led[1] != ring_tree(keyring).cid:
        raise FormatError(
            f"the records in root {root} do not lead from {ipns_name(anchor)} to the ring there"
        )
    return AnchorRoot(keyring, led[0])


async def learn_records(
    names: Names, fetcher: Fetcher, pins: Sequence[Pin], anchor: bytes
) -> dict[Pin, AnchorRoot]:
    """Read the roots of these pins and offer `names` their records for an anchor; return the verified pins with
    content.

    Invalid pins are skipped, since anyone who may pin there can list anything. Raises ProviderError if a root cannot
    be read.
    """
    anchor_roots: dict[CID, AnchorRoot] = {}

    def use(root: CID, read: AnchorRoot) -> None:
        anchor_roots[root] = read

    roots = list(dict.fromkeys(pin.cid for pin in pins))[:MAX_PINS]
    for start in range(0, len(roots), PINS_AT_ONCE):
        reads = {
            root: read_anchor_root(Reader(), root, anchor) for root in roots[start : start + PINS_AT_ONCE]
        }
        for error in (await fetcher.side_by_side(reads, use)).values():
            if isinstance(error, ProviderError):
                raise error
    for read in anchor_roots.values():
        for name, record in read.records.items():
            names.offer(name, record)
        fetcher.fetched.update(ring_tree(read.keyring).blocks)
    return {pin: anchor_roots[pin.cid] for pin in pins if pin.cid in anchor_roots}


async def learn_anchor(run: SyncContext, anchor: bytes) -> None:
    """Search for an anchor's records in every pin list of providers without names."""
    for provider in run.providers:
        if provider.capabilities.list and not provider.capabilities.names:
            pins, unread = await readable_pins(provider, pin_name(anchor))
            try:
                await learn_records(run.names, run.fetcher, pins, anchor)
                if unread is not None:
                    raise unread
            except ProviderError as error:
                run.notices.say(
                    "channel-down",
                    f"the pin list of {provider.name} could not be read: {error}",
                    provider=provider.name,
                )


async def learn_unknown_anchors(run: SyncContext) -> None:
    """Learn the records of further anchors that are unknown to this device. A move copies them, and an unlocked root
    signs newer ones."""
    unknown = [one for one in further_anchors(run) if run.names.known(ipns_name(one)) is None]
    for anchor in unknown:
        await learn_anchor(run, anchor)
    if unknown:
        with run.replica.transaction():
            run.fetcher.keep()
            run.names.keep()


def further_anchors(run: SyncContext) -> list[bytes]:
    """Return the anchors of all members that may administer (recovery keys, other wallets), without the vault's own.

    Anchors of revoked members are included: their old records lead to a ring with these members, the newest to a ring
    without.
    """
    ring = run.replica.ring
    if ring is None:
        return []
    view = ring.view
    anchors = {person.anchor for person in view.members.values() if person.anchor and person.role == "admin"}
    anchors |= set(view.old_anchors.values())
    return sorted(anchors - {run.anchor})


async def publish_anchor_pins(run: SyncContext) -> None:
    """Pin the records of further anchors at every provider with a list and no names.

    Known pins need no request. The next sync retries a provider that fails.
    """
    uploading = any(provider.capabilities.put for provider in run.providers)
    takers = [provider for provider in run.providers if uploading and _accepts_pins(provider)]
    for anchor in further_anchors(run) if takers else ():
        for provider in sorted(takers, key=lambda one: not one.capabilities.put):
            anchor_root = _anchor_root(run, anchor)
            if anchor_root is None:
                break
            if _pinned_roots(run).get(provider.name, {}).get(anchor.hex()) == str(anchor_root.tree().cid):
                continue
            try:
                await _publish_to(run, provider, anchor)
            except ProviderError as error:
                run.notices.failed(
                    f"the start version for new devices was not pinned at {provider.name}",
                    error,
                    provider=provider.name,
                )


def _accepts_pins(provider: Provider) -> bool:
    can = provider.capabilities
    return can.list and (can.put or can.pin) and not can.names


def _anchor_root(run: SyncContext, anchor: bytes) -> AnchorRoot | None:
    """Return the root to pin for an anchor, from the greatest known records; None if a part is missing on this
    device."""
    try:
        led = chain(anchor, run.names.known)
        keyring = _ring_bytes(run, led[1]) if led is not None else None
    except FormatError:
        return None
    return AnchorRoot(keyring, led[0]) if led is not None and keyring is not None else None


def _ring_bytes(run: SyncContext, root: CID) -> bytes | None:
    def here(cid: CID) -> bytes | None:
        return run.fetcher.fetched.get(cid) or run.replica.db.block(cid.digest)

    block = here(root)
    links = {link.name: link.cid for link in decode_node(block).links} if block is not None else {}
    keyring = here(links[RING]) if RING in links else None
    return keyring if keyring is not None and ring_tree(keyring).cid == root else None


async def _publish_to(run: SyncContext, provider: Provider, anchor: bytes) -> None:
    """Pin the greatest records at a provider unless they are pinned, then unpin older ones."""
    there = await learn_records(run.names, run.fetcher, await provider.pins(pin_name(anchor)), anchor)
    anchor_root = _anchor_root(run, anchor)
    if anchor_root is None:
        return
    tree = anchor_root.tree()
    if anchor_root not in there.values():
        await _pin(run, provider, tree, pin_name(anchor))
    if provider.capabilities.unpin:
        for pin, root in there.items():
            if root != anchor_root:
                await provider.unpin(pin)
    pinned = _pinned_roots(run)
    pinned.setdefault(provider.name, {})[anchor.hex()] = str(tree.cid)
    with run.replica.transaction():
        run.fetcher.keep()
        run.replica.db.add_blocks((cid.digest, data) for cid, data in tree.blocks)
        run.names.keep()
        run.replica.db.set_meta(meta.ANCHOR_PINS, msgspec.json.encode(pinned))


async def _pin(run: SyncContext, provider: Provider, tree: BuiltTree, name: str) -> None:
    holders = [provider] if provider.capabilities.put else [p for p in run.providers if p.capabilities.put]
    answered = tree.cid
    for holder in holders[:1]:
        answered = same_root(tree.cid, await holder.put_car(tree.cid, tree.blocks, name=name), holder)
        run.sending.count(len(tree.blocks), sum(len(data) for _, data in tree.blocks))
    if provider.capabilities.pin:
        await provider.pin(answered, name)


def _pinned_roots(run: SyncContext) -> dict[str, dict[str, str]]:
    """Return provider -> anchor -> root, as known to this device."""
    stored = run.replica.db.get_meta(meta.ANCHOR_PINS)
    return read_json(stored, type=dict[str, dict[str, str]]) if stored else {}


async def pinned_anchors(run: SyncContext, provider: Provider) -> list[Pin]:
    """Return the pins for further anchors at a provider. Lost pins are removed from the notes, so that the next sync
    restores them."""
    all_pins: list[Pin] = []
    noted = _pinned_roots(run)
    for anchor in further_anchors(run) if _accepts_pins(provider) else ():
        pins = await provider.pins(pin_name(anchor))
        if not pins:
            noted.get(provider.name, {}).pop(anchor.hex(), None)
        all_pins += pins
    with run.replica.transaction():
        run.replica.db.set_meta(meta.ANCHOR_PINS, msgspec.json.encode(noted))
    return all_pins


def known_roots(run: SyncContext) -> list[CID]:
    """Return the roots that this device last pinned for anchors, from local notes, without a request."""
    return [parse_cid(root) for each in _pinned_roots(run).values() for root in each.values()]


async def check_anchor_pins(run: SyncContext, provider: Provider) -> None:
    """Check that every further anchor that this device can publish is at a provider. Raises ProviderRefused naming
    one that is not."""
    for anchor in further_anchors(run) if _accepts_pins(provider) else ():
        if _anchor_root(run, anchor) is not None and not await provider.pins(pin_name(anchor)):
            raise ProviderRefused(
                f"{provider.name} does not list the start version for new devices yet ({ipns_name(anchor)})",
                hint="Run the move again later.",
            )
