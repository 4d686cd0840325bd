"""A workshop for ring tests: people with fixed keys, slots without randomness, and statements of any kind.

Shared by the unit, property and trace tests of the key ring and by its vectors. Nothing here is a test.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from nacl import bindings

from ipfsmem.seal.derive import RootKeys
from ipfsmem.seal.primitives import Signer25519, x25519_public
from ipfsmem.seal.ring import Keyring, Ring, parse_keyring
from ipfsmem.seal.ring_ops import Device, create
from ipfsmem.seal.statements import Member, Revoke, Role, Statement, make


def fixed_box(text: bytes, public: bytes) -> bytes:
    """crypto_box_seal with an ephemeral secret made from its arguments: any implementation can reproduce it."""
    secret = hashlib.sha256(b"ring vectors" + text + public).digest()
    ephemeral = x25519_public(secret)
    nonce = hashlib.blake2b(ephemeral + public, digest_size=24).digest()
    return ephemeral + bindings.crypto_box(text, nonce, public, secret)


def hlc(n: int) -> str:
    return f"{0x019D8AEE0000 + n:012x}0000"


def ek(n: int) -> bytes:
    return hashlib.sha256(b"ek %d" % n).digest()


@dataclass(frozen=True)
class Party:
    """Somebody with a signing key and a box key, both made from a name."""

    name: str
    seed: bytes
    box_secret: bytes
    head: bytes | None = None

    @cached_property
    def signer(self) -> Signer25519:
        return Signer25519(self.seed)

    @property
    def key(self) -> str:
        return self.signer.public.hex()

    @cached_property
    def device(self) -> Device:
        return Device(self.signer.public, x25519_public(self.box_secret), self.name, self.head)

    @property
    def id(self) -> str:
        return self.device.id

    def opens(self, keyring: bytes | Keyring) -> Ring:
        read = parse_keyring(keyring) if isinstance(keyring, bytes) else keyring
        return read.unlock(self.box_secret)


def party(name: str, *, box_of: Party | None = None) -> Party:
    seed = hashlib.sha256(b"sign " + name.encode()).digest()
    box = box_of.box_secret if box_of else hashlib.sha256(b"box " + name.encode()).digest()
    return Party(name, seed, box)


def second_wallet(name: str) -> Party:
    plain = party(name)
    return Party(
        name,
        plain.seed,
        plain.box_secret,
        Signer25519(hashlib.sha256(b"head " + name.encode()).digest()).public,
    )


ROOT_KEYS = RootKeys.from_random(b"\x03" * 64, "default", 1)
RECOVERY_KEYS = RootKeys.from_recovery(b"\x02" * 32)
ROOT = Party("wallet", ROOT_KEYS.admin_seed, ROOT_KEYS.box_secret, ROOT_KEYS.head_public)
RECOVERY = Party(
    "recovery words", RECOVERY_KEYS.admin_seed, RECOVERY_KEYS.box_secret, RECOVERY_KEYS.head_public
)
VAULT, PLAIN = ROOT_KEYS.vault_tag, ROOT_KEYS.tag(plain=True)


def new_ring(*devices: Party, plain: bool = False) -> Ring:
    """A vault with recovery words and these devices, enrolled by the wallet as writers."""
    from ipfsmem.seal.ring_ops import enrol

    ring = create(ROOT_KEYS, RECOVERY_KEYS, None, ek=None if plain else ek(0), since=hlc(0), box=fixed_box)
    for n, one in enumerate(devices):
        ring = enrol(ring, ROOT.signer, one.device, "writer", since=hlc(n + 1), box=fixed_box)
    return ring


def says_member(
    by: Party, who: Party, role: Role = "writer", *, since: int = 1, box: bytes | None = None, label: str = ""
) -> Statement:
    """A member statement, whether or not `by` may make it."""
    device = who.device
    return make(
        by.signer,
        Member(
            anchor=device.anchor.hex() if device.anchor else None,
            box=(box or device.box).hex(),
            by=by.key,
            id=device.id,
            label=label or device.label,
            role=role,
            sign=device.sign.hex(),
            since=hlc(since),
        ),
        VAULT,
    )


def says_revoked(by: Party, who: str, *, keep: tuple[str, ...] = (), n: int = 0, at: int = 1) -> Statement:
    """A revoke statement, whether or not `by` may make it."""
    return make(by.signer, Revoke(at=hlc(at), by=by.key, id=who, keep=tuple(sorted(keep)), n=n), VAULT)
