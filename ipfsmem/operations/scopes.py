"""The operations on the scopes of a vault: list, create, title, redirect, forget and restore them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from ipfsmem.causal.cards import Card, Kind, ProjectId
from ipfsmem.errors import UsageError
from ipfsmem.operation import Cli, Except, Http, Items, Put, Reason, Stored, View, check_reason, operation

ScopeName = Annotated[
    str,
    Meta(description="Its name: 1 to 64 of a-z, 0-9, _ and -."),
    Cli(metavar="SCOPE"),
    Http(reaches="itself"),
]


class ScopeCard(msgspec.Struct, frozen=True, kw_only=True):
    """A scope. `card` None: it is forgotten, or its card is not fetched."""

    scope: str
    card: Card | None

    @property
    def title(self) -> str:
        """Its title, else its name."""
        return self.scope if self.card is None else self.card.title


class ScopePut(ScopeCard, Put, frozen=True, kw_only=True):
    """A scope, and whether it was created now."""

    created: bool


class ScopeLine(ScopeCard, frozen=True, kw_only=True):
    """A scope and its number of memories."""

    memories: int


class ScopeFacts(ScopeLine, frozen=True, kw_only=True):
    """A scope and its counts."""

    forgotten: bool
    events: int


class ScopeList(Items[ScopeLine], frozen=True, kw_only=True):
    """Scopes by name. It is a sequence of its `scopes`."""

    scopes: tuple[ScopeLine, ...]


class ScopeForgotten(msgspec.Struct, frozen=True, kw_only=True):
    """A scope that was forgotten. `forgotten`: number of its memories; `never_synced`: those in no published version, which cannot be restored."""

    scope: str
    forgotten: int
    never_synced: int


class ScopeRestored(msgspec.Struct, frozen=True, kw_only=True):
    """A scope that was restored. `not_fetched`: number of texts that are not on this device and were not restored."""

    scope: str
    memories: int
    events: int
    not_fetched: int


@operation(
    name="scopes.list",
    summary="List scopes",
    right="read",
    about="scopes",
    http="GET /v1/scopes",
)
def list_(
    view: View,
    *,
    forgotten: Annotated[bool, Meta(description="List forgotten scopes instead.")] = False,
) -> ScopeList:
    """List the scopes: name, kind, number of memories, title, and the target of a redirected scope."""
    counts, covered = view.opened.memories.counts_everywhere(), view.covered
    return ScopeList(
        scopes=tuple(
            ScopeLine(scope=one.token, card=one.card, memories=counts.get(one.token, (0, 0))[0])
            for one in view.opened.scopes.listing(forgotten=forgotten)
            if covered is None or one.token in covered
        )
    )


@operation(
    name="scopes.show",
    summary="Show a scope",
    right="read",
    about="scopes",
    raises=("NotFoundError: there is no such scope.", "KeyNameError: `name` is invalid."),
    http="GET /v1/scopes/{name}",
)
def show(view: View, name: ScopeName) -> ScopeFacts:
    """Show a scope: title, kind, and number of memories and events. Scopes that are redirected to it are not counted."""
    from ipfsmem.open_vault.scopes import MemoryScopes

    view.opened.ingest_edits()
    scopes = MemoryScopes(view.opened)
    one = scopes.known(name)
    counted = next((each for each in scopes.counts() if each.scope == name), None)
    return ScopeFacts(
        scope=name,
        card=one.card,
        forgotten=one.forgotten,
        memories=0 if counted is None else counted.memories,
        events=0 if counted is None else counted.events,
    )


@operation(
    name="scopes.make",
    summary="Create a scope",
    right="write",
    about="scopes",
    raises=(
        "UsageError: the scope exists, or mode ipfs with `ids`.",
        "NotFoundError: the scope is forgotten.",
        "FormatError: `title` is invalid.",
        "LimitError: the vault has too many scopes.",
    ),
)
def make(
    view: View,
    name: ScopeName,
    *,
    title: Annotated[str | None, Stored(), Meta(description="Title; it can be changed later.")] = None,
    kind: Annotated[
        Kind, Meta(description="Its subject: a project (workspace), a person (user) or an agent.")
    ] = "workspace",
    ids: Annotated[
        Iterable[ProjectId],
        Meta(description="IDs of its project, such as a repository ID."),
        Except(("cli", "http", "mcp")),
    ] = (),
) -> ScopeCard:
    """Create a scope with a title and a kind. The first write to a scope also creates it, without title and kind."""
    result = view.opened.scopes.make(name, title=title, kind=kind, ids=ids)
    view.opened.changed()
    return ScopeCard(scope=name, card=result.card)


@operation(
    name="scopes.title",
    summary="Change the title of a scope",
    right="write",
    about="scopes",
    raises=("NotFoundError: there is no such scope, or it is forgotten.", "FormatError: `title` is invalid."),
    idempotent=True,
)
def title_(
    view: View, name: ScopeName, title: Annotated[str, Stored(), Meta(description="Its title.")]
) -> ScopeCard:
    """Change the title of a scope. Its name never changes."""
    result = view.opened.scopes.change(name, title=title)
    view.opened.changed()
    return ScopeCard(scope=name, card=result.card)


@operation(
    name="scopes.put",
    summary="Create a scope, or change its title",
    right="write",
    about="scopes",
    raises=(
        "UsageError: the scope exists, and `title` is None.",
        "NotFoundError: the scope is forgotten.",
        "FormatError: `title` is invalid.",
        "LimitError: the vault has too many scopes.",
    ),
    command="",
    http="PUT /v1/scopes/{name}",
    idempotent=True,
)
def put(
    view: View,
    name: ScopeName,
    *,
    title: Annotated[
        str | None, Stored(), Meta(description="Its title, which a scope that exists already requires.")
    ] = None,
    kind: Annotated[
        Kind,
        Meta(description="The subject of a new scope: a project (workspace), a person (user) or an agent."),
    ] = "workspace",
) -> ScopePut:
    """Create a scope, or change the title of one that exists."""
    scopes = view.opened.scopes
    card = scopes.get(name)
    if card is None or card.forgotten:  # the creation refuses a forgotten one
        result = scopes.make(name, title=title, kind=kind)
    elif title is None:
        raise UsageError(f"the scope {name} exists already, and no title was given for it")
    else:
        result = scopes.change(name, title=title)
    view.opened.changed()
    return ScopePut(scope=name, card=result.card, created=card is None)


@operation(
    name="scopes.redirect",
    summary="Redirect a scope to another one",
    right="write",
    about="scopes",
    raises=(
        "NotFoundError: one of the scopes does not exist, or is forgotten.",
        "UsageError: `into` is the scope itself, or is redirected to it.",
    ),
    audit="scope into",
    command="scope into",
    idempotent=True,
)
def redirect(
    view: View,
    name: ScopeName,
    into: Annotated[
        str | None,
        Meta(description="The other scope; without one the redirection is removed."),
        Cli(metavar="OTHER"),
    ] = None,
) -> ScopeCard:
    """Redirect a scope to another one.

    No text moves: reads of `into` include the texts of `name`, after its own, and writes to `name` go
    to `into`.
    """
    result = view.opened.scopes.change(name, into=into, stay=into is None)
    view.opened.changed()
    return ScopeCard(scope=name, card=result.card)


@operation(
    name="scopes.forget",
    summary="Forget a scope on every device",
    right="admin",
    about="scopes",
    raises=("NotFoundError: there is no such scope, or it is forgotten.",),
    http="DELETE /v1/scopes/{name}",
    destructive=True,
)
def forget(view: View, name: ScopeName, *, reason: Reason = "") -> ScopeForgotten:
    """Forget a scope with every memory and event, on every device.

    Concurrent writes by others become conflicts. Writes to the scope fail until it is restored; its
    texts can be restored from a published version that is still kept.
    """
    from ipfsmem.open_vault.scopes import MemoryScopes

    opened, scopes = view.opened, MemoryScopes(view.opened)
    check_reason(reason)
    opened.scan()
    scopes.known(name, live=True)
    lost = scopes.unpublished(name)
    gone = opened.scopes.forget(name, reason=reason)
    if opened.files is not None:
        opened.files.forget_scope(name)
    if opened.mode.only_here:
        from ipfsmem.memories.purge import erase

        with opened.replica.reading():
            keys = [key for key, _ in opened.replica.store.memories(name)]
        erase(opened.replica, opened.memories.in_scope(name), keys)
    opened.changed()
    return ScopeForgotten(scope=name, forgotten=gone, never_synced=lost)


@operation(
    name="scopes.restore",
    summary="Restore a forgotten scope",
    right="admin",
    about="scopes",
    raises=(
        "NotFoundError: there is no such scope, it is not forgotten, or the version does not contain it.",
    ),
    http="POST /v1/scopes/{name}/restore",
)
def restore(
    view: View,
    name: ScopeName,
    root: Annotated[
        str | None,
        Meta(description="Restore the texts and events of this version."),
        Cli(
            option=True,
            metavar="CID",
            help="Restore the texts and events of this version (see `ipfsmem vault log`).",
        ),
        Except(("http", "mcp")),
    ] = None,
) -> ScopeRestored:
    """Make a forgotten scope writable again.

    With `root`, its texts and events are restored from that published version; otherwise the scope is
    empty.
    """
    from ipfsmem.causal.value import decode_entry
    from ipfsmem.open_vault.scopes import MemoryScopes
    from ipfsmem.published.history import find_root, open_past

    opened, past = view.opened, None
    MemoryScopes(opened).known(name)
    if root is not None:
        with opened.replica.reading():
            tree = open_past(opened.replica, find_root(opened.replica, root)).tree
            past = [(entry, decode_entry(entry, text)) for entry, text in tree.items()]
    back = opened.scopes.restore(name, past)
    opened.render()
    opened.changed()
    return ScopeRestored(scope=name, memories=back.texts, events=back.events, not_fetched=back.not_fetched)
