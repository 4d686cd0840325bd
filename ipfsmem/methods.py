"""Methods of a memory. Written by tools/generate.py from ipfsmem/operations; change those, not this."""

# ruff: noqa
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipfsmem.operation import View
    from ipfsmem.operations.recall import Recalled
    from typing import Literal


class StackMethods:
    """What reads one scope, or several as one."""

    __slots__ = ()

    if TYPE_CHECKING:
        def _view(self) -> View: ...

    def recall(self, query: str | None = None, *, queries: Iterable[str] = (), kind: Literal['memory', 'event', 'message', 'all'] = 'memory', limit: int = 10, type: str | None = None, tag: str | None = None, category: str | None = None, when: str | None = None, since: str | None = None, until: str | None = None, by: str | None = None, about: str | None = None, threshold: float | None = None, why: bool = False, joined: bool = False) -> Recalled:
        """Find the memories that fit a question or a few words, best first.

        Ranking compares words (of name, description, tags, key and text, whatever the case, accents and English endings), then type,
        tags, importance and age, and the meaning where the settings name a model. Own texts come before those of others, which
        are marked as candidates. With `kind`, also events of the timeline and messages of sessions. With `queries`, each phrasing is
        ranked separately, and the best fit of any of them comes first.

        Args:
            query: A question or a few words.
            queries: Other phrasings of the question, or the questions that it consists of.
            kind: Entries to search: memories, events of the timeline, messages of sessions, or all of them.
            limit: Maximum number of results.
            type: Only memories of this type, events of this type, or messages of this role (user, assistant, tool).
            tag: Only memories with this tag.
            category: Only memories of this category.
            when: Only texts of a time range: last week, may 2023, since friday.
            since: Only texts since: 7d, yesterday, friday, a day, a moment.
            until: Only texts until, included: yesterday, may 2023, a day, a moment.
            by: Only texts that this device, member or speaker wrote or said.
            about: Only texts that name this person or thing.
            threshold: Minimum cosine similarity to the question, -1 to 1; needs a model.
            why: Show the parts of each score, and which words of the question each hit has.
            joined: Show the relations of each memory in the graph.

        Raises:
            UsageError: an argument is out of bounds, the question has no word, nobody is called `by`, or no model is set for `threshold`.
        """
        from ipfsmem.operations.recall import recall

        return recall.run(self._view(), {"query": query, "queries": queries, "kind": kind, "limit": limit, "type": type, "tag": tag, "category": category, "when": when, "since": since, "until": until, "by": by, "about": about, "threshold": threshold, "why": why, "joined": joined})


class MemoryMethods(StackMethods):
    """What is about one scope, or all of them."""

    __slots__ = ()
