"""The vault that a long-running server holds open: opened on first use, so that a server starts while it is locked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ipfsmem.errors import PassphraseError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Changes with every write: the database version (other processes) and the clock of the state (this one).
Mark = tuple[int, str]


class Holder:
    """One vault, open or waiting to be unlocked."""

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self._open_memory = open_memory
        self._memory: Memory | None = None

    def memory(self) -> Memory:
        """Return the open vault. Raises PassphraseError while it is locked, and the errors of opening it."""
        self.let_go_when_locked()
        self._let_go_when_replaced()
        if self._memory is None:
            self._memory = self._open_memory()
        elif self._memory._open.locked:  # a sync in another thread is being cancelled
            self._memory._open.refuse_closed("the memory")
        return self._memory

    def another(self) -> Memory:
        """Open the vault a second time, for long work concurrent with requests; the caller closes it."""
        return self._open_memory()

    def let_go_when_locked(self) -> None:
        """Drop the keys of a vault that was locked since; it is opened again after an unlock."""
        if self._memory is None:
            return
        opened = self._memory._open
        if not opened.closed and (opened.locked or not opened.still_unlocked()):
            opened.drop_keys()
        if opened.locked and opened.closed:
            self.close()

    def _let_go_when_replaced(self) -> None:
        """Close a vault whose files were restored from a backup, moved or deleted; the next use opens the current files."""
        if self._memory is not None and self._memory.replica.db.replaced():
            self.close()

    def memory_if_unlocked(self) -> Memory | None:
        """Return the open vault; None while it is locked."""
        try:
            return self.memory()
        except PassphraseError:
            return None

    def mark(self) -> Mark | None:
        """Return a value that changes with every possible change of the vault, by this or another process; None while locked."""
        memory = self.memory_if_unlocked()
        if memory is None:
            return None
        replica = memory.replica
        return replica.db.version(), replica.store.frame.hlc

    def close(self) -> None:
        """Close it. The next use opens it again."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()
