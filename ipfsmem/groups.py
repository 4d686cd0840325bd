"""Groups of methods of a memory, such as `memory.sessions`: the declared operations with what is not declared yet."""

from __future__ import annotations

from ipfsmem.methods import SessionMethods
from ipfsmem.operation import View
from ipfsmem.parts.sessions import MemorySessions


class Sessions(SessionMethods, MemorySessions):
    """The sessions of one scope. A session is there from its first item on; any printable text is its name."""

    def _view(self) -> View:
        return View(self._open, self._scope)
