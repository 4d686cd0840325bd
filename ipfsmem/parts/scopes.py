"""`memory.scopes`: the named parts of one vault, made, called something, found to be another, forgotten and brought back."""

from __future__ import annotations

import builtins
from collections.abc import Callable

from ipfsmem.causal.cards import Kind
from ipfsmem.causal.value import decode_entry
from ipfsmem.device.replica import Replica
from ipfsmem.memories.scopes import Restored, Scope, Scopes
from ipfsmem.published.history import find_root, open_past


class MemoryScopes:
    """The scopes of an open memory. What is in one is read and written through `memory.scope(token)`."""

    def __init__(
        self,
        replica: Replica,
        scopes: Scopes,
        *,
        scan: Callable[[], None],
        render: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        """`scan` takes in what stands in plain files, `render` brings them up to date, `changed` is told of each change."""
        self._replica = replica
        self._scopes = scopes
        self._scan = scan
        self._render = render
        self._changed = changed

    def list(self, *, forgotten: bool = False) -> builtins.list[Scope]:
        """The scopes by token; with `forgotten` those that are forgotten instead."""
        return self._scopes.listing(forgotten=forgotten)

    def get(self, token: str) -> Scope | None:
        """One scope, also a forgotten one; None when there is none. Raises KeyNameError."""
        return self._scopes.get(token)

    def make(self, token: str, *, title: str | None = None, kind: Kind = "workspace") -> Scope:
        """Make a scope before anything is written there, with what people call it and what it is for. Raises KeyNameError,
        UsageError when it is there, NotFoundError when it is forgotten, FormatError, LimitError.
        """
        made = self._scopes.make(token, title=title, kind=kind)
        self._changed()
        return made

    def lead(self, token: str, into: str | None) -> Scope:
        """Say that a scope turned out to be `into`: nothing moves, its texts are read below that one and new writes go there.
        None takes it back. Raises NotFoundError, UsageError.
        """
        made = self._scopes.change(token, into=into, stay=into is None)
        self._changed()
        return made

    def title(self, token: str, title: str) -> Scope:
        """What people call a scope; its token never changes. Raises NotFoundError, FormatError."""
        made = self._scopes.change(token, title=title)
        self._changed()
        return made

    def forget(self, token: str, *, reason: str = "") -> int:
        """Forget a scope on every device: its memories, its timeline, its title. How many memories went. Raises
        NotFoundError.
        """
        self._scan()
        gone = self._scopes.forget(token, reason=reason)
        self._render()
        self._changed()
        return gone

    def restore(self, token: str, root: str | None = None) -> Restored:
        """Make a forgotten scope writable again, with its texts and events as `root` has them, a published root that is kept
        here; without one it starts empty. Raises NotFoundError.
        """
        past = None
        if root is not None:
            with self._replica.reading():
                tree = open_past(self._replica, find_root(self._replica, root)).tree
                past = [(name, decode_entry(name, text)) for name, text in tree.items()]
        back = self._scopes.restore(token, past)
        self._render()
        self._changed()
        return back
