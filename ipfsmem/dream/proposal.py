"""Data types of a dream: the memories of its input, and the proposed changes.

`memories/dreams.py` applies a proposal.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ipfsmem.bundle.memory_file import MemoryFile

#: Maximum number of changes of one dream, more than a person would review.
MOST_CHANGES = 200
#: Kinds of findings for a person, for which no change is proposed: a link to a missing memory, a line of another program's index
#: with a missing target, two memories with nearly the same content, two that may contradict each other, a memory with a low
#: priority.
Kind = Literal["broken-link", "stale-line", "alike", "contradiction", "faded"]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One memory as input of a dream."""

    key: str
    file: MemoryFile
    #: Its priority, 0 to 1 (`recall/priority.py`).
    priority: float = 0.5
    #: Whether its last day of validity is past.
    expired: bool = False
    #: Why it is unknown whether that day is past, in words; `expired` is then False.
    doubtful: str = ""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A new text for a memory; None: forget it."""

    key: str
    text: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that are applied together or not at all, and the reason in one sentence. `reads`: the memories that the step is based
    on; if one of them changed since, the step is skipped. `asks`: whether only a person who was shown the step may apply it."""

    why: str
    changes: tuple[Change, ...]
    reads: tuple[str, ...] = ()
    asks: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of all memories that the step is based on or changes."""
        return tuple(dict.fromkeys((*(one.key for one in self.changes), *self.reads)))


class DreamFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding for a person to review. `other`: a memory, or the target of a link."""

    kind: Kind
    key: str
    other: str = ""
    detail: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a dream. `left`: number of further changes, left for the next dream."""

    steps: tuple[Step, ...] = ()
    found: tuple[DreamFinding, ...] = ()
    looked_at: int = 0
    left: int = 0

    @property
    def changes(self) -> int:
        """Return the number of memories that would be changed or forgotten."""
        return sum(len(step.changes) for step in self.steps)
