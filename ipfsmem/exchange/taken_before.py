"""Record the texts that this device imported from other programs, so that they are not imported again.

A repeated import does not undo an edit or delete of an imported text. The record is one row of keyed hashes next to
the state, which reveal no text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta

_SIZE = 8
#: Precedes the name of a program, so that it differs from an origin.
_BY = "by "


class ImportedTexts:
    """The texts that this device imported, by scope and key, and by origin."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        stored = replica.db.get_meta(meta.IMPORTED) or b""
        self._marks = {stored[at : at + _SIZE] for at in range(0, len(stored), _SIZE)}

    def has(self, scope: str, key: str, text: bytes, origin: str = "") -> bool:
        """Return whether this text was imported under this key, and from `origin` if given."""
        return bool(self._marks) and self._mark(scope, key, text, origin) in self._marks

    def of_program(self, program: str) -> Callable[[str, str, bytes], bool]:
        """Return a function of scope, key and text: whether an import of this program brought it."""
        return lambda scope, key, text: self.has(scope, key, text, _BY + program)

    def add(self, program: str, texts: Iterable[tuple[str, str, bytes, str]]) -> None:
        """Record texts by scope, key and origin, and by the program (inside the transaction of their import)."""
        new = {
            self._mark(scope, key, text, origin_name)
            for scope, key, text, origin in texts
            for origin_name in ("", origin, _BY + program)
        } - self._marks
        if new:
            self._marks |= new
            self._replica.db.set_meta(meta.IMPORTED, b"".join(sorted(self._marks)))

    def _mark(self, scope: str, key: str, text: bytes, origin: str) -> bytes:
        encoded = (
            f"{scope}/{key}\n".encode()
            + hashlib.sha256(text).digest()
            + origin.encode(errors="surrogatepass")
        )
        return hashlib.blake2b(encoded, digest_size=_SIZE, key=self._replica.device.row_key).digest()
