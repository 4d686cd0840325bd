"""Encode bodies, state nodes and local rows for storage: in the clear, or sealed under a vault's keys.

Memories are compressed before they are sealed; segments, nodes and rows are not. The ring decides which key seals. A
codec does not sign.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol

import msgspec

from ipfsmem.causal.entries import CardName, MemoryName, entry_context, parse_entry
from ipfsmem.device.identity import open_row, seal_row
from ipfsmem.device.tables.row_cipher import RowCipher
from ipfsmem.errors import OpenError
from ipfsmem.ring.keyring import Ring
from ipfsmem.seal.objects import CARD, MEMORY, SEGMENT, STATE_NODE, EpochKey, Sealer, deflate_if_smaller

_encode = msgspec.msgpack.Encoder().encode


class Codec(Protocol):
    """Encodes bodies, state nodes and local rows. The `open` methods raise OpenError or FormatError."""

    #: File extension of state nodes.
    extension: str

    @property
    def ek(self) -> str:
        """Id of the epoch key that seals; "" in plain modes, and while no key may seal."""
        ...

    def use_ring(self, ring: Ring) -> None:
        """Use the keys of a ring, and the key that it chose for sealing."""
        ...

    def forget_keys(self) -> None:
        """Drop every key; afterwards nothing can be sealed or opened."""
        ...

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """Return the stored form of an entry's body, and the id of its key."""
        ...

    def look_ahead(self, body: bytes) -> None:
        """Do the slow part of sealing a text before the lock is taken. `seal_body` reuses the result for the same
        text; only the last result is kept."""
        ...

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """Return the body of a stored form."""
        ...

    def seal_node(self, prefix: str, raw: bytes) -> bytes:
        """Return the stored form of a state node, under the sealing key."""
        ...

    def open_node(self, prefix: str, ek: str, stored: bytes) -> bytes:
        """Return the JSON of a stored node."""
        ...

    def seal_row(self, row: bytes) -> bytes:
        """Return the form in which a local row is stored on this disk."""
        ...

    def open_row(self, stored: bytes) -> bytes:
        """Return the row of a stored form."""
        ...

    @property
    def cover(self) -> RowCipher | None:
        """The cipher of rows about plain files; None if they are stored in the clear."""
        ...


def body_kind(name: str) -> tuple[int, str]:
    """Return the type and context of the object that holds the body of this entry (format section 3)."""
    parsed = parse_entry(name)
    kind = MEMORY if isinstance(parsed, MemoryName) else CARD if isinstance(parsed, CardName) else SEGMENT
    return kind, entry_context(name)


class PlainCodec:
    """Modes `local` and `ipfs`: everything is stored as it is."""

    extension = ".json"
    ek = ""
    cover = None

    def use_ring(self, ring: Ring) -> None:
        """Do nothing: a plain ring has no keys."""

    def forget_keys(self) -> None:
        """Do nothing: there are no keys."""

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """Return the body unchanged."""
        return "", body

    def look_ahead(self, body: bytes) -> None:
        """Do nothing: a plain text is neither compressed nor sealed."""

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """Return the body unchanged. Raises OpenError for a body under a key."""
        if ek:
            raise OpenError
        return stored

    def seal_node(self, prefix: str, raw: bytes) -> bytes:
        """Return the JSON unchanged."""
        return raw

    def open_node(self, prefix: str, ek: str, stored: bytes) -> bytes:
        """Return the JSON unchanged."""
        return stored

    def seal_row(self, row: bytes) -> bytes:
        """Return the row unchanged."""
        return row

    def open_row(self, stored: bytes) -> bytes:
        """Return the row unchanged."""
        return stored


