"""Derive a vault's root keys from a wallet signature, 64 random bytes or the recovery phrase (format section 2.3).

`message` checks signatures before. Secrets passed as arguments are not stored.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import cached_property
from typing import Final, Literal

import msgspec

from ipfsmem.errors import UsageError, WrongWalletError
from ipfsmem.seal.primitives import (
    Signer25519,
    argon2id,
    hkdf_extract,
    normalised_passphrase,
    x25519_public,
)

NO_ADDRESS: Final = bytes(20)
_PREFIX: Final = b"ipfsmem/v1/"


class RootKeys(msgspec.Struct, frozen=True, dict=True):
    """The three secrets of a vault's root, and 8 bytes to check them.

    `admin_seed` and `head_seed` are Ed25519 seeds (signing the ring; the anchor's IPNS name), `box_secret` is an
    X25519 secret. `check` is None for recovery keys. The repr shows no secret.
    """

    kind: Literal["wallet", "random", "recovery"]
    admin_seed: bytes
    head_seed: bytes
    box_secret: bytes
    check: bytes | None = None

    @classmethod
    def from_signature(
        cls, rs64: bytes, address20: bytes, vault: str, key_number: int, passphrase: str | None = None
    ) -> RootKeys:
        """Derive a wallet's keys from `r | s` as returned by `message.normalise_signature`.

        With a `passphrase`, the call needs about 0.2 s. Raises UsageError for an invalid label, number or size,
        PassphraseError for an empty passphrase or one that is not text.
        """
        from ipfsmem.wallet.message import check_address, check_vault

        check_address(address20)
        check_vault(vault)
        extra = b"" if passphrase is None else _stretch(passphrase, address20, vault)
        return cls._from_root("wallet", rs64, address20, vault, key_number, extra)

    @classmethod
    def from_random(cls, secret64: bytes, vault: str, key_number: int) -> RootKeys:
        """Derive the keys of a vault without a wallet. `secret64`, 64 random bytes, replaces the signature; zeros the
        address."""
        return cls._from_root("random", secret64, NO_ADDRESS, vault, key_number, b"")

    @classmethod
    def from_recovery(cls, secret32: bytes) -> RootKeys:
        """Derive the second root of a vault from the 32 bytes of its recovery phrase."""
        if len(secret32) != 32:
            raise UsageError(f"a recovery secret has 32 bytes, this has {len(secret32)}")
        prk = hkdf_extract(_PREFIX + b"recovery", secret32)
        admin, head, box = (_expand(prk, _PREFIX + label) for label in (b"admin", b"head", b"box"))
        return cls("recovery", admin, head, box)

    @classmethod
    def _from_root(
        cls,
        kind: Literal["wallet", "random"],
        root: bytes,
        address20: bytes,
        vault: str,
        key_number: int,
        extra: bytes,
    ) -> RootKeys:
        from ipfsmem.wallet.message import check_key_number, check_vault

        check_vault(vault)
        check_key_number(key_number)
        if len(root) != 64:
            raise UsageError(f"the root secret of a vault has 64 bytes, this has {len(root)}")
        prk = hkdf_extract(_PREFIX + b"wallet-root", root + extra)
        label = vault.encode("ascii")
        scope = b"\x00" + address20 + len(label).to_bytes(2, "big") + label + key_number.to_bytes(4, "big")
        admin, head, box, check = (
            _expand(prk, _PREFIX + name + scope) for name in (b"admin", b"head", b"box", b"check")
        )
        return cls(kind, admin, head, box, check[:8])

    @cached_property
    def admin(self) -> Signer25519:
        """Return the key that signs ring statements."""
        return Signer25519(self.admin_seed)

    @cached_property
    def head(self) -> Signer25519:
        """Return the key that signs the anchor's IPNS record."""
        return Signer25519(self.head_seed)

    @property
    def admin_public(self) -> bytes:
        """Ed25519 public key, 32 bytes."""
        return self.admin.public

    @property
    def head_public(self) -> bytes:
        """Ed25519 public key of the anchor, 32 bytes."""
        return self.head.public

    @cached_property
    def box_public(self) -> bytes:
        """X25519 public key, 32 bytes."""
        return x25519_public(self.box_secret)

    @cached_property
    def vault_tag(self) -> bytes:
        """The 16-byte tag of the sealed vault whose *first* root this is.

        The tag of a second wallet's keys is that of a vault that does not exist. Raises UsageError for a recovery
        key, which is never the first root.
        """
        return self.tag(plain=False)

    def tag(self, *, plain: bool) -> bytes:
        """Return the tag of the sealed or plain vault whose first root this is. These are two different vaults."""
        if self.kind == "recovery":
            raise UsageError("a recovery key is not the first root of a vault, so it names none")
        return vault_tag(self.admin_public, plain=plain)

    def __repr__(self) -> str:
        return f"RootKeys(kind={self.kind!r}, admin_public={self.admin_public.hex()})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("kind", self.kind), ("admin_public", self.admin_public.hex())]


def vault_tag(admin_public: bytes, *, plain: bool) -> bytes:
    """Return the 16-byte tag of the vault whose first root has this admin key (format section 2.3).

    Only the tag distinguishes a sealed vault from a plain one; every signature is bound to it.
    """
    if len(admin_public) != 32:
        raise UsageError(f"an admin key has 32 bytes, this has {len(admin_public)}")
    domain = b"ipfsmem/v1/plain-vault\x00" if plain else b"ipfsmem/v1/vault\x00"
    return hashlib.sha256(domain + admin_public).digest()[:16]


def require_admin(
    keys: RootKeys, pinned: bytes, address: str | None = None, owner: str | None = None
) -> None:
    """Raise WrongWalletError unless `keys` have the admin key pinned on this device (format section 2.2).

    After a mismatch, the caller must stop and offer the recovery phrase, and not create an empty vault. `address`
    (the unlocked wallet) and `owner` (the wallet that created the vault) are for the message.
    """
    if hmac.compare_digest(keys.admin_public, pinned):
        return
    who = f"wallet {address}" if address else "this wallet"
    if address and owner and address != owner:
        raise WrongWalletError(f"{who} did not make this memory ({owner} did)")
    raise WrongWalletError(
        f"{who} derives other keys than those of this vault: another vault name, key number or passphrase, or it began to "
        "sign differently"
    )


def _expand(prk: bytes, info: bytes) -> bytes:
    """HKDF-Expand to 32 bytes.

    Uses `cryptography` instead of `seal.primitives`: root keys are critical, and derived rarely.
    """
    from cryptography.hazmat.primitives.hashes import (
        SHA256,  # imported late: 20 ms that a read of one memory does not need
    )
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

    return HKDFExpand(SHA256(), 32, info).derive(prk)


def _stretch(passphrase: str, address20: bytes, vault: str) -> bytes:
    salt = hashlib.sha256(_PREFIX + b"pp" + address20 + vault.encode("ascii")).digest()[:16]
    return argon2id(normalised_passphrase(passphrase), salt)
