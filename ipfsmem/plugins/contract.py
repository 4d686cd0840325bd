"""The interface of a plugin: an additional memory in a separate package, which provides texts and receives turns.

A package declares it as an entry point in the group `ipfsmem.plugins`: a callable without arguments, usually a class. Each method
is optional. A plugin runs in its own process, which has no access to the vault and whose output is discarded: its input are these
arguments, its output is untrusted text for a model.
"""

from __future__ import annotations

from typing import Final, Protocol

#: The group of entry points.
GROUP: Final = "ipfsmem.plugins"


class MemoryPlugin(Protocol):
    """An additional memory; the built-in memory is never replaced."""

    def prompt_block(self, session: str) -> str:
        """Return text for a model at the start of a session; "" for nothing. `session`: its name, "" if it has none."""

    def prefetch(self, query: str, session: str) -> str:
        """Return text that fits a question; "" for nothing."""

    def on_turn_complete(self, session: str, summary: str) -> None:
        """Receive the text of a finished turn, cut to some thousand characters. Nobody waits for this."""
