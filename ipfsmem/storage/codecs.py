"""The two codecs behind the four modes: plain, and sealed under the epoch keys of a vault.

A codec turns bodies, state nodes and local rows into what may lie on a disk or at a provider. It signs nothing,
and it chooses no key: which one seals is what the ring says.
"""

from __future__ import annotations

from collections.abc import Callable

from nacl import bindings, exceptions

from ipfsmem.errors import MembershipError, OpenError
from ipfsmem.seal.objects import MEMORY, SEGMENT, STATE_NODE, EpochKey, Sealer
from ipfsmem.seal.primitives import hkdf_expand


def body_kind(name: str) -> tuple[int, str]:
    """Type and context of the object that holds the body of this entry (format section 3)."""
    return (MEMORY, name[2:]) if name.startswith("m/") else (SEGMENT, name[2:])


class PlainCodec:
    """Modes `local` and `ipfs`: everything is what it is."""

    extension = ".json"
    ek = ""

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """The body itself."""
        return "", body

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """The body itself; one under a key is not ours to open."""
        if ek:
            raise OpenError
        return stored

    def seal_node(self, prefix: str, raw: bytes) -> bytes:
        """The JSON itself."""
        return raw

    def open_node(self, prefix: str, ek: str, stored: bytes) -> bytes:
        """The JSON itself."""
        return stored

    def seal_row(self, row: bytes) -> bytes:
        """The row itself."""
        return row

    def open_row(self, stored: bytes) -> bytes:
        """The row itself."""
        return stored


class SealedCodec:
    """Mode `encrypted-ipfs`: bodies and nodes under epoch keys, local rows under a key of this device."""

    extension = ".ipm"

    def __init__(self, vault_tag: bytes, row_key: bytes, random: Callable[[int], bytes]) -> None:
        self._vault_tag = vault_tag
        self._row_key = hkdf_expand(row_key, b"ipfsmem/v1/local-row", 32)
        self._random = random
        self._sealers: dict[str, Sealer] = {}
        self._sealing: str | None = None
        self._reason = "this memory has no key ring yet"

    def set_keys(self, keys: dict[str, EpochKey], sealing: str | None, reason: str = "") -> None:
        """Take over what the ring holds: all epoch keys by id, the one that seals, or why there is none."""
        for name, key in keys.items():
            if name not in self._sealers:
                self._sealers[name] = Sealer(key, self._vault_tag)
        self._sealing, self._reason = sealing, reason

    @property
    def ek(self) -> str:
        """Id of the epoch key that seals. Raises MembershipError when there is none."""
        if self._sealing is None:
            raise MembershipError(
                f"nothing can be sealed: {self._reason}",
                hint="An admin must unlock this memory with the wallet or the recovery words: ipfsmem keys unlock.",
            )
        return self._sealing

    def sealer(self, ek: str) -> Sealer:
        """The sealer of one epoch key. Raises OpenError when this device does not hold it."""
        try:
            return self._sealers[ek]
        except KeyError:
            raise OpenError from None

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """A sealed object of type memory or segment."""
        kind, context = body_kind(name)
        return self.ek, self._sealers[self.ek].seal(kind, context, body)

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """The body of a sealed object."""
        kind, context = body_kind(name)
        return self.sealer(ek).open(kind, context, stored)

    def seal_node(self, prefix: str, raw: bytes) -> bytes:
        """A sealed state node."""
        return self._sealers[self.ek].seal(STATE_NODE, prefix, raw)

    def open_node(self, prefix: str, ek: str, stored: bytes) -> bytes:
        """The JSON of a sealed state node."""
        return self.sealer(ek).open(STATE_NODE, prefix, stored)

    def seal_row(self, row: bytes) -> bytes:
        """A row under this device's own key, with a random nonce: rows never leave the device."""
        nonce = self._random(24)
        return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(row, b"row", nonce, self._row_key)

    def open_row(self, stored: bytes) -> bytes:
        """The row again."""
        try:
            return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                stored[24:], b"row", stored[:24], self._row_key
            )
        except (exceptions.CryptoError, ValueError):
            raise OpenError("a local row does not belong to this device's key") from None
