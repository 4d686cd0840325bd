"""Store the base texts of edits of plain files: the content of a file when its writer read it.

In a plain vault they are blocks of the state, which stay while a row names them. The blocks of a sealed vault are
found by the hash of the ciphertext, so each base is kept with its file, sealed.
"""

from __future__ import annotations

from ipfsmem.device.replica import Replica
from ipfsmem.device.tables.sealed_tracked_files import SealedTrackedFiles
from ipfsmem.device.tables.tracked_files import TrackedFiles


class BaseTexts:
    """The base texts of one linked folder, by file and SHA-256."""

    def __init__(self, replica: Replica, renders: TrackedFiles) -> None:
        self._db = replica.db
        self._sealed = renders if isinstance(renders, SealedTrackedFiles) else None

    def get(self, file: str, sha: bytes | None) -> bytes | None:
        """Return a text that a file showed; None if it is no longer here."""
        if sha is None:
            return None
        return self._db.block(sha) if self._sealed is None else self._sealed.text(file, sha)

    def has(self, file: str, sha: bytes) -> bool:
        """Return whether such a text is here."""
        return self._db.has_block(sha) if self._sealed is None else self._sealed.text(file, sha) is not None

    def keep(self, file: str, sha: bytes, text: bytes, *, in_state: bool = False) -> None:
        """Keep a text for edits of a file (inside a transaction, before its row). `in_state`: a value has exactly this text."""
        if self._sealed is not None:
            self._sealed.keep_text(file, sha, text)
        elif not in_state:
            self._db.add_blocks([(sha, text)])
