"""What hides the rows about plain files in a sealed memory: keyed hashes to look for, and sealed bytes to read.

A short text or a file's name can be guessed from its plain hash, so a stolen disk must not have that either.
"""

from __future__ import annotations

from typing import Protocol


class Cover(Protocol):
    """Hides rows under a key of this device. In a plain memory there is none."""

    def mark(self, *parts: object) -> bytes:
        """A keyed hash of these values, 16 bytes: equal values have equal ones, and nobody else can make or guess one."""
        ...

    def seal_row(self, row: bytes) -> bytes:
        """The form in which a row may lie on this disk."""
        ...

    def open_row(self, stored: bytes) -> bytes:
        """The row again. Raises OpenError."""
        ...
