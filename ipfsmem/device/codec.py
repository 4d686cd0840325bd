"""How bodies, state nodes and local rows are stored, by mode: in the clear, or sealed under the epoch keys of a vault.

A codec turns what is written into what may lie on a disk or at a provider. Memories are compressed before they are
sealed; segments, nodes and rows are not. It signs nothing, and the ring says which key seals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol, TypeVar

import msgspec

from ipfsmem.causal.entries import CardName, MemoryName, entry_context, parse_entry
from ipfsmem.device.identity import open_row, seal_row
from ipfsmem.device.tables.cover import Cover
from ipfsmem.errors import OpenError
from ipfsmem.ring.keyring import Ring
from ipfsmem.seal.objects import CARD, MEMORY, SEGMENT, STATE_NODE, EpochKey, Sealer, deflate_if_smaller

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


class Codec(Protocol):
    """How bodies, state nodes and local rows are stored. Opening raises OpenError or FormatError."""

    #: Ending of the files that hold state nodes.
    extension: str

    @property
    def ek(self) -> str:
        """Id of the epoch key that seals now; "" in plain modes, and while no key may seal."""
        ...

    def use_ring(self, ring: Ring) -> None:
        """Take over the keys of a ring, and what it says of the one that seals."""
        ...

    def forget_keys(self) -> None:
        """Let go of every key; nothing can be sealed or opened any more."""
        ...

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """The stored form of an entry's body, and the id of the key that it is under."""
        ...

    def look_ahead(self, body: bytes) -> None:
        """Do the slow part of sealing a text before the lock is taken. `seal_body` uses it for the same text; one is remembered."""
        ...

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """The body again."""
        ...

    def seal_node(self, prefix: str, raw: bytes) -> bytes:
        """The stored form of a state node under the key that seals now."""
        ...

    def open_node(self, prefix: str, ek: str, stored: bytes) -> bytes:
        """The node's JSON again."""
        ...

    def seal_row(self, row: bytes) -> bytes:
        """The form in which a local row may lie on this disk."""
        ...

    def open_row(self, stored: bytes) -> bytes:
        """The row again."""
        ...

    @property
    def cover(self) -> Cover | None:
        """What hides the rows about plain files; None where they may lie on this disk as they are."""
        ...


def body_kind(name: str) -> tuple[int, str]:
    """Type and context of the object that holds the body of this entry (format section 3)."""
    parsed = parse_entry(name)
    kind = MEMORY if isinstance(parsed, MemoryName) else CARD if isinstance(parsed, CardName) else SEGMENT
    return kind, entry_context(name)


class PlainCodec:
    """Modes `local` and `ipfs`: everything is stored as it is."""

    extension = ".json"
    ek = ""
    cover = None

    def use_ring(self, ring: Ring) -> None:
        """A plain ring has no keys."""

    def forget_keys(self) -> None:
        """There are none."""

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """The body itself."""
        return "", body

    def look_ahead(self, body: bytes) -> None:
        """Nothing to do: a plain text is neither compressed nor sealed."""

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """The body itself. OpenError for one under a key."""
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
    """Mode `encrypted-ipfs`: bodies and nodes under epoch keys, local rows under a key of this device.

    While no epoch key may seal (an admin must unlock first), writing goes on: new bodies and nodes are sealed under the
    device's own key, id "", and are sealed again before they are published.
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
        #: The text of `look_ahead`, and its compressed form if it has one.
        self._ahead: tuple[bytes, bytes | None] | None = None

    def use_ring(self, ring: Ring) -> None:
        """Take over all epoch keys by id, and the one that seals, if any."""
        self._by_id = {}
        for key in (*ring.keys, *ring.spare):
            self._by_id.setdefault(key.id, []).append(self._sealer(key))
        self._sealing = self._sealer(ring.view.sealing) if ring.view.sealing else None

    def forget_keys(self) -> None:
        """Let go of the epoch keys, the key of local rows, and of a text that was looked at ahead."""
        self._sealers, self._by_id, self._sealing, self._ahead = {}, {}, None, None
        self._row_key = b""

    def _sealer(self, key: EpochKey) -> Sealer:
        if key not in self._sealers:
            self._sealers[key] = Sealer(key, self._vault_tag)
        return self._sealers[key]

    @property
    def ek(self) -> str:
        """Id of the epoch key that seals, "" while there is none."""
        return self._sealing.epoch_key.id if self._sealing else ""

    def sealers(self, ek: str) -> list[Sealer]:
        """The sealers with an epoch key's id, none when this device does not hold the key. (An attacker who tries 2^64 keys can
        make two with one id: then both are tried.)"""
        return self._by_id.get(ek, [])

    def _tried(self, ek: str, look: Callable[[Sealer], T]) -> T:
        for sealer in self.sealers(ek):
            with contextlib.suppress(OpenError):
                return look(sealer)
        raise OpenError

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """A sealed object of type memory or segment; a memory is compressed where that makes the object smaller."""
        if not self._sealing:
            return "", self.seal_row(body)
        kind, context = body_kind(name)
        sealer = self._sealing
        stream = self._shorter(body) if kind == MEMORY else None
        stored = sealer.seal(kind, context, body) if stream is None else sealer.seal_deflated(context, stream)
        return sealer.epoch_key.id, stored

    def _shorter(self, body: bytes) -> bytes | None:
        """The text compressed; None where that is off, saves nothing, or the text seems to hold a secret.

        The size of a compressed text reveals, to whoever can add to the text, whether it already contains what they add.
        """
        ahead = self._ahead
        if ahead is not None and ahead[0] == body:
            self._ahead = None
            return ahead[1]
        stream = deflate_if_smaller(body) if self._compress else None
        from ipfsmem.bundle.secrets import find_secrets  # its patterns take 5 ms, and only writing looks

        return None if stream is None or find_secrets(body.decode("utf-8", "replace")) else stream

    def look_ahead(self, body: bytes) -> None:
        """Compress a text and look for secrets in it, for a `seal_body` of the same text."""
        self._ahead = body, self._shorter(body)

    def open_body(self, name: str, ek: str, stored: bytes) -> bytes:
        """The body of a sealed object."""
        if not ek:
            return self.open_row(stored)
        kind, context = body_kind(name)
        return self._tried(ek, lambda sealer: sealer.open(kind, context, stored))

    def seal_node(self, prefix: str, raw: bytes) -> bytes:
        """A sealed state node."""
        if not self._sealing:
            return self.seal_row(raw)
        return self._sealing.seal(STATE_NODE, prefix, raw)

    def open_node(self, prefix: str, ek: str, stored: bytes) -> bytes:
        """The JSON of a sealed state node."""
        if not ek:
            return self.open_row(stored)
        return self._tried(ek, lambda sealer: sealer.open(STATE_NODE, prefix, stored))

    def seal_row(self, row: bytes) -> bytes:
        """A row under this device's own key, as rows never leave the device."""
        return seal_row(self._row_key, row, self._random(24))

    def open_row(self, stored: bytes) -> bytes:
        """The row again."""
        return open_row(self._row_key, stored)

    @property
    def cover(self) -> Cover:
        """This codec: rows about plain files are sealed as all others."""
        return self

    def mark(self, *parts: object) -> bytes:
        """A keyed hash of these values, under the key of the rows."""
        return blake2b(_encode(parts), digest_size=16, key=self._row_key, person=b"ipfsmem/files").digest()
