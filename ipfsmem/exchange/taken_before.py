"""Which texts of other programs this device has taken in before, so that they are not taken in again.

What came in once is this memory's own matter from then on: whoever edits, forgets or deletes it here has said what they think of
it, and an import that is repeated does not say otherwise. One row beside the state, of keyed hashes, which reveal nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta

_SIZE = 8
#: Before the name of a program, so that it is no origin.
_BY = "by "


class TakenBefore:
    """The texts that this device took in, by scope and key, and by where they came from."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        stored = replica.db.get_meta(meta.IMPORTED) or b""
        self._marks = {stored[at : at + _SIZE] for at in range(0, len(stored), _SIZE)}

    def has(self, scope: str, key: str, text: bytes, origin: str = "") -> bool:
        """Whether this text was taken in under this key, from there where an `origin` is given."""
        return bool(self._marks) and self._mark(scope, key, text, origin) in self._marks

    def of_program(self, program: str) -> Callable[[str, str, bytes], bool]:
        """Whether an import of this program took in a text: asked with scope, key and text."""
        return lambda scope, key, text: self.has(scope, key, text, _BY + program)

    def add(self, program: str, texts: Iterable[tuple[str, str, bytes, str]]) -> None:
        """Remember texts by scope, key and origin, and by the program (inside the transaction that takes them in)."""
        new = {
            self._mark(scope, key, text, where)
            for scope, key, text, origin in texts
            for where in ("", origin, _BY + program)
        } - self._marks
        if new:
            self._marks |= new
            self._replica.db.set_meta(meta.IMPORTED, b"".join(sorted(self._marks)))

    def _mark(self, scope: str, key: str, text: bytes, origin: str) -> bytes:
        said = (
            f"{scope}/{key}\n".encode()
            + hashlib.sha256(text).digest()
            + origin.encode(errors="surrogatepass")
        )
        return hashlib.blake2b(said, digest_size=_SIZE, key=self._replica.device.row_key).digest()
