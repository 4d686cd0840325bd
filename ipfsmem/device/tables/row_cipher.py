"""Protects the rows about plain files in a sealed vault: keyed hashes for lookups, sealed bytes for content.

A short text or a file's name can be guessed from its plain hash, so a stolen disk must not have that either.
"""

from __future__ import annotations

from typing import Protocol


class RowCipher(Protocol):
    """Hides rows under a key of this device. A plain vault has none."""

    def mark(self, *parts: object) -> bytes:
        """Return a keyed hash of these values, 16 bytes: equal for equal values, and no one else can make or guess it."""
        ...

    def seal_row(self, row: bytes) -> bytes:
        """Return the form in which a row is stored on this disk."""
        ...

    def open_row(self, stored: bytes) -> bytes:
        """Open a sealed row. Raises OpenError."""
        ...
