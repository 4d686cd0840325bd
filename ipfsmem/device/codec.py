"""What a storage mode does to bytes before they reach the disk or leave it: the one gate each mode has.

The replica and the sync engine only ever see this interface; the plain and the sealed one live in `mode`.
"""

from __future__ import annotations

from typing import Protocol

from ipfsmem.ring.keyring import Ring


class Codec(Protocol):
    """How bodies, state nodes and local rows are stored. Opening raises OpenError or FormatError."""

    #: Ending of the files that hold state nodes.
    extension: str

    @property
    def ek(self) -> str:
        """Id of the epoch key that seals now; "" in plain modes, and while none may seal."""
        ...

    def use_ring(self, ring: Ring) -> None:
        """Take over the keys of a ring, and what it says of the one that seals."""
        ...

    def seal_body(self, name: str, body: bytes) -> tuple[str, bytes]:
        """The stored form of an entry's body, and the id of the key that it is under."""
        ...

    def look_ahead(self, body: bytes) -> None:
        """Do what takes long in sealing this text already now, so that no lock is held meanwhile; one text is remembered."""
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
