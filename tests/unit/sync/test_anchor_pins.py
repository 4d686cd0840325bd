"""Recovery phrases and further wallets at providers without names: their records are in pin lists and are verified."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from ipfsmem.causal.clock import next_hlc
from ipfsmem.content.cid import CID, ipns_name, parse_cid, raw_cid
from ipfsmem.content.dagpb import BlockLink, decode_node
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.content.unixfs import directory
from ipfsmem.device.replica import Environment
from ipfsmem.errors import (
    NoVaultError,
    ProviderError,
    ProviderRefused,
    SignatureError,
    WrongWalletError,
)
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Block, Capabilities, Pin
from ipfsmem.published.ipns_record import make_record
from ipfsmem.ring import operations
from ipfsmem.ring.statements import Role, member_id
from ipfsmem.sync.anchor_pins import AnchorRoot, ring_tree
from ipfsmem.sync.names import ANCHOR_LIFE_MS, Names, pin_name
from ipfsmem.sync.report import Notices
from ipfsmem.testing import MockClock, SeededRandom, SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault.home import Home
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import body, restore

WALLET = RootKeys.from_random(b"\x03" * 64, "default", 1)
OTHER = RootKeys.from_random(b"\x04" * 64, "default", 1)
PINS = msgspec.structs.replace(FULL, names=False)


def pins_only(cloud: SimCloud, name: str = "pins") -> SimProvider:
    return SimProvider(cloud, name=name, capabilities=PINS)


def make(home: Path, provider: SimProvider, *, unlock: RootKeys | None = WALLET) -> tuple[Memory, RootKeys]:
    """Return a new vault with one memory, not yet synced, and its recovery key."""
    memory = Memory.create(
        "m", "encrypted-ipfs", provider=provider, unlock=unlock, passphrase=False, home=home / "a"
    )
    assert memory.recovery_words is not None
    memory.write("tone", "x")
    return memory, RootKeys.from_recovery(from_words(" ".join(memory.recovery_words)))


def enrol_wallet(memory: Memory, wallet: RootKeys = OTHER, role: Role = "admin") -> None:
    """Enrol a second wallet (format section 4): an admin with an anchor, whose record it signs while it is
    available."""
    replica = memory.replica
    assert replica.ring is not None and memory._syncing.root is not None
    vault = replica.ring.vault
    itself = operations.enrollee_of(
        wallet.admin, wallet.box_public, "second wallet", vault, kind="wallet", anchor=wallet.head_public
    )
    with replica.transaction():
        since = replica.store.frame.hlc
        replica.set_ring(
            operations.enrol(replica.ring, memory._syncing.root.admin, itself, role, since=since)
        )
        names = Names(replica, (), Notices())
        leads = f"/ipns/{ipns_name(memory._syncing.root.head_public)}"
        names.sign(wallet.head_seed, wallet.head_public, leads, ANCHOR_LIFE_MS)
        names.keep()


def test_recovery_phrase_restores_through_a_pin_list(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    b = restore(tmp_path, "b", pins_only(cloud), words)
    assert body(b, "tone") == "x"
    b.write("role", "by the one with the words")
    asyncio.run(b.sync())
    asyncio.run(a.sync())
    assert body(a, "role") == "by the one with the words"


def test_second_wallet_restores_through_a_pin_list(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, _ = make(tmp_path, pins_only(cloud))
    enrol_wallet(a)
    asyncio.run(a.sync())
    b = restore(tmp_path, "b", pins_only(cloud), OTHER)
    assert body(b, "tone") == "x"
    b.write("role", "by the second wallet")
    asyncio.run(b.sync())
    asyncio.run(a.sync())
    assert body(a, "role") == "by the second wallet"


@pytest.mark.parametrize("which", ["words", "wallet"])
def test_phrase_and_second_wallet_restore_through_names(tmp_path: Path, which: str) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, SimProvider(cloud))
    enrol_wallet(a)
    asyncio.run(a.sync())
    b = restore(tmp_path, "b", SimProvider(cloud), words if which == "words" else OTHER)
    assert body(b, "tone") == "x"


# -- costs ------------------------------------------------------------------------------------------------------------


def under(cloud: SimCloud, key: RootKeys) -> list[CID]:
    """Return the roots pinned for an anchor, oldest first."""
    return [pin.cid for pin in cloud.pins if pin.name == pin_name(key.head_public)]


def test_anchor_costs_one_pin_and_is_not_uploaded_again(tmp_path: Path) -> None:
    cloud = SimCloud()
    provider = pins_only(cloud)
    a, words = make(tmp_path, provider)
    asyncio.run(a.sync())
    (root,) = under(cloud, words)
    assert len(cloud.tree(root)) == 4  # the folder, the ring, two records
    plain = SimProvider(SimCloud(), capabilities=PINS)
    b = Memory.create(
        "m",
        "encrypted-ipfs",
        provider=plain,
        unlock=WALLET,
        recovery=False,
        passphrase=False,
        home=tmp_path / "b",
    )
    b.write("tone", "x")
    asyncio.run(b.sync())
    for n in range(3):
        a.write("tone", f"text {n}")
        b.write("tone", f"text {n}")
        del provider.calls[:], plain.calls[:]
        sent = [asyncio.run(one.sync()).blocks_sent for one in (a, b)]
        assert provider.calls == plain.calls and sent[0] == sent[1]
    assert under(cloud, words) == [root]


def test_changed_ring_replaces_the_anchor_pin_after_the_new_one(tmp_path: Path) -> None:
    cloud = SimCloud()
    provider = pins_only(cloud)
    a, words = make(tmp_path, provider)
    asyncio.run(a.sync())
    (old,) = under(cloud, words)
    asyncio.run(a.members.rotate())
    (new,) = under(cloud, words)
    assert new != old
    calls = provider.calls
    last = len(calls) - 1 - calls[::-1].index("unpin")
    assert "pin" in calls[last - 2 : last] and calls.count("unpin") == 1
    b = restore(tmp_path, "b", pins_only(cloud), words)
    assert b.replica.ring == a.replica.ring or body(b, "tone") == "x"


@pytest.mark.parametrize("call", range(1, 14))
def test_failed_call_for_an_anchor_pin_is_repeated(tmp_path: Path, call: int) -> None:
    cloud = SimCloud()
    provider = pins_only(cloud)
    a, words = make(tmp_path, provider)
    asyncio.run(a.sync())
    provider.fail_call(call)
    with contextlib.suppress(ProviderError):
        asyncio.run(a.members.rotate())
    assert under(cloud, words)
    provider.stop_failing()
    asyncio.run(a.sync())
    asyncio.run(a.sync())
    b = restore(tmp_path, "b", pins_only(cloud), words)
    assert b.replica.ring is not None and a.replica.ring is not None
    assert b.replica.ring.join(a.replica.ring) == b.replica.ring


def test_devices_without_the_wallet_pin_missing_anchor_records(tmp_path: Path) -> None:
    """As for a vault of an earlier version."""
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    cloud.pins = [pin for pin in cloud.pins if pin.name != pin_name(words.head_public)]
    with a.replica.transaction():
        a.replica.db.connection.execute("DELETE FROM meta WHERE name='anchor pins'")
    a.close()
    provider = pins_only(cloud)
    a = Memory.load("m", provider=provider, home=tmp_path / "a")
    assert not a.unlocked
    asyncio.run(a.sync())
    assert len(under(cloud, words)) == 1
    # A device without that knowledge checks, and sends nothing.
    with a.replica.transaction():
        a.replica.db.connection.execute("DELETE FROM meta WHERE name='anchor pins'")
    del provider.calls[:]
    assert asyncio.run(a.sync()).blocks_sent == 0 and "put_car" not in provider.calls
    assert body(restore(tmp_path, "b", pins_only(cloud), words), "tone") == "x"


def test_devices_compute_the_same_anchor_root(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    one = under(cloud, words)
    # The wallet alone: it learns the words' record, and signs its own after the present one.
    provider = pins_only(cloud)
    b = restore(tmp_path, "b", provider, WALLET)
    assert len(under(cloud, words)) == 1 and under(cloud, words) != one
    asyncio.run(a.sync())
    asyncio.run(b.sync())
    stands = under(cloud, words)
    del provider.calls[:]
    for memory in (a, b, a):
        asyncio.run(memory.sync())
    assert under(cloud, words) == stands
    c = restore(tmp_path, "c", pins_only(cloud), words)
    assert c.replica.ring is not None and {a.device, b.device} <= c.replica.ring.view.members.keys()


def test_two_devices_restored_by_phrase_pin_under_the_vault_name(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    b = restore(tmp_path, "b", pins_only(cloud), words)
    c = restore(tmp_path, "c", pins_only(cloud), words)
    for memory in (b, c):
        assert memory.replica.config.vault == msgspec.structs.replace(
            memory.replica.config.vault, anchor=WALLET.head_public.hex(), admin=WALLET.admin_public.hex()
        )
    c.write("from-c", "text")
    for memory in (c, b, a):
        asyncio.run(memory.sync())
    assert body(a, "from-c") == body(b, "from-c") == "text"
    assert len(under(cloud, words)) == 1


def test_second_wallet_unlocks_a_device_that_it_restored(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    enrol_wallet(a)
    asyncio.run(a.sync())
    restore(tmp_path, "b", pins_only(cloud), OTHER).close()
    b = Memory.load("m", provider=pins_only(cloud), home=tmp_path / "b")
    b.unlock(OTHER)
    asyncio.run(b.members.revoke(a.device))
    with pytest.raises(WrongWalletError):
        b.unlock(RootKeys.from_random(b"\x05" * 64, "default", 1))
    c = restore(tmp_path, "c", pins_only(cloud), words)
    assert c.replica.ring is not None and a.device in c.replica.ring.view.revoked


# -- providers of other kinds --------------------------------------------------------------------------------------------


class PinsAtUpload(SimProvider):
    """A provider where only an upload makes a pin: Pinata, Filebase, w3up."""

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        answered = await super().put_car(root, blocks, name=name)
        self.cloud.pins.append(Pin(answered, name, self.cloud.handle(), self.clock.ms))
        return answered


def test_anchor_is_uploaded_where_an_upload_is_a_pin(tmp_path: Path) -> None:
    cloud = SimCloud()
    can = msgspec.structs.replace(PINS, pin=False, has=False, partial_car=False)
    a, words = make(tmp_path, PinsAtUpload(cloud, capabilities=can))
    asyncio.run(a.sync())
    asyncio.run(a.members.rotate())
    assert len(under(cloud, words)) == 1
    b = restore(tmp_path, "b", PinsAtUpload(cloud, capabilities=can), words)
    assert body(b, "tone") == "x"


class LaysOut(PinsAtUpload):
    """A provider that accepts files and makes its own folders: another root for the same content."""

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        given = dict(blocks)
        self.cloud.blocks.update(given)
        node = decode_node(given[root])
        links = [link for link in node.links if link.name != "zzz"]
        made = directory([*links, BlockLink("zzz", self._extra(), 3)])
        self.cloud.blocks.update(made.blocks)
        return await super().put_car(made.cid, list(made.blocks), name=name)

    def _extra(self) -> CID:
        cid = raw_cid(sha256(b"its").digest())
        self.cloud.blocks[cid] = b"its"
        return cid


def test_anchor_is_pinned_at_a_service_with_another_layout(tmp_path: Path) -> None:
    cloud = SimCloud()
    can = msgspec.structs.replace(PINS, pin=False, has=False, partial_car=False, keeps_root=False)
    provider = LaysOut(cloud, capabilities=can)
    a, words = make(tmp_path, provider)
    asyncio.run(a.sync())
    asyncio.run(a.members.rotate())
    stands = [pin for pin in cloud.pins if pin.name == pin_name(words.head_public)]
    asyncio.run(a.sync())
    assert len(stands) == 1
    assert [pin for pin in cloud.pins if pin.name == pin_name(words.head_public)] == stands
    b = restore(tmp_path, "b", LaysOut(cloud, capabilities=can), words)
    assert body(b, "tone") == "x"


def test_pin_only_service_lists_the_anchor_too(tmp_path: Path) -> None:
    cloud = SimCloud()
    node = SimProvider(cloud, name="node", capabilities=msgspec.structs.replace(FULL, list=False))
    can = Capabilities(put=False, pin=True, list=True, unpin=True, blocks=True)
    service = SimProvider(cloud, name="service", capabilities=can)
    made = Memory.create(
        "m", "encrypted-ipfs", provider=[node, service], unlock=WALLET, passphrase=False, home=tmp_path / "a"
    )
    assert made.recovery_words is not None
    words = RootKeys.from_recovery(from_words(" ".join(made.recovery_words)))
    made.write("tone", "x")
    asyncio.run(made.sync())
    assert len(under(cloud, words)) == 1
    other = SimProvider(SimCloud(), name="other", capabilities=msgspec.structs.replace(FULL, list=False))
    b = asyncio.run(
        Memory.recover(
            "m",
            provider=[other, SimProvider(cloud, name="service", capabilities=can)],
            unlock=words,
            passphrase=False,
            home=tmp_path / "b",
        )
    )
    assert body(b, "tone") == "x"


def test_unreadable_service_still_replaces_the_old_anchor_pin(tmp_path: Path) -> None:
    """Pinata without a gateway lists pins and serves no blocks."""
    cloud = SimCloud()
    can = msgspec.structs.replace(PINS, blocks=False, dag=False)
    a, words = make(tmp_path, SimProvider(cloud, capabilities=can))
    asyncio.run(a.sync())
    for _ in range(2):
        before = under(cloud, words)
        asyncio.run(a.maintenance.gc(keep_roots=0, keep_days=0))
        asyncio.run(a.members.rotate())
        assert len(under(cloud, words)) == 1 and under(cloud, words) != before


def test_provider_with_names_gets_no_anchor_pin(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, SimProvider(cloud))
    asyncio.run(a.sync())
    assert not under(cloud, words)


@pytest.mark.parametrize("who", ["made it", "came by the wallet"])
@pytest.mark.parametrize("names", [False, True])
def test_move_includes_anchor_pins(tmp_path: Path, who: str, names: bool) -> None:
    old, new = SimCloud(), SimCloud()
    a, words = make(tmp_path, pins_only(old, "old"))
    enrol_wallet(a)
    asyncio.run(a.sync())
    if who != "made it":
        a = restore(tmp_path, "b", pins_only(old, "old"), WALLET)
        a.close()
        a = Memory.load("m", provider=pins_only(old, "old"), home=tmp_path / "b")
        # As a device that existed before records were learned.
        with a.replica.transaction():
            a.replica.db.connection.execute("DELETE FROM meta WHERE name IN ('names', 'anchor pins')")
    target = SimProvider(new, name="new", capabilities=FULL if names else PINS)
    asyncio.run(a.providers.move(target))
    for name, key in (("c", words), ("d", OTHER)):
        there = SimProvider(new, name="new", capabilities=FULL if names else PINS)
        assert body(restore(tmp_path, name, there, key), "tone") == "x"


def test_move_from_a_provider_with_names_adds_anchor_pins(tmp_path: Path) -> None:
    old, new = SimCloud(), SimCloud()
    a, words = make(tmp_path, SimProvider(old, name="old"))
    asyncio.run(a.sync())
    b = restore(tmp_path, "b", SimProvider(old, name="old"), WALLET)
    b.lock()
    asyncio.run(b.providers.move(pins_only(new, "new")))
    c = restore(tmp_path, "c", pins_only(new, "new"), words)
    assert body(c, "tone") == "x"
    d = SimProvider(SimCloud(), name="names again")
    asyncio.run(c.providers.move(d))
    assert body(restore(tmp_path, "d", SimProvider(d.cloud, name="names again"), words), "tone") == "x"


def test_move_fails_while_anchor_pins_cannot_be_stored(tmp_path: Path) -> None:
    class Picky(SimProvider):
        async def pin(self, root: CID, name: str) -> Pin:
            if name == pin_name(words.head_public) and picky:
                raise ProviderRefused("no more names on this plan")
            return await super().pin(root, name)

    picky = True
    a, words = make(tmp_path, pins_only(SimCloud(), "old"))
    asyncio.run(a.sync())
    new = Picky(SimCloud(), name="new", capabilities=PINS)
    with pytest.raises(ProviderRefused, match="does not list the start version for new devices yet"):
        asyncio.run(a.providers.move(new))
    picky = False
    asyncio.run(a.providers.move(new))
    assert len(under(new.cloud, words)) == 1


def test_gc_lists_anchor_pins_with_their_reason(tmp_path: Path) -> None:
    cloud = SimCloud()
    clock = MockClock()
    world = Environment(lambda: clock.ms, SeededRandom("gc"))
    a = Memory.create(
        "m",
        "encrypted-ipfs",
        provider=pins_only(cloud),
        unlock=WALLET,
        passphrase=False,
        home=Home(folder=tmp_path / "a", environment=world),
    )
    assert a.recovery_words is not None
    words = RootKeys.from_recovery(from_words(" ".join(a.recovery_words)))
    for n in range(3):
        a.write("tone", f"text {n}")
        asyncio.run(a.sync())
        clock.advance(40 * 86_400)
    a.lock()
    for _ in range(2):
        (root,) = under(cloud, words)
        collection = asyncio.run(a.maintenance.gc(keep_roots=0, keep_days=0))
        (verdict,) = [one for one in collection.providers["pins"] if one.root == str(root)]
        assert verdict.keep and verdict.why == "new devices start from it: kept forever"
        cloud.collect()
    asyncio.run(a.sync())
    assert under(cloud, words) == [root]
    # gc reports the loss, and the next sync uploads it again.
    cloud.pins = [pin for pin in cloud.pins if pin.name != pin_name(words.head_public)]
    asyncio.run(a.maintenance.gc(dry_run=True))
    asyncio.run(a.sync())
    assert under(cloud, words) == [root]
    assert body(restore(tmp_path, "b", pins_only(cloud), words), "tone") == "text 2"


# -- foreign pins -----------------------------------------------------------------------------------------------------


EVIL = RootKeys.from_random(b"\x66" * 64, "default", 1)


def evil_twin(home: Path, cloud: SimCloud, victim: RootKeys) -> Memory:
    """A vault of an attacker that enrols the victim's key as an admin, with the true anchor."""
    evil = Memory.create(
        "m",
        "encrypted-ipfs",
        provider=pins_only(cloud),
        unlock=EVIL,
        passphrase=False,
        recovery=False,
        home=home / "evil",
    )
    evil.write("tone", "believe me")
    ring = evil.replica.ring
    assert ring is not None
    since = evil.replica.store.frame.hlc
    itself = operations.enrollee_of(
        victim.admin, victim.box_public, "victim", ring.vault, anchor=victim.head_public
    )
    # A key that did not agree cannot be enrolled; a key that once did proves nothing either.
    with pytest.raises(SignatureError):
        operations.enrol(
            ring, EVIL.admin, msgspec.structs.replace(itself, own="A" * 86), "admin", since=since
        )
    ring = operations.enrol(ring, EVIL.admin, itself, "admin", since=since)
    claimed = operations.enrollee_of(
        EVIL.admin, EVIL.box_public, "wallet", ring.vault, anchor=WALLET.head_public
    )
    ring = operations.enrol(ring, EVIL.admin, claimed, "admin", since=next_hlc(since, 0))
    with evil.replica.transaction():
        evil.replica.set_ring(ring)
    asyncio.run(evil.sync())
    return evil


