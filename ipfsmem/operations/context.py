"""The operation `context`: the text for a model at the start of a session, or before a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.memories.context_layouts import LEAST_TOKENS, MOST_TOKENS, Layout
from ipfsmem.operation import Cli, Except, ForModels, View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.context import ContextBlock
    from ipfsmem.memories.memories import MemoryStore

LATE = {"ContextBlock": "ipfsmem.memories.context"}
#: Maximum number of marks of one call.
_MARKS = 10_000


@operation(
    summary="Print the context of an agent's session",
    right="read",
    about="stack",
    everybody=True,
    raises=("UsageError: the layout requires a query.",),
    audit="context",
    http="POST /v1/context",
    tool="context",
    title="Context",
    for_models="Context for the start of a conversation: the index of the memories and, with a query, the matching texts.",
    waits=True,
)
def context(
    view: View,
    query: Annotated[
        str | None,
        Meta(description="Query whose matches precede the index."),
        Cli(option=True, metavar="WORDS"),
        ForModels("Topic of the conversation."),
    ] = None,
    *,
    max_tokens: Annotated[
        int | None,
        Meta(
            ge=LEAST_TOKENS,
            le=MOST_TOKENS,
            description="Maximum number of tokens (default: 2,000; 500 for turn). A token counts as three bytes.",
        ),
        Cli(metavar="N"),
        ForModels(
            "Maximum length. Default: the setting, usually 2,000; 500 with layout turn.",
            most=20_000,
        ),
    ] = None,
    layout: Annotated[
        Layout,
        Meta(
            description="index: the index and matches of the query. full: also recent events. ranked: only matches. turn: only the best."
        ),
        ForModels("index; full: also the latest events; ranked: only matches; turn: only the best three."),
    ] = "index",
    preview: Annotated[
        bool,
        Meta(description="Show size, contents, omissions and possible secrets; record nothing."),
        Except(("mcp",)),
    ] = False,
    session: Annotated[
        str,
        Meta(
            max_length=1_000,
            description="Session name (any text); texts that it was already given are omitted.",
        ),
        Cli(metavar="NAME"),
        Except(("http", "mcp")),
    ] = "",
    exclude: Annotated[
        Iterable[str],
        Meta(max_length=_MARKS, description="Omit the texts with these `marks`, from earlier results."),
        Except(("cli", "mcp")),
    ] = (),
    running: Annotated[
        str,
        Meta(description="Omit the messages of this session too, as the model has them."),
        Except(("cli", "http", "mcp")),
    ] = "",
    count: Annotated[
        Callable[[str], int] | None,
        Meta(description="Counts the tokens of a text."),
        Except(("cli", "http", "mcp")),
    ] = None,
    deliver: Annotated[
        bool,
        Meta(description="Record that the model gets it; False: `mark_delivered` records it later."),
        Except(("cli", "http", "mcp")),
    ] = True,
    by_meaning: Annotated[
        bool,
        Meta(description="Use the embedding model of the settings, which takes time."),
        Except(("cli", "http", "mcp")),
    ] = True,
    plugins: Annotated[
        bool,
        Meta(description="Ask the plugins of the settings: they get at most a quarter of the tokens."),
        Except(("cli", "http", "mcp")),
    ] = True,
) -> ContextBlock:
    """Return the context for a model.

    The context is the index of your memories and, with `query`, the matching memories, messages and
    events. Each quoted text names its author; the first sentence says that the texts are memory and not
    instructions.

    Texts of others are included once they are approved. Texts of a named scope precede those of the
    default scope.
    """
    from ipfsmem.config import context_tokens, tokens_beside_for_facts
    from ipfsmem.memories.context import context as block_of
    from ipfsmem.memories.context import facts_for, tokens_of, tokens_of_facts

    opened, for_facts = view.opened, 0
    if max_tokens is None:
        max_tokens, for_facts = context_tokens(layout), tokens_beside_for_facts()
    active = opened.plugins() if plugins else None
    plugin_parts = [] if active is None else active.for_context(query, session, layout)
    with opened.lock:
        opened.refuse_closed("context")  # another thread may have closed it meanwhile
        opened.ingest_edits()
        parts = context_sources(view)
        before = frozenset(exclude) | (opened.shown.to(session) if session else frozenset())
        facts = None
        if for_facts:
            facts = facts_for(parts, layout)
            max_tokens += min(for_facts, tokens_of_facts(facts))

        def built_in(most: int | None) -> ContextBlock:
            return block_of(
                parts,
                query=query,
                max_tokens=most,
                layout=layout,
                count=count or tokens_of,
                exclude=before,
                by_meaning=by_meaning,
                counts=deliver and not preview,
                running=running or session,
                facts=facts,
            )

        if plugin_parts:
            from ipfsmem.plugins.fitting import with_plugins

            block = with_plugins(built_in, plugin_parts, max_tokens, layout, count)
        else:
            block = built_in(max_tokens)
        if session and deliver and not preview:
            opened.shown.note(session, block.marks)
    if not preview:
        return block
    from ipfsmem.bundle.secrets import find_secrets

    return msgspec.structs.replace(block, secrets=tuple(map(str, find_secrets(block.text))))


def context_sources(view: View) -> list[MemoryStore]:
    """Return the memories of a context: those of the scopes to read, then those of the default scope."""
    return [view.opened.memories.in_scope(one) for one in dict.fromkeys((*view.scopes, ""))]
