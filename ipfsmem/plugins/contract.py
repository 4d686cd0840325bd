"""What a plugin is: a memory beside this one, in a package of its own, that is asked for text and told of turns.

A package names it in its entry points, group `ipfsmem.plugins`; the value is what makes it without arguments, mostly a class. Each
method may be missing. It runs in a process of its own, where printing goes nowhere and nothing of the memory is open: what it is
given is what stands here as arguments, and what it gives is text for a model, never an instruction of ours.
"""

from __future__ import annotations

from typing import Final, Protocol

#: The group of entry points.
GROUP: Final = "ipfsmem.plugins"


class MemoryPlugin(Protocol):
    """A memory beside the built-in one, which it adds to and never replaces."""

    def prompt_block(self, session: str) -> str:
        """What a model is to know at the start of a session; "" for nothing. `session`: its name, "" where it has none."""

    def prefetch(self, query: str, session: str) -> str:
        """What it has that fits a question; "" for nothing."""

    def on_turn_complete(self, session: str, summary: str) -> None:
        """A turn is over: what was said in it, cut to some thousand characters. Nobody waits for this."""
