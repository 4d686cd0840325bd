"""A key ring shared by honest people and an attacker who holds some of its keys and signs anything with them.

The attacker gets a drawn subset of keys: a reader's, a writer's, a stolen backup of an honest device, an
admin's (recovery words made later), and those of a revoked writer and of revoked words; or none. It makes
statements of every kind with drawn fields, malformed ones and ones of another vault, and sends rings of any
statements to anybody, as files that production code reads. Honest people enrol, revoke, rotate, unlock and
restore meanwhile.

Only what those keys may do by design is allowed (docs/internals/security/keys.md):
`Vale.check` names each such power."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem import canonical
from ipfsmem.errors import IpfsmemError, LimitError, MembershipError, OpenError
from ipfsmem.ring.keyring import MAX_RING, Ring, UnlockedKeyring, parse_keyring, slot_text
from ipfsmem.ring.operations import add_successor, enrol, give_key, revoke, rotate
from ipfsmem.ring.statements import Member, Revoke, Role, Statement, envelope
from ipfsmem.seal.objects import MAX_EPOCH, RING_BODY, EpochKey, Sealer, epoch_key
from tests.support.effort import cases
from tests.support.ring_lab import (
    OWNER,
    RECOVERY,
    ROOT,
    VAULT,
    Party,
    ek,
    fixed_box,
    hlc,
    new_ring,
    open_slots,
    party,
    says_epoch,
    says_genesis,
    says_heir,
    says_member,
    says_revoked,
    second_wallet,
)

WALLET = second_wallet("second wallet")
DEVICES = [party(f"device {n}") for n in range(3)]
SPARE = [party(f"spare {n}") for n in range(3)]
READER = party("honest reader")
#: The honest machines; the root is unlocked on two.
OWNERS = (ROOT, ROOT, RECOVERY, WALLET, *DEVICES, READER)
STOLEN = DEVICES[0]
KEYS = {
    "reader": party("bad reader"),
    "writer": party("bad writer"),
    "backup": STOLEN,
    "admin": second_wallet("later words"),
    "revoked": party("revoked writer"),
    "old words": second_wallet("old words"),
}
STRANGER = party("nobody")
#: Keys that the attacker makes: to enrol, to name as successors.
PUPPETS = [party(f"puppet {n}") for n in range(12)]
PUPPET_ADMINS = [second_wallet(f"puppet admin {n}") for n in range(2)]
ELSEWHERE = b"\x77" * 16


def _base() -> Ring:
    ring = new_ring(*DEVICES, KEYS["writer"], KEYS["revoked"])
    for n, one in enumerate((WALLET, KEYS["admin"], KEYS["old words"])):
        ring = enrol(ring, ROOT.signer, one.device, "admin", since=hlc(10 + n), box=fixed_box)
    for n, one in enumerate((READER, KEYS["reader"])):
        ring = enrol(ring, ROOT.signer, one.device, "reader", since=hlc(20 + n), box=fixed_box)
    for n, name in enumerate(("revoked", "old words")):
        ring = revoke(
            ring, ROOT.signer, KEYS[name].id, at=hlc(30 + n), counters={}, ek=ek(900 + n), box=fixed_box
        )
    return ring


#: The common start: two of the six are revoked, and everybody has seen it.
BASE = _base()


class Vale:
    """Honest machines, each with its known ring, and one attacker who reads everything that is published."""

    def __init__(self, held: Iterable[str]) -> None:
        self.held = [KEYS[name] for name in sorted(held)]
        self.rings = [BASE] * len(OWNERS)
        self.count = 100
        self.published: list[bytes] = []
        self.sent: list[UnlockedKeyring] = []
        #: Statements that the attacker can put into rings.
        self.pool: dict[str, Statement] = {}
        self.forged: list[Statement] = []
        self.made: list[EpochKey] = []
        #: Members that an honest root or admin revoked or enrolled.
        self.revoked = {KEYS["revoked"].id, KEYS["old words"].id}
        self.enrolled = {one.id: role for one, role in self._first()}
        self.secrets = [one.box_secret for one in self.bad]
        self.keys: dict[tuple[int, str, bytes], EpochKey] = {}
        self.publish(BASE)

    @staticmethod
    def _first() -> list[tuple[Party, Role]]:
        return [(WALLET, "admin"), (READER, "reader"), *((one, "writer") for one in DEVICES)]

    @property
    def bad(self) -> list[Party]:
        """Return all parties whose secrets the attacker has."""
        return [*self.held, STRANGER, *PUPPETS, *PUPPET_ADMINS]

    def fresh(self) -> int:
        self.count += 1
        return self.count

    # -- honest work -----------------------------------------------------------------------------------------------

    def publish(self, ring: Ring) -> None:
        data = ring.serialise()
        assert len(data) <= MAX_RING
        if data not in self.published:
            self.published.append(data)
            self.pool |= {one.hash: one for one in ring.statements}
            self.learn_keys(data)

    def learn_keys(self, data: bytes) -> None:
        """Return every epoch key that the attacker's secrets open in a published ring."""
        keyring = parse_keyring(data, VAULT)
        found = list(keyring.slot_keys(self.secrets))
        try:
            found += keyring.unlock(self.secrets, self.keys.values()).keys
        except OpenError:
            pass
        self.keys |= {(key.epoch, key.id, key.key): key for key in found}

    def honest(self, who: int, what: str, other: int) -> None:
        owner, ring = OWNERS[who], self.rings[who]
        before, revoked = ring, set(self.revoked)
        try:
            if what == "pull":
                ring = self.read(who, self.published[-1 - other % min(len(self.published), 6)])
            elif what == "enrol":
                new = [*SPARE, *DEVICES, READER][other % 7]
                role: Role = "reader" if new is READER else "writer"
                ring = enrol(ring, owner.signer, new.device, role, since=hlc(self.fresh()), box=fixed_box)
                self.enrolled.setdefault(new.id, role)
            elif what == "rotate":
                ring = rotate(ring, owner.signer, ek(self.fresh()), box=fixed_box)
            elif what == "revoke":
                # Mostly a member of the attacker's: its later actions with that knowledge matter.
                bad = sorted({one.id for one in self.bad} & ring.view.members.keys())
                pool = bad if bad and other % 3 else sorted(ring.view.members)
                target = pool[other % len(pool)]
                ring = self.revoke(ring, owner, target)
            elif what == "unlock":
                ring = give_key(ring, owner.signer, ek(self.fresh()), box=fixed_box)
            elif what == "succeed":
                new = party(f"successor {self.fresh()}", box_of=owner)
                ring = add_successor(ring, owner.signer, new.signer, owner.id, since=hlc(self.count))
        except (MembershipError, LimitError):
            self.revoked = revoked
            return
        self.became(who, before, ring)
        if ring.view.sealing is not None and ring.view.may_write(owner.id):
            self.publish(ring)

    def revoke(self, ring: Ring, by: Party, target: str, *, cascade: bool = False) -> Ring:
        number = self.fresh()
        self.revoked.add(ring.view.family_of(target))
        more = {"at": hlc(number), "counters": {}, "ek": ek(number), "box": fixed_box}
        return revoke(ring, by.signer, target, cascade=cascade, **more)  # type: ignore[arg-type]

    def read(self, who: int, data: bytes) -> Ring:
        """Read a keyring.json of a head, as a device does."""
        mine, secret = self.rings[who], OWNERS[who].box_secret
        keyring = parse_keyring(data, VAULT)
        try:
            shown = keyring.unlock(secret, (*mine.keys, *mine.spare))
        except OpenError:
            return mine.join_open_part(keyring)
        return mine.join(shown)

    def became(self, who: int, before: Ring, after: Ring) -> None:
        self.rings[who] = after
        self.check(after)
        # Verifying keys remain: those of members that a root enrolled or revoked.
        roots = {root.hex() for root in before.view.roots}
        for one in before.statements:
            body = one.body
            if body.by in roots and isinstance(body, Member | Revoke):
                assert bytes.fromhex(body.sign) in after.view.keys_of[body.id]

    # -- the attacker ----------------------------------------------------------------------------------------------

    def attack(self, what: str, who: int, random: Random) -> None:
        if what == "say":
            for _ in range(random.randint(1, 6)):
                one = self.statement(random)
                self.forged.append(one)
                # A foreign genesis makes a file of another vault: seldom, because such a file says nothing
                # more.
                if one.body.t != "genesis":
                    self.pool[one.hash] = one
            return
        data = self.file(random)
        for reader in {who, *random.sample(range(len(OWNERS)), random.randint(0, 3))}:
            before = self.rings[reader]
            try:
                after = self.read(reader, data)
            except IpfsmemError:
                # Bad ones are refused completely: our ring is unchanged.
                continue
            self.became(reader, before, after)
        try:
            keyring = parse_keyring(data, VAULT)
            try:
                self.sent.append(keyring.unlock(ROOT.box_secret, self.rings[0].keys))
            except OpenError:
                self.sent.append(UnlockedKeyring(VAULT, keyring.open, (), False))
        except IpfsmemError:
            return

    def statement(self, random: Random) -> Statement:
        by = random.choice([*self.held, *self.held, *self.bad])
        everybody = [*self.bad, *self.held, *OWNERS, *SPARE, KEYS["revoked"]]
        what = random.choice(["member", "heir", "revoke", "revoke", "epoch", "epoch", "epoch", "genesis"])
        if what == "member":
            who = random.choice(everybody)
            role: Role = random.choice(["admin", "writer", "reader"])
            return says_member(
                by, who, role, since=random.choice([0, 1, 50, 10**9]), person=self.person(random)
            )
        if what == "heir":
            known = [one for one in self.pool.values() if isinstance(one.body, Member)]
            own = [one for one in known if one.body.by == by.key or getattr(one.body, "sign", "") == by.key]
            under = random.choice(own or known)
            who = random.choice([one for one in self.bad if one.key != by.key])
            return says_heir(
                by, who, under.hash, was=random.choice(everybody).id, since=random.choice([0, 10**9])
            )
        if what == "revoke":
            target = random.choice(everybody)
            keep = random.sample(sorted(self.pool), random.randint(0, min(6, len(self.pool))))
            counts = {one.id: random.choice([0, 3, 2**50]) for one in self.some(random, everybody, 3)}
            return says_revoked(
                by,
                target,
                keep=keep,
                n=counts,
                at=random.choice([0, 10**9]),
                heirs=set(self.some(random, everybody, 2)),
                person=self.person(random),
            )
        if what == "epoch":
            admins = [one for one in self.held if one.kind == "wallet"]
            return self.epoch(random.choice(admins or [by]), everybody, random)
        return says_genesis(by, random.choice([one for one in everybody if one.key != by.key]))

    def epoch(self, by: Party, everybody: list[Party], random: Random) -> Statement:
        known = [*self.keys.values(), *self.made]
        if known and random.random() < 0.4:
            key = random.choice(known)
        else:
            newest = max((one.epoch for one in known), default=1)
            number = random.choice([1, newest, newest + 1, newest + 1, newest + 2, MAX_EPOCH])
            key = epoch_key(min(number, MAX_EPOCH), ek(self.fresh()), VAULT)
            self.made.append(key)
            self.keys[key.epoch, key.id, key.key] = key
        view = self.rings[0].view
        served = {one.id: one for one in everybody}
        given = random.choice(
            [
                [one for one in served.values() if one.id in view.members],
                self.some(random, everybody, 5),
                [],
            ]
        )
        against = random.choice([everybody, [WALLET, ROOT, *DEVICES]])
        gone = random.choice(
            [[], sorted(view.must_exclude), [one.id for one in self.some(random, against, 3)]]
        )
        gone = sorted({*gone, *(sorted(view.must_exclude) if random.random() < 0.7 else [])})
        given = [one for one in given if one.id not in gone or random.random() < 0.02]
        boxes = {one.box for one in (*given, *(random.choice([[ROOT, RECOVERY], [], self.bad])))}
        slots = [fixed_box(slot_text(key, VAULT), box) for box in sorted(boxes)]
        if random.random() < 0.2:
            slots = [random.randbytes(104) for _ in slots]
        old = random.choice([[], [one.id for one in known], sorted(view.names), [random.randbytes(8).hex()]])
        out = [one for one in self.some(random, against, 2) if one not in given]
        while_ = {random.choice([*self.held, WALLET, STRANGER]): out} if out and random.random() < 0.5 else {}
        of = [*random.sample([WALLET, *self.held], 1)] if random.random() < 0.3 else []
        return says_epoch(by, key, given, gone, old=old, slots=set(slots), while_=while_, of=of)

    def person(self, random: Random) -> str:
        return random.choice([OWNER, "12" * 8, random.randbytes(8).hex()])

    @staticmethod
    def some(random: Random, items: list[Party], most: int) -> list[Party]:
        return random.sample(items, min(len(items), random.randint(0, most)))

    def file(self, random: Random) -> bytes:
        """A keyring.json of some known statements; sometimes a bad or damaged one."""
        if random.random() < 0.1:
            return random.choice(self.published)
        chosen = [one for one in self.pool.values() if random.random() < random.choice([0.3, 0.9, 1])]
        if self.forged:
            chosen += [one for one in self.forged if one.body.t != "genesis" or random.random() < 0.05]
        genesis = [one for one in BASE.statements if one.body.t == "genesis"]
        chosen += genesis if random.random() < 0.95 else []
        said = {one.hash: one for one in chosen}
        shown = [self.envelope(said[one], random) for one in sorted(said) if said[one].public]
        hidden = [self.envelope(said[one], random) for one in sorted(said) if not said[one].public]
        keys = [*self.keys.values(), *(self.key(random) for _ in range(random.randint(0, 4)))]
        keys = sorted(
            random.sample(keys, random.randint(0, len(keys))), key=lambda key: (key.epoch, key.id, key.key)
        )
        eks = [[key.epoch, canonical.b64(key.key)] for key in keys]
        if eks and random.random() < 0.05:
            eks = random.choice([eks[::-1] + eks, [[0, eks[0][1]]], [[1, "AA"]]])
        body = canonical.encode({"eks": eks, "st": hidden})
        seals = random.choice([*self.keys.values(), self.key(random)])
        sealed = canonical.b64(Sealer(seals, VAULT).seal(RING_BODY, b"", body))
        plain = random.random() < 0.03
        data = canonical.encode(
            {
                "body": {"eks": [], "st": hidden} if plain else sealed,
                "open": shown,
                "v": 1,
                "vault": VAULT.hex(),
            }
        )
        if random.random() < 0.05:
            at = random.randrange(len(data))
            data = data[:at] + random.randbytes(1) + data[at + 1 :]
        return data

    def key(self, random: Random) -> EpochKey:
        return epoch_key(random.randint(1, 9), random.randbytes(32), VAULT)

    def envelope(self, one: Statement, random: Random) -> dict[str, str]:
        """Return the statement unchanged; seldom another one in its place that must not be accepted for
        it."""
        good = envelope(one)
        if random.random() > 0.003:
            return {"k": good.k, "s": good.s}
        by = next((each for each in self.bad if each.key == one.body.by), STRANGER)
        fields = json.loads(one.payload)
        how = random.randrange(4)
        if how == 0:
            signature = by.signer.sign(b"ipfsmem/v1/statement\x00" + ELSEWHERE + one.payload)
            return {"k": good.k, "s": canonical.b64(signature)}
        field = random.choice(sorted(fields))
        fields[field] = random.choice([None, "", [], {}, -1, 2**60, "00" * 32, "zz", [["x"]], True])
        payload = canonical.encode(fields)
        signature = by.signer.sign(b"ipfsmem/v1/statement\x00" + VAULT + payload)
        return {"k": canonical.b64(payload), "s": canonical.b64(signature)}

    # -- invariants ---------------------------------------------------------------------------------------------------

    def check(self, ring: Ring) -> None:
        view = ring.view
        # A root is a member forever; nobody else becomes one.
        assert view.rights.root_ids == {ROOT.id, RECOVERY.id}
        assert view.rights.root_ids <= view.members.keys()
        assert not view.rights.root_ids & view.must_exclude
        assert view.rights.admin_ids <= {WALLET.id, KEYS["admin"].id, KEYS["old words"].id}
        assert ring.used <= 1
        in_force = {one.id for one in self.bad if one.id in view.members and one.id not in view.must_exclude}
        rogue = KEYS["admin"] in self.held
        self.nobody_is_shut_out(ring, rogue=rogue)
        # Power: a valid admin distributes keys and makes the sealing key.
        if view.sealing is not None and not in_force:
            key = view.sealing
            assert (key.epoch, key.id, key.key) not in self.keys, "a key that the attacker opens seals"
        # An id that only the attacker knows is not a member, except by an admin's statement or as a successor
        # of its own keys.
        for one in (STRANGER, *PUPPETS, *PUPPET_ADMINS):
            person = view.members.get(one.id)
            assert person is None or person.role != "admin"
            if person is not None and not rogue:
                assert person.family in {each.id for each in self.held}
                assert not (view.members[person.family].role == "reader" and person.role != "reader")

    def nobody_is_shut_out(self, ring: Ring, *, rogue: bool) -> None:
        view = ring.view
        known = {one.body.id for one in ring.statements if isinstance(one.body, Member)}
        for member, role in self.enrolled.items():
            if member not in known or member in self.revoked:
                continue
            if member == WALLET.id:
                assert member in view.members and view.members[member].role == "admin"
                assert member not in view.must_exclude
            elif not rogue:
                # Power: an admin revokes and demotes any member that is not an admin.
                assert view.members[member].role == role
                assert member not in view.must_exclude

    def end(self) -> None:
        """Join all statements in any order; then a root ends the attacker's rights permanently."""
        shown: list[Ring | UnlockedKeyring] = [*self.rings, *self.sent]
        forwards, backwards = _fold(shown), _fold([self.rings[0], *shown[::-1]])
        assert forwards == backwards and forwards.view == backwards.view
        ring = open_slots(forwards, ROOT.box_secret)
        self.check(ring)
        self.nothing_stands(ring)
        roots = [one for one in self.held if one.id in ring.view.rights.admin_ids]
        others = [one for one in self.bad if one not in roots]
        for one in (*roots, *others):
            family = ring.view.families.get(one.id)
            if family is not None and family not in ring.view.rights.let_stand:
                ring = self.revoke(ring, ROOT, family)
                self.check(ring)
        ring = give_key(ring, ROOT.signer, ek(self.fresh()), box=fixed_box)
        newcomer = party("newcomer")
        ring = enrol(ring, ROOT.signer, newcomer.device, "writer", since=hlc(self.fresh()), box=fixed_box)
        ring = rotate(ring, ROOT.signer, ek(self.fresh()), box=fixed_box)
        self.publish(ring)
        self.check(ring)
        assert not {one.id for one in self.bad} & (ring.view.members.keys() - ring.view.must_exclude)
        # No statement returns, and all members read the same.
        late = ring
        for again in shown:
            late = late.join(again)
        assert late == ring
        people = {one.id: one for one in (*OWNERS, *SPARE, newcomer)}
        for member, person in ring.view.members.items():
            if person.family in people and person.family not in ring.view.must_exclude:
                read = parse_keyring(ring.serialise(), VAULT).unlock(people[person.family].box_secret).ring()
                assert read == ring, member

    def nothing_stands(self, ring: Ring) -> None:
        """Check that a root that ends all statements of an admin restores everybody whom no honest party
        removed, whatever roots and other admins signed meanwhile."""
        finder = KEYS["admin"]
        if finder not in self.held or finder.id in ring.view.out:
            return
        revoked = set(self.revoked)
        ring = rotate(ring, ROOT.signer, ek(self.fresh()), box=fixed_box)
        ring = self.revoke(ring, ROOT, finder.id, cascade=True)
        known = {one.body.id for one in ring.statements if isinstance(one.body, Member)}
        for member in (self.enrolled.keys() & known) - revoked:
            assert member in ring.view.members and member not in ring.view.must_exclude
        self.revoked = revoked


def _fold(shown: list[Ring | UnlockedKeyring]) -> Ring:
    first = shown[0]
    assert isinstance(first, Ring)
    for other in shown[1:]:
        first = first.join(other)
    return first


_HONEST = ["pull", "pull", "pull", "enrol", "rotate", "revoke", "unlock", "unlock", "succeed"]
_BAD = ["say", "say", "say", "send", "send", "send"]
steps = st.lists(
    st.tuples(st.sampled_from(_HONEST + _BAD), st.integers(0, len(OWNERS) - 1), st.integers(0, 2**32 - 1)),
    min_size=6,
    max_size=30,
)


def play(held: Iterable[str], plan: list[tuple[str, int, int]]) -> None:
    vale = Vale(held)
    for what, who, number in plan:
        if what in ("say", "send"):
            vale.attack(what, who, Random(number))
        else:
            vale.honest(who, what, number)
    vale.end()


@settings(deadline=None, max_examples=cases(25, 1000))
@given(st.sets(st.sampled_from(sorted(KEYS))), steps)
def test_attacker_gains_only_the_rights_of_its_keys(held: set[str], plan: list[tuple[str, int, int]]) -> None:
    play(held, plan)
