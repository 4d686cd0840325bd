"""The texts that edits of plain files are merged with: what a file showed when its writer read it.

In a plain memory they are blocks of the state, which stay while a row names them. The blocks of a sealed one are found by
the hash of what is sealed, and a plain text never becomes one: there each is kept with its file, sealed.
"""

from __future__ import annotations

from ipfsmem.device.replica import Replica
from ipfsmem.device.tables.renders import Renders
from ipfsmem.device.tables.sealed_renders import SealedRenders


class BaseTexts:
    """Those of one working copy, by file and SHA-256."""

    def __init__(self, replica: Replica, renders: Renders) -> None:
        self._db = replica.db
        self._sealed = renders if isinstance(renders, SealedRenders) else None

    def get(self, file: str, sha: bytes | None) -> bytes | None:
        """A text that a file showed; None when it is not here any more."""
        if sha is None:
            return None
        return self._db.block(sha) if self._sealed is None else self._sealed.text(file, sha)

    def has(self, file: str, sha: bytes) -> bool:
        """Whether such a text is here."""
        return self._db.has_block(sha) if self._sealed is None else self._sealed.text(file, sha) is not None

    def keep(self, file: str, sha: bytes, text: bytes, *, in_state: bool = False) -> None:
        """Keep a text for edits of a file (inside a transaction, before its row). `in_state`: a value has exactly this text."""
        if self._sealed is not None:
            self._sealed.keep_text(file, sha, text)
        elif not in_state:
            self._db.add_blocks([(sha, text)])
