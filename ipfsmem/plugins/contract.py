"""The interface of a plugin: an additional memory in a package of its own that provides text and is told of turns.

A package names it in its entry points, group `ipfsmem.plugins`; the value is called without arguments to create it, mostly a
class. Each method is optional. It runs in its own process, where output is discarded and nothing of the vault is open: its input
are these arguments, its output is text for a model, never an instruction to us.
"""

from __future__ import annotations

from typing import Final, Protocol

#: The group of entry points.
GROUP: Final = "ipfsmem.plugins"


class MemoryPlugin(Protocol):
    """A memory next to the built-in one, which it adds to and never replaces."""

    def prompt_block(self, session: str) -> str:
        """Return text for a model at the start of a session; "" for nothing. `session`: its name, "" if it has none."""

    def prefetch(self, query: str, session: str) -> str:
        """Return text that fits a question; "" for nothing."""

    def on_turn_complete(self, session: str, summary: str) -> None:
        """Receive the text of a finished turn, cut to some thousand characters. Nobody waits for this."""
