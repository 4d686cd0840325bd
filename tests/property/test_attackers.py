"""Honest devices next to an attacker who publishes anything with its keys: only the provider's, a reader's, a
writer's, those of a revoked member, of a stolen backup of an honest device, of an admin (recovery words made
later), or of words that a root has revoked.

Every honest device is a real vault at a simulated provider of the attacker, or at that and an honest one. The
attacker publishes states with any values, dots, counters and clocks, malformed trees, grafted roots, old
rings with anything an admin may sign, and records of any sequence for its names. Its provider replays records
and lists, and damages, hides and invents blocks and pins.

The attacker does not use what its keys may do by design (docs/internals/security/keys.md), so every honest text must survive and every honest device stay."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl import bindings

from ipfsmem import canonical
from ipfsmem.causal import tree as prefix_tree
from ipfsmem.causal.value import FORGOTTEN, Entry, Loc, Value, sign_value
from ipfsmem.content.cid import CID, DAG_PB, ipns_name, raw_cid
from ipfsmem.content.dagpb import BlockLink, decode_node
from ipfsmem.content.tree import build_tree
from ipfsmem.content.unixfs import directory
from ipfsmem.device.state import StateHeader
from ipfsmem.errors import IpfsmemError
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Pin, Provider
from ipfsmem.published import ipns_record
from ipfsmem.published.commit import Commit
from ipfsmem.ring import operations
from ipfsmem.ring.keyring import Ring, parse_keyring
from ipfsmem.ring.statements import Role, member_id
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.sync import commits
from ipfsmem.sync.names import pin_name
from ipfsmem.testing.clock import SeededRandom
from ipfsmem.testing.simulator import FULL, Faults, SimCloud, SimProvider
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import ROOT, Forger, Lab, all_texts, kinds, no_chance_in_boxes, replaced, same
from tests.support.effort import cases, longest

HONEST = ("a", "b")
#: The keys that the attacker holds.
LIARS = ("none", "reader", "writer", "revoked", "backup", "admin", "old words")
#: Maximum calls and blocks of one sync here, where a vault has a handful of entries: measured, with a margin.
MOST_CALLS, MOST_BLOCKS = 150, 300


class Places(Lab):
    """Devices at the attacker's provider, and with `second` at another one too."""

    def __init__(self, folder: Path, *, second: bool) -> None:
        super().__init__(folder)
        self.second = SimCloud() if second else None

    def channels(self, name: str) -> list[Provider]:
        return [self.provider(name), *self.others(name)]

    def others(self, name: str) -> list[Provider]:
        if self.second is None:
            return []
        random = SeededRandom(f"second {name}")
        return [SimProvider(self.second, name="second", clock=self.clock, random=random, capabilities=FULL)]


