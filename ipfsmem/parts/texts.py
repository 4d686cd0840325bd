"""The texts of one scope: read, listed, written, forgotten, settled. `Memory` has these methods as its own.

What is read for a scope includes the scopes that turned out to be it, and what is written goes where it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ipfsmem.bundle.keys import check_scope
from ipfsmem.config import context_tokens, tokens_beside_for_facts
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_records import MemoryRecord, Seen
from ipfsmem.parts.part import MemoryPart, releases_lock
from ipfsmem.parts.vault_handle import VaultHandle

if TYPE_CHECKING:
    from ipfsmem.memories.candidates import Candidate
    from ipfsmem.memories.context import ContextBlock, Readiness
    from ipfsmem.memories.context_layouts import Layout
    from ipfsmem.memories.stacks import ScopeStack

#: Types that a method takes, by where they are: imported when something is no such type.
IMPORTED_LATE = {"ContextBlock": "ipfsmem.memories.context", "Layout": "ipfsmem.memories.context_layouts"}


class MemoryTexts(MemoryPart):
    """The memories of one scope; "" is the nameless one."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        """Raises KeyNameError."""
        super().__init__(opened)
        #: The same texts without the plain files and without the scopes that turned out to be this one.
        self.memories = opened.memories.in_scope(scope)

    @property
    def scope(self) -> str:
        """The token of the scope."""
        return self.memories.scope

    def in_scope(self, scope: str) -> MemoryTexts:
        """The memories of another scope."""
        return self if scope == self.scope else MemoryTexts(self._open, scope)

    def _stack(self) -> ScopeStack:
        """What is read for this scope."""
        from ipfsmem.memories.stacks import ScopeStack

        return ScopeStack([self.memories, *self._below()])

    def _below(self) -> list[MemoryStore]:
        """The scopes that turned out to be this one."""
        below = self._open.scopes.stack(self.scope)[1:] if self.scope else []
        return [self.memories.in_scope(token) for token in below]

    def target(self) -> MemoryTexts:
        """Where a new write meant for this scope goes."""
        return self.in_scope(self._open.scopes.target(self.scope)) if self.scope else self

    @releases_lock
    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        layout: Layout = "index",
        count: Callable[[str], int] | None = None,
        session: str = "",
        exclude: Iterable[str] = (),
        preview: bool = False,
        by_meaning: bool = True,
        plugins: bool = True,
        running: str = "",
    ) -> ContextBlock:
        """What a model is given: the index of the own memories of this scope and of what is everybody's, and with a query the
        texts, messages and events that match it; fenced, never more than `max_tokens` (as the settings say, else 2,000 and what the facts take, of the layout `turn` 500). `count` counts the tokens
        of a text where three bytes a token are not exact enough. Others' texts stand in it once they are promoted. Raises
        UsageError.

        `session`, any name: what it was given in this way, by whatever process of this device, is not given again, until
        `reset_context` says that it has that before it no more. Messages of the session with this name, or with the name `running`, are
        left out: the model has them. `exclude`: the same for who keeps the `marks` of blocks. `preview`:
        a person only looks at what it would be given, or `mark_delivered` says later that it was. `by_meaning`: False for who cannot wait for a model. `plugins`: False for who
        cannot wait for the plugins that the settings switch on; what they add takes a quarter of the tokens at most.
        """
        for_facts = 0
        if max_tokens is None:
            max_tokens, for_facts = context_tokens(layout), tokens_beside_for_facts()
        active = self._open.plugins() if plugins else None
        given = [] if active is None else active.for_context(query, session, layout)
        with self._open.lock:
            self._open.refuse_closed("context")  # meanwhile, by another thread
            self._open.ingest_edits()
            before = frozenset(exclude) | (self._open.shown.to(session) if session else frozenset())

            from ipfsmem.memories.context import context, facts_for, tokens_of, tokens_of_facts

            parts = self._given()
            facts = None
            if for_facts:
                facts = facts_for(parts, layout)
                max_tokens += min(for_facts, tokens_of_facts(facts))

            def built_in(most: int | None) -> ContextBlock:
                return context(
                    parts,
                    query=query,
                    max_tokens=most,
                    layout=layout,
                    count=count or tokens_of,
                    exclude=before,
                    by_meaning=by_meaning,
                    counts=not preview,
                    running=running or session,
                    facts=facts,
                )

            if given:
                from ipfsmem.plugins.fitting import with_plugins

                block = with_plugins(built_in, given, max_tokens, layout, count)
            else:
                block = built_in(max_tokens)
            if session and not preview:
                self._open.shown.note(session, block.marks)
            return block

    def _given(self) -> list[MemoryStore]:
        """The scopes of which a model is given something."""
        return [self.memories, *self._below(), *([self.memories.in_scope("")] if self.scope else [])]

    def readiness(self) -> Readiness:
        """Whether the layout `turn` finds something, and everything, without the time that a large index takes to make."""
        from ipfsmem.memories.context import readiness

        return readiness(self._given())

    def make_ready(self) -> None:
        """Make and write the index that the layout `turn` is looked up in by who has no time to make it, where it is missing and long.
        Raises StorageError."""
        from ipfsmem.memories.context import make_ready

        make_ready(self._given())

    def mark_delivered(self, block: ContextBlock, session: str = "") -> None:
        """Say that a block that was made as a `preview` reached the model: it is not given to that session again, and counts as use."""
        from ipfsmem.memories.context import count_shown

        count_shown(self.memories, block)
        if session:
            self._open.shown.note(session, block.marks)

    def reset_context(self, session: str) -> None:
        """Say that a session has nothing before it any more of what `context` gave it: it was compacted, or cleared."""
        self._open.shown.forget(session)

    def index(self) -> str:
        """The text of MEMORY.md."""
        self._open.ingest_edits()
        return self.memories.index()

    def promote(
        self,
        key: str,
        *,
        copy: str | None = None,
        to: str | None = None,
        seen: Seen | None = None,
        if_match: str | None = None,
        keep: bool = False,
    ) -> MemoryRecord:
        """Make a text of others the word of this person, so that folders, contexts and the agents' index show it.

        `copy`: one of those that `conflicts` names; None when there is only one. A person's act: never to be offered to
        a model, by an API token, an adapter or a folder (format section 5.2). Raises NotFoundError, UsageError.

        With `to` an own text of this scope goes into another one ("" is the nameless one), and is forgotten here unless `keep`. It
        replaces what is shown there only where `if_match` is the SHA-256 of that; `seen`: what the caller was shown here. Raises
        ChangedError too.
        """
        if to is not None:
            return self._promote_to(key, check_scope(to) if to else "", copy, seen, if_match, keep=keep)
        if seen is not None or if_match is not None or keep:
            raise UsageError("seen, if_match and keep require `to`, the scope to move to")
        self._open.ingest_file(key, self.scope)
        promoted = self.memories.promote(key, copy)
        self._open.render_file(key, self.scope)
        return promoted

    def _promote_to(
        self, key: str, to: str, copy: str | None, seen: Seen | None, if_match: str | None, *, keep: bool
    ) -> MemoryRecord:
        if copy is not None:
            raise UsageError("a copy is a pending text: approve it first, then move it to a scope")
        from ipfsmem.memories.promoting import promote_to

        there = self.in_scope(to).target()
        for part in (self, there):
            self._open.ingest_file(key, part.scope)
        made = promote_to(self.memories, there.memories, key, seen=seen, if_match=if_match, keep=keep)
        if not keep and self._open.files is not None:
            self._open.files.forget(key, self.scope)
        self._open.render_file(key, there.scope)
        return made

    def candidates(self, source: str | None = None) -> tuple[Candidate, ...]:
        """The texts of others that `promote` could make this person's word, and the sessions with pending messages; with `source`, the name
        of a program, those that an import of it brought: texts on this device, messages on any."""
        self._open.ingest_edits()
        from ipfsmem.exchange.taken_before import TakenBefore
        from ipfsmem.memories.candidates import candidates

        if source is None:
            return candidates(self.memories)
        return candidates(self.memories, TakenBefore(self._replica).of_program(source), source)

    def promote_all(self, source: str) -> tuple[Candidate, ...]:
        """Promote every candidate that an import of a program brought on this device and that stands alone under its key, and approve the
        pending messages that its imports brought, all or none; those that were. What a text says of its origin counts for nothing. A person's act, as `promote` is. Raises
        NotFoundError when there is none.
        """
        self._open.scan()
        from ipfsmem.exchange.taken_before import TakenBefore
        from ipfsmem.memories.candidates import promote_all

        promoted = promote_all(self.memories, TakenBefore(self._replica).of_program(source), source)
        if not promoted:
            raise NotFoundError(
                f"no import from {source[:60]!a} on this device brought a candidate that stands alone",
                hint="List pending texts: ipfsmem approve --list",
            )
        self._open.render()
        self._open.changed()
        return promoted

    def files(self) -> dict[str, bytes]:
        """Every memory that is shown, by key."""
        self._open.ingest_edits()
        with self._replica.reading():
            return {view.key: view.data for _, view in self.memories.views() if view.data is not None}
