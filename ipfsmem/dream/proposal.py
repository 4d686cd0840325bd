"""The input of a dream, and its proposal: memories and changes of them as values.

A step is applied whole or not at all. How it is applied is decided elsewhere.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile

#: Maximum changes of one dream: more than a person reviews.
MOST_CHANGES = 200
#: Findings that a dream lists for a person and leaves alone: a link to nothing, a line of another program's index that leads
#: nowhere, two memories with nearly the same content, two that may contradict each other, one that has faded.
Kind = Literal["broken-link", "stale-line", "alike", "contradiction", "faded"]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One memory as a dream sees it."""

    key: str
    file: MemoryFile
    #: Its worth independent of a question, 0 to 1 (`recall/priority.py`).
    priority: float = 0.5
    #: Whether its last valid day is over.
    expired: bool = False
    #: Why it is unknown whether that day is over, in words; then it is not expired.
    doubtful: str = ""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A new text for a memory; None: it is to be forgotten."""

    key: str
    text: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that belong together, and why, in one sentence. `reads`: the memories that it goes by; when one of these is another by
    then, the step is not done. `asks`: only a person does it, who was shown it."""

    why: str
    changes: tuple[Change, ...]
    reads: tuple[str, ...] = ()
    asks: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """All memories that it is based on or changes."""
        return tuple(dict.fromkeys((*(one.key for one in self.changes), *self.reads)))


class DreamFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something for a person to look at. `other` is a memory, or what a link names."""

    kind: Kind
    key: str
    other: str = ""
    detail: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a dream. `left`: the number of further changes, which the next dream has."""

    steps: tuple[Step, ...] = ()
    found: tuple[DreamFinding, ...] = ()
    looked_at: int = 0
    left: int = 0

    @property
    def changes(self) -> int:
        """How many memories would be changed or forgotten."""
        return sum(len(step.changes) for step in self.steps)