class SealedCodec:
    """Mode `encrypted-ipfs`: bodies and nodes under epoch keys, local rows under a key of this device.

    While no epoch key may seal (an admin must unlock first), new bodies and nodes are sealed under the device's own
    key with the id "", and sealed again under an epoch key before they are published.
    """

    extension = ".ipm"

    def __init__(
        self, vault_tag: bytes, row_key: bytes, random: Callable[[int], bytes], *, compress: bool = True
    ) -> None:
        self._vault_tag = vault_tag
        self._row_key = row_key
        self._random = random
        self._compress = compress
        self._sealers: dict[EpochKey, Sealer] = {}
        self._by_id: dict[str, list[Sealer]] = {}
        self._sealing: Sealer | None = None
        #: The text of the last `look_ahead`, and its compressed form if compression applies.
        self._ahead: tuple[bytes, bytes | None] | None = None

    def use_ring(self, ring: Ring) -> None:
        """Use all epoch keys of a ring by id, and the one that seals, if any."""
        self._by_id = {}
        for key in (*ring.keys, *ring.spare):
            self._by_id.setdefault(key.id, []).append(self._sealer(key))
        self._sealing = self._sealer(ring.view.sealing) if ring.view.sealing else None

    def forget_keys(self) -> None:
        """Drop the epoch keys, the key of local rows, and the text of `look_ahead`."""
        self._sealers, self._by_id, self._sealing, self._ahead = {}, {}, None, None
        self._row_key = b""

    def _sealer(self, key: EpochKey) -> Sealer:
        if key not in self._sealers:
            self._sealers[key] = Sealer(key, self._vault_tag)
        return self._sealers[key]

    @property
    def ek(self) -> str:
        """Id of the epoch key that seals; "" if none may."""
        return self._sealing.epoch_key.id if self._sealing else ""

    def sealers(self, ek: str) -> list[Sealer]:
        """Return the sealers of the epoch keys with this id; several if ids collide, none if this device does not
        have the key."""
        return self._by_id.get(ek, [])

    def all_sealers(self) -> list[Sealer]:
        """Return the sealers of all epoch keys that this device holds."""
        return [sealer for sealers in self._by_id.values() for sealer in sealers]

    def _opened(self, kind: int, context: str, ek: str, stored: bytes) -> bytes:
        for sealer in self._by_id.get(ek, ()):
            try:
                return sealer.open(kind, context, stored)
            except OpenError:
                continue
        raise OpenError

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """Seal a body as an object of type memory or segment; a memory is compressed if that makes the object smaller."""
        if not self._sealing:
            return "", self.seal_row(body)
        kind, context = body_kind(name)
        sealer = self._sealing
        stream = self._compress_if_safe(body) if kind == MEMORY else None
        stored = sealer.seal(kind, context, body) if stream is None else sealer.seal_deflated(context, stream)
        return sealer.epoch_key.id, stored

    def _compress_if_safe(self, body: bytes) -> bytes | None:
        """Compress a text; None if compression is off, saves nothing, or the text seems to hold a secret.

        Compression can leak a secret: whoever can add to a text learns from its compressed size whether the text
        already contains the addition.
        """
        ahead = self._ahead
        if ahead is not None and ahead[0] == body:
            self._ahead = None
            return ahead[1]
        stream = deflate_if_smaller(body) if self._compress else None
        from ipfsmem.bundle.secrets import find_secrets  # imported late: 5 ms that only writes need

        return None if stream is None or find_secrets(body.decode("utf-8", "replace")) else stream

    def look_ahead(self, body: bytes) -> None:
        """Compress a text and scan it for secrets, for a later `seal_body` of the same text."""
        self._ahead = body, self._compress_if_safe(body)

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """Open the body of a sealed object."""
        if not ek:
            return self.open_row(stored)
        kind, context = body_kind(name)
        return self._opened(kind, context, ek, stored)

    def seal_node(self, prefix: str, raw: bytes) -> bytes:
        """Seal a state node."""
        if not self._sealing:
            return self.seal_row(raw)
        return self._sealing.seal(STATE_NODE, prefix, raw)

    def open_node(self, prefix: str, ek: str, stored: bytes) -> bytes:
        """Open the JSON of a sealed state node."""
        if not ek:
            return self.open_row(stored)
        return self._opened(STATE_NODE, prefix, ek, stored)

    def seal_row(self, row: bytes) -> bytes:
        """Seal a row under this device's own key: rows never leave the device."""
        return seal_row(self._row_key, row, self._random(24))

    def open_row(self, stored: bytes) -> bytes:
        """Open a sealed row."""
        return open_row(self._row_key, stored)

    @property
    def cover(self) -> RowCipher:
        """This codec: rows about plain files are sealed like all other rows."""
        return self

    def mark(self, *parts: object) -> bytes:
        """Return a keyed hash of these values, under the key of local rows."""
        return blake2b(_encode(parts), digest_size=16, key=self._row_key, person=b"ipfsmem/files").digest()