class Town:
    """Two honest devices, an attacker, and the provider between them."""

    def __init__(self, folder: Path, liar: str, *, second: bool = False) -> None:
        self.lab = Places(folder, second=second)
        self.liar = liar
        self.count = 0
        self.wanted: set[str] = set()
        self.writers: dict[str, str] = {}
        a, b, self.m = self.lab.three()
        self.memories = {"a": a, "b": b}
        self.m.write("shared", "the liar's own")
        self.lab.settle(a, b, self.m)
        #: The admin key that the attacker holds, or held.
        self.words: RootKeys | None = None
        #: Box keys of the attacker, and the ids that it enrolled.
        self.boxes = [self.m.replica.device.box_secret]
        self.puppets: list[str] = []
        #: Earlier rings, which the attacker may show.
        self.rings = [self.ring_of(self.m)]
        a.unlock(ROOT)
        self.give_keys(a)
        a.lock()
        self.lab.settle(*self.memories.values())
        self.forger = Forger(self.m)

    def give_keys(self, a: Memory) -> None:
        """The owner admits the attacker, or revokes it; or a key is stolen."""
        if self.liar == "reader":
            with a.replica.transaction():
                ring, device = self.ring_of(a), self.m.replica.device
                stated = operations.enrollee_of(device.signer, device.box_public, "m", ring.vault)
                since = f"{int(a.replica.store.frame.hlc, 16) + 1:016x}"
                a.replica.set_ring(operations.enrol(ring, ROOT.admin, stated, "reader", since=since))
        if self.liar in ("admin", "old words"):
            made = asyncio.run(a.members.new_words())
            self.words = RootKeys.from_recovery(from_words(" ".join(made.words)))
            self.boxes.append(self.words.box_secret)
            self.lab.sync(self.m)
            self.rings.append(self.ring_of(self.m))
            if self.liar == "old words":
                asyncio.run(a.members.revoke(made.id))
        if self.liar == "revoked":
            asyncio.run(a.members.revoke(self.m.device))
        if self.liar == "backup":
            self.lab.save("b", "stolen")
            self.m = self.lab.copy_to("stolen", "thief", hidden=True)
            self.boxes = [self.m.replica.device.box_secret]

    @staticmethod
    def ring_of(memory: Memory) -> Ring:
        ring = memory.replica.ring
        assert ring is not None
        return ring

    def fresh(self) -> int:
        self.count += 1
        return self.count

    # -- honest work -----------------------------------------------------------------------------------------------

    def write(self, who: str, random: Random) -> None:
        """Write under a new key that nobody else replaces, so the text must remain."""
        text = f"text {self.fresh()}"
        if random.random() < 0.3:
            self.memories[who].note(text)
        self.memories[who].write(f"{who}-{self.count}", text)
        self.wanted.add(text)
        self.writers[text] = who

    def sync(self, who: str, random: Random) -> None:
        memory, provider = self.memories[who], self.lab.provider(who)
        before, wire = len(provider.calls), len(provider.wire)
        try:
            self.lab.sync(memory)
        except IpfsmemError:
            # Only the provider can stop a sync; bad data of members is skipped.
            assert not _is_honest(provider.faults), "an honest provider, and a sync failed"
        assert len(provider.calls) - before <= MOST_CALLS
        asked = [one for one in provider.wire[wire:] if one.call in ("get_blocks", "read_stored", "get_dag")]
        assert sum(one.sent.count(b"\n") + 1 for one in asked) <= MOST_BLOCKS
        self.check(memory)

    def unlock(self, who: str, random: Random) -> None:
        """Sync with the wallet available, which sometimes makes a new key."""
        memory = self.memories[who]
        memory.unlock(ROOT)
        try:
            self.sync(who, random)
            if random.random() < 0.3:
                asyncio.run(memory.members.rotate())
        except IpfsmemError:
            assert not _is_honest(self.lab.provider(who).faults), "an honest provider, and a rotation failed"
        finally:
            memory.lock()

    def check(self, memory: Memory) -> None:
        assert memory.mode == "encrypted-ipfs"
        assert not memory.replica.config.public
        ring = memory.replica.ring
        assert ring is not None and not ring.plain
        who = next(name for name, one in self.memories.items() if one is memory)
        own = {text for text in self.wanted if self.writers[text] == who}
        assert not own - all_texts(memory), f"{who} lost {sorted(own - all_texts(memory))}"

    # -- the attacker -------------------------------------------------------------------------------------------------

    def meet(self, random: Random) -> None:
        """Sync as the attacker, so that it knows what others published."""
        try:
            self.lab.sync(self.m)
        except IpfsmemError:
            return

    def forge(self, random: Random) -> None:
        """A state of any values, and a possibly malformed tree."""
        replica = self.m.replica
        me = replica.device.id
        with replica.reading():
            frame = replica.store.frame
            here = {f"m/{key}": dict(entry) for key, entry in replica.store.memories()}
        changes: dict[str, Entry] = {}
        blocks: list[tuple[bytes, bytes]] = []
        ctx = {me: frame.ctx.get(me, 0) + random.choice([0, 1, 5])}
        for _ in range(random.randint(1, 3)):
            name = random.choice([*here, "m/new", f"m/{random.choice('ab')}-{self.count + 1}"])
            entry = dict(here.get(name, {}))
            for under, value, block in self.values(name, entry, ctx[me], random):
                entry[under] = value
                blocks += [block] if block else []
            if entry:
                changes[name] = entry
        others = [one for one in frame.ctx if one != me]
        lies = {}
        if others and random.random() < 0.2:
            other = random.choice(others)
            ctx[other] = frame.ctx[other] + random.choice([1, 1000])
            lies[other] = self.forger.seen(other, ctx[other])
        kept = (dict(here), frame)
        limits = prefix_tree.MAX_ENTRIES, prefix_tree.MAX_BYTES
        try:
            self.forger.put(changes, ctx=ctx, seen=lies, blocks=blocks)
            if random.random() < 0.2:
                prefix_tree.MAX_ENTRIES = random.choice([1, 2])
            with self.lying_commit(random):
                self.publish(random)
        except (IpfsmemError, AssertionError):
            pass  # its own program refuses to sign that
        finally:
            prefix_tree.MAX_ENTRIES, prefix_tree.MAX_BYTES = limits
            if random.random() < 0.8:
                # It continues from the true state, or nobody would read it again.
                state = {name: kept[0].get(name, {}) for name in changes}
                with replica.transaction():
                    replica.store.apply(
                        state,
                        StateHeader(
                            {**frame.ctx, me: ctx[me]},
                            {one: pair for one, pair in replica.store.frame.seen.items() if one not in lies},
                            frame.hlc,
                        ),
                        (),
                    )

    def publish(self, random: Random) -> None:
        """Publish at either provider."""
        others = self.lab.others("m")
        self.forger.publish(random.choice(others) if others and random.random() < 0.5 else None)

    @contextlib.contextmanager
    def lying_commit(self, random: Random) -> Iterator[None]:
        """Sometimes its commits have another number, another clock, or other predecessors."""
        lies: dict[str, object] = {}
        if random.random() < 0.3:
            lies["c"] = random.choice([1, 2, 2**32, 2**53 - 1])
        if random.random() < 0.3:
            lies["h"] = random.choice(["0" * 16, "f" * 16, "019d8aee00000000"])
        if random.random() < 0.3:
            known = self.m.replica.db.connection.execute("SELECT digest FROM heads").fetchall()
            others = [bytes(row[0]).hex() if isinstance(row[0], bytes) else str(row[0]) for row in known]
            lies["prev"] = sorted({*random.sample(others, min(2, len(others))), random.randbytes(32).hex()})
        if random.random() < 0.1:
            lies["dev"] = self.memories[random.choice(HONEST)].device
        sign = commits.sign_commit

        def lying(signer: Signer25519, commit: Commit) -> object:
            return sign(signer, msgspec.structs.replace(commit, **lies))

        commits.sign_commit = lying  # type: ignore[assignment]
        try:
            yield
        finally:
            commits.sign_commit = sign

    def state(self, random: Random) -> None:
        """Put statements of the attacker's admin key, if any, into an old or current ring of its next
        root."""
        replica = self.m.replica
        ring = random.choice([*self.rings, self.ring_of(self.m)])
        if self.words is not None:
            signer, secret = self.words.admin, random.randbytes(32)
            since = f"{int(replica.store.frame.hlc, 16) + random.choice([1, 2**40]):016x}"
            try:
                for _ in range(random.randint(1, 3)):
                    how = random.choice(["puppet", "puppet", "rotate", "revoke", "give"])
                    if how == "puppet":
                        puppet = Signer25519(random.randbytes(32))
                        box = bindings.crypto_scalarmult_base(secret)
                        stated = operations.enrollee_of(puppet, box, "puppet", ring.vault)
                        role: Role = random.choice(["writer", "reader"])
                        ring = operations.enrol(ring, signer, stated, role, since=since)
                        self.boxes.append(secret)
                        self.puppets.append(stated.id)
                    elif how == "rotate":
                        ring = operations.rotate(ring, signer, random.randbytes(32))
                    elif how == "give":
                        ring = operations.give_key(ring, signer, random.randbytes(32))
                    elif self.puppets:
                        counters = {random.choice(self.puppets): 2**53 - 1}
                        target = random.choice(self.puppets)
                        ek = random.randbytes(32)
                        ring = operations.revoke(ring, signer, target, at=since, counters=counters, ek=ek)
            except IpfsmemError:
                pass
        self.rings = [*self.rings[:2], ring]
        try:
            with replica.transaction():
                replica.set_ring(ring)
            self.publish(random)
        except (IpfsmemError, AssertionError):
            pass

    def values(
        self, name: str, entry: Entry, n: int, random: Random
    ) -> list[tuple[str, Value, tuple[bytes, bytes] | None]]:
        me = self.m.replica.device.id
        text = f"lie {self.fresh()}"
        own = f"{me}-{max(1, n)}"
        known = [under for under in entry if under[:16] != me]
        how = random.choice(
            ["well", "beyond", "theirs", "place", "again", "clock", "forget", "garbage", "base"]
        )
        h = random.choice(["0" * 16, "f" * 16, "019d8aee00000000"])
        if how == "theirs" and known:
            # The same write at another place, with another signature, or with other contents.
            under = random.choice(known)
            value = entry[under]
            signer, vault = self.m.replica.device.signer, self.forger.vault
            other = random.choice(
                [
                    replaced(value, loc=Loc(value.loc.ek if value.loc else "", "ab" * 32, 5)),
                    replaced(value, loc=self.elsewhere(random)),
                    replaced(value, s=canonical.b64(random.randbytes(64))),
                    replaced(value, body="cd" * 32),
                    replaced(value, author="foreign"),
                    sign_value(signer, name, under, replaced(value, body="cd" * 32), vault),
                ]
            )
            return [(under, other, None)]
        made, block = self.forger.value(name, own, text, h=h)
        signer, vault = self.m.replica.device.signer, self.forger.vault
        if how == "beyond":
            under = f"{me}-{n + random.choice([1, 2**40])}"
            return [(under, sign_value(signer, name, under, replaced(made, s=""), vault), block)]
        if how == "again" and known:
            # A foreign counter with its own signature, or a foreign body.
            under = random.choice(known)
            return [(under, sign_value(signer, name, under, replaced(made, s=""), vault), block)]
        if how == "place":
            wrong = random.choice(
                [Loc("00" * 8, "ab" * 32, 3), Loc("", "ab" * 32, 1024 * 1024), self.elsewhere(random)]
            )
            return [(own, replaced(made, loc=wrong), None)]
        if how == "forget":
            wish = Value(b=(), body=None, h=h, kind=FORGOTTEN)
            return [(own, sign_value(signer, name, own, wish, vault), None)]
        if how == "garbage":
            bad = random.choice(
                [
                    replaced(made, kind="dead"),
                    replaced(made, h="x"),
                    replaced(made, b=("zz",)),
                    replaced(made, author=me),
                    replaced(made, s="AA"),
                    replaced(made, body=None),
                ]
            )
            return [(own, bad, block)]
        if how == "base":
            hashes = tuple(sorted({value.body[:32] for value in entry.values() if value.body}))[:4]
            return [
                (
                    own,
                    sign_value(signer, name, own, replaced(made, b=hashes, base=made.loc, s=""), vault),
                    block,
                )
            ]
        return [(own, made, block)]

    def elsewhere(self, random: Random) -> Loc:
        """Return the location of some other object of this vault."""
        with self.m.replica.reading():
            places = [
                value.loc for _, one in self.m.replica.store.memories() for value in one.values() if value.loc
            ]
        return random.choice(places) if places else Loc("", "ab" * 32, 1)

    def graft(self, random: Random) -> None:
        """A root combined from other roots and noise, named by the attacker's own record, and pinned."""
        cloud = self.lab.cloud
        roots = [pin.cid for pin in cloud.pins if pin.cid in cloud.blocks and pin.cid.codec == DAG_PB]
        one, two = random.choice(roots), random.choice(roots)
        links = {link.name: link for link in decode_node(cloud.blocks[one]).links}
        other = {link.name: link for link in decode_node(cloud.blocks[two]).links}
        for name in sorted({*links, *other}):
            how = random.random()
            if how < 0.2 and name in other:
                links[name] = other[name]
            elif how < 0.3:
                links.pop(name, None)
            elif how < 0.4:
                noise = random.choice([b"", b"{}", random.randbytes(200), b"[" * 5000, b"IPM1" + bytes(100)])
                cid = raw_cid(sha256(noise).digest())
                cloud.blocks[cid] = noise
                links[name] = BlockLink(name, cid, len(noise))
        if random.random() < 0.15:
            # A ring of the genesis alone, as a sealed vault or a plain one.
            ring = self.memories["a"].replica.ring
            assert ring is not None
            shown = canonical.decode(ring.serialise(), "a ring")
            genesis = [item for item in shown["open"] if b'"t":"genesis"' in canonical.unb64(item["k"], "it")]
            tag = random.choice([shown["vault"], ROOT.tag(plain=True).hex()])
            data = canonical.encode({"body": {"eks": [], "st": []}, "open": genesis, "v": 1, "vault": tag})
            made = build_tree({"keyring.json": data})
            cloud.blocks |= dict(made.blocks)
            root = made.cid
        else:
            folder = directory(links.values())
            cloud.blocks |= dict(folder.blocks)
            root = folder.cid
        self.name(root, random)

    def name(self, root: CID, random: Random) -> None:
        cloud, device = self.lab.cloud, self.m.replica.device
        if random.random() < 0.6:
            cloud.pins.append(
                Pin(
                    root,
                    pin_name(ROOT.head_public),
                    cloud.handle(),
                    self.lab.clock.ms + random.choice([0, 10**9]),
                )
            )
        if self.liar == "none":
            return
        name = ipns_name(device.sign_public)
        records = cloud.names.setdefault(name, [])
        sequence = (
            ipns_record.parse_record(records[-1]).sequence + random.choice([1, 1, 2**40]) if records else 1
        )
        other = ipns_name(self.memories["a"].replica.device.sign_public)
        block = random.choice(sorted(cloud.blocks, key=str))
        value = random.choice([*[f"/ipfs/{root}"] * 4, f"/ipns/{name}", f"/ipns/{other}", f"/ipfs/{block}"])
        records.append(
            ipns_record.make_record(
                device.sign_seed,
                value,
                sequence=min(sequence, 2**63),
                validity=(self.lab.clock.ms + 10**10) * 10**6,
            )
        )

    # -- the provider ----------------------------------------------------------------------------------------------

    def lie(self, random: Random) -> None:
        """The provider shows some device false data from now on."""
        cloud = self.lab.cloud
        faults = self.lab.provider(random.choice(HONEST)).faults = Faults()
        blocks = sorted(cloud.blocks, key=str)
        some = random.sample(blocks, random.randint(0, min(6, len(blocks))))
        for cid in some:
            how = random.randrange(4)
            if how == 0:
                faults.drop.add(cid)
            elif how == 1:
                faults.flip[cid] = random.randrange(4096)
            elif how == 2:
                faults.cut[cid] = random.randrange(64)
            else:
                faults.instead[cid] = cloud.blocks[random.choice(blocks)]
        faults.old_record = {
            name: random.randrange(-1, len(records))
            for name, records in cloud.names.items()
            if random.random() < 0.4
        }
        faults.has = random.choice(["truth", "truth", "all", "none"])
        faults.reorder = random.random() < 0.3
        if random.random() < 0.4:
            invented = [Pin(random.choice(blocks), pin_name(ROOT.head_public), "x", 1) for _ in range(20)]
            faults.pins = random.choice([[], cloud.pins[: random.randint(0, len(cloud.pins))], invented])

    def mend(self, random: Random) -> None:
        for who in HONEST:
            self.lab.provider(who).faults = Faults()

    # -- the end ---------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Check that all data is everywhere, unless the attacker's contradiction was reported; after its
        revocation always."""
        self.mend(Random(0))
        honest = [self.memories[who] for who in HONEST]
        for memory in honest:
            memory.unlock(ROOT)
        self.lab.settle(*honest, rounds=16)
        for who in HONEST:
            self.write(who, Random(1))
        self.lab.settle(*honest, rounds=16)
        said = set[str]().union(*(kinds(self.lab.sync(memory)) for memory in honest))
        writes = self.liar not in ("none", "reader")
        for memory in honest:
            self.check(memory)
            assert (writes and "equivocation" in said) or not self.wanted - all_texts(memory)
        fresh = self.lab.restore("fresh")
        assert fresh.restored is not None
        said = kinds(fresh.restored)
        assert (writes and "equivocation" in said) or not self.wanted - all_texts(fresh)
        assert fresh.mode == "encrypted-ipfs" and not fresh.replica.config.public
        self.end_of_the_liar([*honest, fresh])

    def end_of_the_liar(self, honest: list[Memory]) -> None:
        """Check that the attacker can be revoked, that no later key reaches it, and that everything else
        continues."""
        owner = honest[0]
        liar = self.m.replica.enrolled().id  # its programs may have taken another id since
        out = [] if self.liar in ("none", "revoked") else [liar]
        if self.liar == "admin" and self.words is not None:
            out.insert(0, member_id(self.words.admin_public))
        # An admin's statements outlive its revocation unless the owner says otherwise: here its members are
        # removed one by one.
        out += [one for one in self.puppets if one in self.ring_of(owner).view.members]
        for member in out:
            if member in self.ring_of(owner).view.members:
                assert asyncio.run(owner.members.revoke(member)).root is not None
            assert member not in self.ring_of(owner).view.members
        if self.liar == "backup":
            honest.remove(self.memories["b"])  # the honest half of that device continues as a new one
        self.lab.settle(*honest, rounds=16)
        for memory in honest:
            memory.write(f"end-{memory.device}", "the end")
        self.lab.settle(*honest, rounds=16)
        same(*honest)
        for memory in (*honest, self.lab.restore("last")):
            assert not self.wanted - all_texts(memory), f"lost {sorted(self.wanted - all_texts(memory))}"
        if self.liar == "none":
            return
        ring = self.ring_of(owner)
        keyring = parse_keyring(ring.serialise(), ring.vault)
        theirs = {key.id for key in keyring.slot_keys(self.boxes)}
        assert ring.view.sealing is not None and ring.view.sealing.id not in theirs
        assert not set(self.puppets) & ring.view.members.keys()


def _is_honest(faults: Faults) -> bool:
    return vars(faults) == vars(Faults())


ACTIONS: dict[str, Callable[[Town, Random], None]] = {
    "write a": lambda town, random: town.write("a", random),
    "write b": lambda town, random: town.write("b", random),
    "sync a": lambda town, random: town.sync("a", random),
    "sync b": lambda town, random: town.sync("b", random),
    "unlock a": lambda town, random: town.unlock("a", random),
    "meet": lambda town, random: town.meet(random),
    "forge": lambda town, random: town.forge(random),
    "state": lambda town, random: town.state(random),
    "graft": lambda town, random: town.graft(random),
    "lie": lambda town, random: town.lie(random),
    "mend": lambda town, random: town.mend(random),
}
#: The abilities of the provider alone.
WITHOUT_KEYS = [name for name in ACTIONS if name not in ("meet", "forge", "state")]


def play(folder: Path, liar: str, plan: list[tuple[str, int]]) -> None:
    """Play one plan; every third number of its first step adds a second provider."""
    with no_chance_in_boxes():
        town = Town(folder, liar, second=plan[0][1] % 3 == 0)
        try:
            for what, number in plan:
                if liar == "none" and what not in WITHOUT_KEYS:
                    continue
                ACTIONS[what](town, Random(number))
            town.end()
        finally:
            town.lab.close()


@settings(deadline=None, max_examples=cases(3, 200))
@given(
    st.sampled_from(LIARS),
    st.lists(
        st.tuples(st.sampled_from(sorted(ACTIONS)), st.integers(0, 2**32 - 1)),
        min_size=4,
        max_size=longest(14, 30),
    ),
)
def test_attackers_with_any_keys_lose_no_honest_text(liar: str, plan: list[tuple[str, int]]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="attackers-"))
    try:
        play(folder, liar, plan)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
