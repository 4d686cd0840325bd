"""Fixtures for ring tests: parties with fixed keys, slots without randomness, statements of any kind by
anybody, and an `Attacker` with any keys. Contains no tests."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from nacl import bindings

from ipfsmem import canonical
from ipfsmem.ring.keyring import Keyring, Ring, parse_keyring
from ipfsmem.ring.operations import Enrollee, create, enrol, enrollee_of, new_person
from ipfsmem.ring.statements import (
    Epoch,
    Genesis,
    Kind,
    Member,
    Revoke,
    Role,
    Statement,
    possession,
    sign_statement,
)
from ipfsmem.seal.objects import EpochKey, epoch_key
from ipfsmem.seal.primitives import Signer25519, x25519_public
from ipfsmem.wallet.root_keys import RootKeys


def fixed_box(text: bytes, public: bytes) -> bytes:
    """crypto_box_seal with an ephemeral secret derived from its arguments: any implementation can
    reproduce it."""
    secret = hashlib.sha256(b"ring vectors" + text + public).digest()
    ephemeral = x25519_public(secret)
    nonce = hashlib.blake2b(ephemeral + public, digest_size=24).digest()
    return ephemeral + bindings.crypto_box(text, nonce, public, secret)


def hlc(n: int) -> str:
    return f"{0x019D8AEE0000 + n:012x}0000"


def ek(n: int) -> bytes:
    return hashlib.sha256(b"ek %d" % n).digest()


def ek_of(number: int, n: int) -> EpochKey:
    """Return the key `ek(n)` as epoch `number`."""
    return epoch_key(number, ek(n), VAULT)


@dataclass(frozen=True)
class Party:
    """Somebody with a signing key and a box key, both derived from a name."""

    name: str
    seed: bytes
    box_secret: bytes
    head: bytes | None = None
    kind: Kind = "device"

    @cached_property
    def signer(self) -> Signer25519:
        return Signer25519(self.seed)

    @property
    def key(self) -> str:
        return self.signer.public.hex()

    @cached_property
    def box(self) -> bytes:
        return x25519_public(self.box_secret)

    @cached_property
    def device(self) -> Enrollee:
        return self.device_in(VAULT)

    def device_in(self, vault: bytes) -> Enrollee:
        """Return the key that is enrolled in another vault."""
        return enrollee_of(self.signer, self.box, self.name, vault, kind=self.kind, anchor=self.head)

    @property
    def id(self) -> str:
        return self.device.id

    def opens(self, keyring: bytes | Keyring) -> Ring:
        read = parse_keyring(keyring) if isinstance(keyring, bytes) else keyring
        return read.unlock(self.box_secret).ring()


def party(name: str, *, box_of: Party | None = None) -> Party:
    seed = hashlib.sha256(b"sign " + name.encode()).digest()
    box = box_of.box_secret if box_of else hashlib.sha256(b"box " + name.encode()).digest()
    return Party(name, seed, box)


def second_wallet(name: str) -> Party:
    plain = party(name)
    head = Signer25519(hashlib.sha256(b"head " + name.encode()).digest()).public
    return Party(name, plain.seed, plain.box_secret, head, "wallet")


ROOT_KEYS = RootKeys.from_random(b"\x03" * 64, "default", 1)
RECOVERY_KEYS = RootKeys.from_recovery(b"\x02" * 32)
VAULT, PLAIN = ROOT_KEYS.vault_tag, ROOT_KEYS.tag(plain=True)
ROOT = Party("wallet", ROOT_KEYS.admin_seed, ROOT_KEYS.box_secret, ROOT_KEYS.head_public)
RECOVERY = Party(
    "recovery words", RECOVERY_KEYS.admin_seed, RECOVERY_KEYS.box_secret, RECOVERY_KEYS.head_public, "words"
)
#: The owner of everything that the roots enrol.
OWNER = new_person(VAULT, ROOT.signer.public)


def enrolled(ring: Ring, by: Party, who: Party, role: Role = "writer", n: int = 5) -> Ring:
    """Return the ring after an enrolment at moment `n`."""
    return enrol(ring, by.signer, who.device, role, since=hlc(n), box=fixed_box)


def new_ring(*devices: Party, plain: bool = False) -> Ring:
    """Return a vault with recovery words and these devices, enrolled by the wallet as writers."""
    ring = create(ROOT_KEYS, RECOVERY_KEYS, None, ek=None if plain else ek(0), since=hlc(0), box=fixed_box)
    for n, one in enumerate(devices):
        device = one.device_in(ring.vault)
        ring = enrol(ring, ROOT.signer, device, "writer", since=hlc(n + 1), box=fixed_box)
    return ring


def says_genesis(*roots: Party, vault: bytes = VAULT) -> Statement:
    """Return the genesis of a vault with these roots, signed by the first."""
    return sign_statement(roots[0].signer, Genesis(tuple(one.key for one in roots)), vault)


def says_member(
    by: Party,
    who: Party,
    role: Role = "writer",
    *,
    since: int = 1,
    box: Party | None = None,
    label: str = "",
    person: str = OWNER,
    vault: bytes = VAULT,
) -> Statement:
    """Return an enrolment, allowed or not for `by`; `who` agrees to its keys."""
    boxed = (box or who).box
    return sign_statement(
        by.signer,
        Member(
            anchor=who.head.hex() if who.head else None,
            box=boxed.hex(),
            by=by.key,
            heir_of=None,
            id=who.id,
            kind=who.kind,
            label=label or who.name,
            own=possession(who.signer, vault, box=boxed, anchor=who.head),
            person=person,
            role=role,
            sign=who.key,
            since=hlc(since),
            under=None,
            was=None,
        ),
        vault,
    )


def says_heir(
    by: Party,
    who: Party,
    under: str,
    *,
    was: str | None = None,
    role: Role = "writer",
    since: int = 1,
    box: Party | None = None,
    label: str = "",
    vault: bytes = VAULT,
) -> Statement:
    """Return a successor of the enrolled key `by`, under the enrolment with this hash; `who` agrees."""
    boxed = (box or by).box
    return sign_statement(
        by.signer,
        Member(
            anchor=None,
            box=boxed.hex(),
            by=by.key,
            heir_of=by.key,
            id=who.id,
            kind="device",
            label=label or who.name,
            own=possession(who.signer, vault, box=boxed, heir_of=by.signer.public),
            person=OWNER,
            role=role,
            sign=who.key,
            since=hlc(since),
            under=under,
            was=was or by.id,
        ),
        vault,
    )


def says_revoked(
    by: Party,
    who: Party,
    *,
    keep: Iterable[str] = (),
    n: int | Mapping[str, int] = 0,
    at: int = 1,
    heirs: Iterable[Party] = (),
    person: str = OWNER,
    rank: int = 0,
    zeros: bool = False,
    vault: bytes = VAULT,
) -> Statement:
    """Return a revocation of the family of `who`, allowed or not for `by`. `zeros`: counters of 0 are
    written too."""
    counts = {who.id: n} if isinstance(n, int) else dict(n)
    return sign_statement(
        by.signer,
        Revoke(
            anchor=None,
            at=hlc(at),
            by=by.key,
            heirs=tuple(sorted(one.key for one in heirs)),
            keep=tuple(sorted(set(keep))),
            n={one: count for one, count in counts.items() if count or zeros},
            person=person,
            rank=rank,
            sign=who.key,
        ),
        vault,
    )


def says_epoch(
    by: Party,
    key: EpochKey,
    given: Iterable[Party],
    gone: Iterable[Party | str] = (),
    *,
    old: Iterable[str] = (),
    slots: Iterable[bytes] = (),
    roots: Sequence[Party] = (),
    while_: Mapping[Party, Iterable[Party]] | None = None,
    of: Iterable[Party] = (),
) -> Statement:
    """Return an epoch for the roots and `given`, whom these admins (`of`) admitted, allowed or not for
    `by`."""
    served = {one.id for one in (*(roots or (ROOT, RECOVERY)), *given)}
    return sign_statement(
        by.signer,
        Epoch(
            by=by.key,
            ek=key.id,
            epoch=key.epoch,
            for_=tuple(sorted(served)),
            not_=tuple(sorted(one if isinstance(one, str) else one.id for one in gone)),
            of=tuple(sorted(one.id for one in of)),
            old=tuple(sorted(set(old) - {key.id})),
            slots=tuple(sorted(canonical.b64(slot) for slot in slots)),
            while_={admin.id: tuple(sorted(one.id for one in ids)) for admin, ids in (while_ or {}).items()},
        ),
        VAULT,
    )


def enrolment_of(ring: Ring, who: Party) -> str:
    """Return the hash of the statement by which `who` is a member."""
    return ring.view.members[who.id].hash


def shown(keyring: bytes) -> Ring:
    """Return the open part alone, as a device without any of its keys sees it."""
    keyring_ = parse_keyring(keyring)
    return Ring(keyring_.vault, keyring_.open, (), plain=keyring_.plain)


class Attacker:
    """Somebody with any keys: a fixed set of well-formed statements of every kind.

    By two geneses of one vault (the wallet with either of two sets of words), two admins, two devices, a
    stranger; enrolments in every role, successors under every enrolment, partial revocations, epochs for
    and against anybody. One seed makes one set."""

    ROOTS = (ROOT, RECOVERY, Party("other words", b"\x11" * 32, b"\x12" * 32, None, "words"))

    def __init__(self, seed: int = 1, size: int = 400) -> None:
        self.random = random.Random(seed)
        self.admins = [second_wallet("rogue"), second_wallet("admin")]
        self.devices = [party("victim"), party("thief"), party("agent")]
        self.stranger = party("stranger")
        self.heirs = [party(f"heir {n}") for n in range(24)]
        self.people = [*self.admins, *self.devices]
        self.signers = [*self.ROOTS, *self.people, self.stranger]
        self.keys = [ek_of(number, number * 3 + n) for number in (1, 2, 3) for n in (0, 1)]
        self.genesis = [says_genesis(ROOT, RECOVERY), says_genesis(ROOT, self.ROOTS[2])]
        self.heap: list[Statement] = [says_member(one, one, "admin") for one in self.ROOTS]
        self.heap += [says_member(ROOT, one, "admin") for one in self.admins]
        self.heap += [says_member(by, who) for by in (ROOT, *self.admins) for who in self.devices]
        while len(self.heap) < size:
            self.heap.append(self._anything())

    def _anything(self) -> Statement:
        pick = self.random.choice
        what = pick(["member", "member", "heir", "heir", "heir", "revoke", "revoke", "epoch", "epoch"])
        if what == "member":
            return self._member()
        if what == "heir":
            base = pick([st for st in self.heap if isinstance(st.body, Member)])
            signers = {one.key: one for one in (*self.signers, *self.heirs)}
            assert isinstance(base.body, Member)
            by = signers[base.body.sign] if self.random.random() < 0.9 else pick(self.signers)
            who = pick([one for one in (*self.heirs, *self.devices) if one.key != by.key])
            return says_heir(by, who, base.hash, was=pick([by, *self.heirs]).id, since=pick([1, 2]))
        if what == "revoke":
            return self._revoke()
        # Few variants, so that some override others, in both directions.
        gone = pick([[], [], self.admins[:1], self._some(self.signers, 2)])
        given = [one for one in pick([self.people, self._some(self.people, 4)]) if one not in gone]
        given += gone[:1] if self.random.random() < 0.05 else []
        old = pick([[], [key.id for key in self.keys], [key.id for key in self._some(self.keys, 4)]])
        by = pick([*self.ROOTS, ROOT, RECOVERY, *self.signers])
        out = [one for one in self._some(self.people, 2) if one not in given and self.random.random() < 0.3]
        return says_epoch(
            by,
            pick(self.keys[:4]),
            given,
            gone,
            old=old,
            roots=pick([self.ROOTS[:2], self.ROOTS]),
            while_={pick([*self.admins, self.stranger]): out} if out else {},
            of=pick([[], self.admins[:1], self.admins, self._some([*self.people, ROOT], 2)]),
        )

    def _member(self) -> Statement:
        by, who = self.random.choice(self.signers), self.random.choice([*self.people, *self.heirs[:3]])
        role: Role = self.random.choice(["admin", "writer", "writer", "reader"])
        return says_member(by, who, role, since=self.random.randrange(4), person=self._person())

    def _revoke(self) -> Statement:
        pick = self.random.choice
        by, who = pick([ROOT, *self.admins, *self.signers]), pick([*self.people, *self.people, *self.ROOTS])
        if by in self.ROOTS:
            who = pick([*self.admins, *self.people, *self.people, *self.ROOTS[:2]])
        said = [st.hash for st in self.heap if st.body.by == who.key]
        heirs = self._some(self.heirs, 1)
        keep = self._some(said, len(said))
        counts = {one.id: self.random.randrange(3) for one in (who, *heirs)}
        rank = self.random.randrange(2)
        zeros = pick([False, True])
        person = self._person()
        return says_revoked(by, who, keep=keep, n=counts, heirs=heirs, person=person, rank=rank, zeros=zeros)

    def _person(self) -> str:
        return self.random.choice([OWNER, "12" * 8])

    def _some(self, items: Sequence, most: int) -> list:  # type: ignore[type-arg]
        return self.random.sample(items, min(len(items), self.random.randint(0, most)))

    def ring(self, chosen: Iterable[int], births: int = 1, keys: Iterable[int] = ()) -> Ring:
        """Return the ring of some of these statements; `births`: the geneses that it knows (1, 2, or 3 for
        both)."""
        statements = [self.heap[n] for n in chosen]
        statements += [st for n, st in enumerate(self.genesis) if births >> n & 1]
        return Ring(VAULT, statements, [self.keys[n] for n in keys])


def open_slots(ring: Ring, box_secret: bytes) -> Ring:
    """Return the ring with the epoch keys that slots in its open part hold for this box key."""
    shown = tuple(statement for statement in ring.statements if statement.public)
    return ring.add((), Keyring(ring.vault, shown, "").slot_keys([box_secret]))
