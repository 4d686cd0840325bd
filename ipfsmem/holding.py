"""The memory that a long-running server holds open: opened when it is first needed, so that a locked one does not keep the server
from starting, and looked at for changes that others made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ipfsmem.errors import PassphraseError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: What a change of the memory changes: the number of another process's commit, and the clock of the own state.
Mark = tuple[int, str]


class Holder:
    """One memory, open or waiting to be unlocked."""

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self._open_memory = open_memory
        self._memory: Memory | None = None

    def memory(self) -> Memory:
        """The memory, open. Raises PassphraseError while it is locked, and what opening it raises."""
        self.let_go_when_locked()
        self._let_go_when_replaced()
        if self._memory is None:
            self._memory = self._open_memory()
        elif self._memory._open.locked:  # a sync in another thread is cut off at this moment
            self._memory._open.refuse_closed("the memory")
        return self._memory

    def another(self) -> Memory:
        """The same memory opened once more, for long work beside what is asked meanwhile; who takes it closes it."""
        return self._open_memory()

    def let_go_when_locked(self) -> None:
        """Drop the keys of a memory that was locked since; it is opened anew once it is unlocked again."""
        if self._memory is None:
            return
        opened = self._memory._open
        if not opened.closed and (opened.locked or not opened.still_unlocked()):
            opened.drop_keys()
        if opened.locked and opened.closed:
            self.close()

    def _let_go_when_replaced(self) -> None:
        """Close a memory whose files were put back from a backup, moved or deleted; it is opened anew where it was."""
        if self._memory is not None and self._memory.replica.db.replaced():
            self.close()

    def memory_if_unlocked(self) -> Memory | None:
        """The memory, open; None while it is locked."""
        try:
            return self.memory()
        except PassphraseError:
            return None

    def mark(self) -> Mark | None:
        """A value that differs from the last one whenever something may have changed, in this process or another; None while locked."""
        memory = self.memory_if_unlocked()
        if memory is None:
            return None
        replica = memory.replica
        return replica.db.version(), replica.store.frame.hlc

    def close(self) -> None:
        """Close it. The next use opens it again."""
        held, self._memory = self._memory, None
        if held is not None:
            held.close()