def plant(cloud: SimCloud, tree: BuiltTree, *names: str) -> None:
    """Pin a root as the newest, as the operator of the provider can."""
    cloud.blocks.update(tree.blocks)
    cloud.pins += [Pin(tree.cid, name, cloud.handle(), 2**50) for name in names]


@pytest.mark.parametrize("true_one", [True, False])
def test_vault_that_enrols_a_foreign_key_is_not_joined(tmp_path: Path, true_one: bool) -> None:
    """An attacker enrols the public keys of the victim in its own vault, and lists that vault everywhere."""
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    genuine = [dict(cloud.blocks), list(cloud.pins)]
    evil = evil_twin(tmp_path, cloud, words)
    assert evil.replica.ring is not None
    root = evil.status().root
    assert root is not None
    if not true_one:
        cloud.pins = [pin for pin in cloud.pins if pin not in genuine[1]]
    both = [pin_name(words.head_public), pin_name(WALLET.head_public)]
    cloud.pins += [Pin(parse_cid(root), name, cloud.handle(), 2**50) for name in both]
    keyring = evil.replica.ring.serialise()
    leads = f"/ipfs/{ring_tree(keyring).cid}"
    until = 2**62
    own, main = ipns_name(words.head_public), ipns_name(WALLET.head_public)
    forged = {
        own: make_record(EVIL.head_seed, f"/ipns/{main}", 9, until),
        main: make_record(EVIL.head_seed, leads, 9, until),
    }
    names = Names(a.replica, (), Notices())
    true = {name: names.known(name).encoded for name in (own, main)}  # type: ignore[union-attr]
    for records in (
        forged,
        {**true, main: forged[main]},
        true,  # true records next to another ring
        {own: true[own]},
        {ipns_name(EVIL.head_public): make_record(EVIL.head_seed, leads, 9, until)},
    ):
        plant(cloud, AnchorRoot(keyring, records).tree(), *both)
    plant(cloud, ring_tree(keyring), *both)
    if true_one:
        b = restore(tmp_path, "b", pins_only(cloud), words)
        assert body(b, "tone") == "x"
        assert b.replica.vault_tag == a.replica.vault_tag
        b.write("role", "mine")
        asyncio.run(b.sync())
        assert b.replica.ring is not None
        assert member_id(EVIL.admin_public) not in b.replica.ring.view.members
        asyncio.run(evil.sync())
        assert evil.read("role") is None
    else:
        with pytest.raises(NoVaultError):
            restore(tmp_path, "b", pins_only(cloud), words)
        assert not (tmp_path / "b" / "m" / "ipfsmem.json").exists()


