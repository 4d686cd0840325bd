"""Shared code of the operations on facts: the facts of a call, a kind, and the text that a caller was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.facts.categories import Kind
from ipfsmem.operation import Except, ForModels, Http, View

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Facts

#: The kind of entries to list.
OfKind = Annotated[
    Kind | None,
    Meta(description="Only entries of this kind."),
    ForModels("fact: what holds; procedure: how something is done; episode: what happened."),
]
#: The `seen` of the entry that a change replaces.
SeenFact = Annotated[
    str | None,
    Meta(max_length=64, description="Change the entry only if this `seen` is current."),
    Http(etag=True),
    ForModels("The seen value of the answer that showed it.", required=True),
    Except(("cli",)),
]


def facts_of(view: View) -> Facts:
    """Return the facts of the scope of a call."""
    from ipfsmem.config import settings
    from ipfsmem.memories.facts import Facts

    return Facts(view.opened.memories.in_scope(view.target), settings().facts)