def test_old_pin_list_does_not_undo_a_revoke(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    lost = restore(tmp_path, "lost", pins_only(cloud), WALLET)
    asyncio.run(a.sync())
    old = SimProvider(cloud, name="pins", capabilities=PINS)
    old.freeze_pins()
    asyncio.run(a.members.revoke(lost.device))
    b = restore(tmp_path, "b", old, words)  # new, and shown only the past
    b.write("role", "text")
    asyncio.run(b.sync())
    old.faults.pins = None
    for memory in (a, b, a, b):
        asyncio.run(memory.sync())
    for memory in (a, b):
        assert memory.replica.ring is not None
        assert lost.device in memory.replica.ring.view.revoked
        assert body(memory, "role") == "text"


def test_invalid_entries_of_the_anchor_list_are_skipped(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    (true,) = under(cloud, words)
    name = pin_name(words.head_public)
    assert a.replica.ring is not None
    keyring = a.replica.ring.serialise()
    own = ipns_name(words.head_public) + ".ipns"
    rubbish = (
        {},
        {"keyring.json": b"{}"},
        {"keyring.json": bytes(300_000)},
        {"keyring.json": keyring},
        {"keyring.json": keyring, own: b""},
        {"keyring.json": keyring, own: bytes(11_000)},
        {"keyring.json": keyring, "x.ipns": b"x"},
        {"keyring.json": keyring, **{f"{n}.ipns": b"x" for n in range(9)}},
        {"keyring.json/x": b"x", own: b"x"},
        {"keyring.json": keyring, own + "/x": b"x"},
        {"keyring.json": keyring, own: make_record(words.head_seed, "/ipns/" + own[:-5], 1, 2**62)},
        {"keyring.json": keyring, own: make_record(words.head_seed, f"/ipfs/{true}", 1, 2**62)[:-1]},
        {"keyring.json": keyring, own: make_record(words.head_seed, f"/ipfs/{raw_cid(bytes(32))}", 1, 2**62)},
    )
    for files in rubbish:
        plant(cloud, build_tree(files), name)
    gone = build_tree({"keyring.json": b"gone", own: b"gone"})
    cloud.pins.append(Pin(gone.cid, name, cloud.handle(), 2**50))
    cloud.pins.append(Pin(raw_cid(sha256(b"its").digest()), name, cloud.handle(), 2**50))
    b = restore(tmp_path, "b", pins_only(cloud), words)
    assert body(b, "tone") == "x"
    for files in rubbish:
        if len(files) != 1 or keyring not in files.values():  # the true record names this ring
            assert not b.replica.db.has_block(build_tree(files).cid.digest)
    # Unverified pins are not removed; replaced ones are.
    assert true not in under(cloud, words) and len(under(cloud, words)) == len(rubbish) + 3


def test_heads_before_wallet_enrolment_open_by_ring_named_in_its_record(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, _ = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    before = list(cloud.pins)
    enrol_wallet(a)
    asyncio.run(a.members.rotate())
    provider = pins_only(cloud)
    provider.faults.pins = [*before, *(pin for pin in cloud.pins if pin.cid in under(cloud, OTHER))]
    assert body(restore(tmp_path, "b", provider, OTHER), "tone") == "x"


@pytest.mark.parametrize("names", [True, False])
def test_restore_with_the_wallet_of_a_writer_is_refused(tmp_path: Path, names: bool) -> None:
    cloud = SimCloud()
    can = FULL if names else PINS
    a, _ = make(tmp_path, SimProvider(cloud, capabilities=can))
    enrol_wallet(a, role="writer")
    asyncio.run(a.sync())
    assert not under(cloud, OTHER)
    with pytest.raises(WrongWalletError if names else NoVaultError):
        restore(tmp_path, "b", SimProvider(cloud, capabilities=can), OTHER)


def test_unreadable_anchor_list_is_not_treated_as_empty(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words = make(tmp_path, pins_only(cloud))
    asyncio.run(a.sync())
    down = pins_only(cloud, "down")
    down.faults.offline = True
    empty = pins_only(SimCloud(), "empty")
    for key in (words, WALLET):
        with pytest.raises(ProviderError, match="no route"):
            asyncio.run(
                Memory.recover("m", provider=[empty, down], unlock=key, passphrase=False, home=tmp_path / "b")
            )
    b = asyncio.run(
        Memory.recover(
            "m", provider=[down, pins_only(cloud, "up")], unlock=words, passphrase=False, home=tmp_path / "b"
        )
    )
    assert body(b, "tone") == "x"
