"""The texts of one scope: read, listed, written, forgotten, settled. `Memory` has these methods as its own.

What is read for a scope includes the scopes that turned out to be it, and what is written goes where it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from ipfsmem.bundle.keys import check_key, check_scope
from ipfsmem.bundle.memory_file import MemoryFile, parse_memory
from ipfsmem.config import context_tokens, tokens_beside_for_facts
from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memories.memories import LONG, Memories
from ipfsmem.memories.readings import Reading, Seen, Unsettled, first_own, place_of
from ipfsmem.parts.open_memory import OpenMemory
from ipfsmem.parts.part import MemoryPart, waits_outside

if TYPE_CHECKING:
    from ipfsmem.memories.candidates import Candidate
    from ipfsmem.memories.context import ContextBlock, Readiness
    from ipfsmem.memories.layouts import Layout
    from ipfsmem.memories.stacks import Stack

#: Types that a method takes, by where they are: imported when something is no such type.
IMPORTED_LATE = {"ContextBlock": "ipfsmem.memories.context", "Layout": "ipfsmem.memories.layouts"}


def _from_below(
    found: Reading,
    data: bytes | Callable[[bytes | None], bytes],
    seen: Seen | None,
    if_match: str | None,
    scope: str,
) -> bytes:
    """The whole text of a write to `scope` where its reader is shown `found`, which stands below it. Raises ChangedError when that is not what was seen, UsageError for parts of others' text."""
    matches = (
        found.seen.startswith(seen.lower()) if isinstance(seen, str) else seen in (None, found, found.token)
    )
    if if_match is not None:
        matches = matches and bool(if_match) and found.sha256.startswith(if_match.lower())
    if not matches:
        raise ChangedError(f"{found.key} is not what was read: it shows {place_of(found.scope, found.key)}")
    if isinstance(data, bytes):
        return data
    if not found.own:
        raise UsageError(
            f"{place_of(found.scope, found.key)} is others' word, so no part of it goes into the scope {scope}",
            hint=f"Make it your own first: ipfsmem approve {found.key} --scope {found.scope}",
        )
    return data(found.data)


class MemoryTexts(MemoryPart):
    """The memories of one scope; "" is the nameless one."""

    def __init__(self, opened: OpenMemory, scope: str) -> None:
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

    def _stack(self) -> Stack:
        """What is read for this scope."""
        from ipfsmem.memories.stacks import Stack

        return Stack([self.memories, *self._below()])

    def _below(self) -> list[Memories]:
        """The scopes that turned out to be this one."""
        below = self._open.scopes.stack(self.scope)[1:] if self.scope else []
        return [self.memories.in_scope(token) for token in below]

    def target(self) -> MemoryTexts:
        """Where a new write meant for this scope goes."""
        return self.in_scope(self._open.scopes.target(self.scope)) if self.scope else self

    def write(
        self,
        key: str,
        body: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        type: str | None = None,
        tags: Iterable[str] | None = None,
        fields: Mapping[str, str] | None = None,
        seen: Seen | None = None,
        if_match: str | None = None,
    ) -> Reading:
        """Write a memory, durable when this returns, and what is shown then. `updated` is set to today.

        `seen` is what the caller was shown (a reading, its token, or the token's hash): that is replaced, and what is
        not given comes from it. Without it both are what is shown now. `if_match` refuses (ChangedError) when the text
        shown now does not have this SHA-256, "" when there must be none. Raises what `Memories.write` raises.
        """

        from ipfsmem.memories.write_request import check_values  # only what writes needs it

        check_values({"type": type, **(fields or {})})

        def made(shown: bytes | None) -> bytes:
            if shown is None and body is None:
                self._refuse_parts_of_others(key)
            return self._changed_text(shown, body, {**named, **(fields or {})})

        named = {
            "name": name,
            "description": description,
            "type": type,
            "tags": None if tags is None else f"[{', '.join(listed)}]" if (listed := list(tags)) else "",
        }
        return self._written(key, made, seen, if_match, long=body is None or len(body) > LONG)

    def _refuse_parts_of_others(self, key: str) -> None:
        """A text without what its writer read would come in the way of others' text that is shown."""
        view = self.memories.view(key)
        if view.data is not None and not view.own:
            raise UsageError(
                f"{key} is others' word, so no part of it goes into a text of yours: give the body too, or promote it first"
            )

    def _changed_text(self, shown: bytes | None, body: str | None, given: Mapping[str, str | None]) -> bytes:
        """The text that was shown with what is given put in; what is not given stays."""
        changes = {field: value for field, value in given.items() if value is not None}
        today = self._replica.world.today().isoformat()
        old = parse_memory(shown) if shown is not None else MemoryFile()
        made = old.with_fields(changes, body if body is not None else old.body)
        if made == old and shown is not None:
            return shown
        stamps = {"created": made.created or today, "updated": changes.get("updated", today)}
        from ipfsmem.bundle.header_edit import edit_memory, refuse_over_unclosed

        if shown is not None and body is not None:
            refuse_over_unclosed(shown, body)
        return edit_memory(shown or b"", changes, body, stamps=stamps)

    def write_text(
        self, key: str, data: bytes, *, seen: Seen | None = None, if_match: str | None = None
    ) -> Reading:
        """Write the whole file, header and all, exactly these bytes."""
        return self._written(key, data, seen, if_match)

    def _written(
        self,
        key: str,
        data: bytes | Callable[[bytes | None], bytes],
        seen: Seen | None,
        if_match: str | None,
        *,
        long: bool = False,
    ) -> Reading:
        there = self.target()
        if if_match is not None or isinstance(seen, str):
            # An edit of the file that was not taken in yet is compared too. Without it, it was seen by nobody: it stays
            # out of the way until the write is done, and then is merged or kept beside.
            self._open.take(key, there.scope)
        found = there._shown_below(key, seen)
        if found is not None:
            data = _from_below(found, data, seen, if_match, there.scope)
            seen, if_match = None, there._hides_nothing(key)
        with self._open.telling_uses(there.scope):
            written = there.memories.write(key, data, seen=seen, if_match=if_match, long=long)
        self._open.show(key, there.scope)
        return written

    def _hides_nothing(self, key: str) -> str:
        """What must stand here when a reader is shown a text from below, as `if_match`: nothing, or a text of others."""
        with self._replica.reading():
            view = self.memories.view(check_key(key))
        return "" if view.own or view.data is None else sha256(view.data).hexdigest()

    def _shown_below(self, key: str, seen: Seen | None) -> Reading | None:
        """The text that a reader of this scope is shown under a key of which nothing stands here, from below it."""
        below = self._below()
        if isinstance(seen, Reading) and seen.scope != self.scope:
            return seen if seen.scope in [part.scope for part in below] else None
        with self._replica.reading():
            if not below or isinstance(seen, Unsettled) or self.memories.entry(check_key(key)):
                return None
        return first_own(part.read(key) for part in below)

    @waits_outside
    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        layout: Layout = "index",
        count: Callable[[str], int] | None = None,
        session: str = "",
        without: Iterable[str] = (),
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
        `begin_anew` says that it has that before it no more. Messages of the session with this name, or with the name `running`, are
        left out: the model has them. `without`: the same for who keeps the `marks` of blocks. `preview`:
        a person only looks at what it would be given, or `given` says later that it was. `by_meaning`: False for who cannot wait for a model. `plugins`: False for who
        cannot wait for the plugins that the settings switch on; what they add takes a quarter of the tokens at most.
        """
        for_facts = 0
        if max_tokens is None:
            max_tokens, for_facts = context_tokens(layout), tokens_beside_for_facts()
        active = self._open.plugins() if plugins else None
        given = [] if active is None else active.for_context(query, session, layout)
        with self._open.alone:
            self._open.refuse_closed("context")  # meanwhile, by another thread
            self._open.look()
            before = frozenset(without) | (self._open.shown.to(session) if session else frozenset())

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
                    without=before,
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

    def _given(self) -> list[Memories]:
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

    def given(self, block: ContextBlock, session: str = "") -> None:
        """Say that a block that was made as a `preview` reached the model: it is not given to that session again, and counts as use."""
        from ipfsmem.memories.context import count_shown

        count_shown(self.memories, block)
        if session:
            self._open.shown.note(session, block.marks)

    def begin_anew(self, session: str) -> None:
        """Say that a session has nothing before it any more of what `context` gave it: it was compacted, or cleared."""
        self._open.shown.forget(session)

    def index(self) -> str:
        """The text of MEMORY.md."""
        self._open.look()
        return self.memories.index()

    def conflicts(self, *, everywhere: bool = False) -> list[Unsettled]:
        """Memories with texts that are not shown, by key: what is shown, the copies, and the token for `resolve`.

        `everywhere`: those of all scopes, as `status` counts them; each says its scope.
        """
        self._open.look()
        return self.memories.all_conflicts() if everywhere else self.memories.conflicts()

    def resolve(self, key: str, data: bytes | None = None, *, seen: Seen) -> Reading | None:
        """Settle a conflict: `data` replaces what `seen` holds, an item of `conflicts` or its token, and nothing else.

        None keeps what was shown: the text, or the forget (then the answer is None). A text that came meanwhile stays.
        Raises ChangedError, NotFoundError.
        """
        self._open.take(key, self.scope)
        written = self.memories.resolve(key, data, seen)
        self._open.show(key, self.scope)
        return written

    def promote(
        self,
        key: str,
        *,
        copy: str | None = None,
        to: str | None = None,
        seen: Seen | None = None,
        if_match: str | None = None,
        keep: bool = False,
    ) -> Reading:
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
            raise UsageError("seen, if_match and keep go with `to`, the scope that a text is promoted to")
        self._open.take(key, self.scope)
        promoted = self.memories.promote(key, copy)
        self._open.show(key, self.scope)
        return promoted

    def _promote_to(
        self, key: str, to: str, copy: str | None, seen: Seen | None, if_match: str | None, *, keep: bool
    ) -> Reading:
        if copy is not None:
            raise UsageError(
                "a copy is a text of others: make it your own first, then promote that to a scope"
            )
        from ipfsmem.memories.promoting import promote_to

        there = self.in_scope(to).target()
        for part in (self, there):
            self._open.take(key, part.scope)
        made = promote_to(self.memories, there.memories, key, seen=seen, if_match=if_match, keep=keep)
        if not keep and self._open.files is not None:
            self._open.files.forget(key, self.scope)
        self._open.show(key, there.scope)
        return made

    def candidates(self, source: str | None = None) -> tuple[Candidate, ...]:
        """The texts of others that `promote` could make this person's word, and the sessions with pending messages; with `source`, the name
        of a program, those that an import of it brought: texts on this device, messages on any."""
        self._open.look()
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
                hint="See what there is: ipfsmem approve --list",
            )
        self._open.render()
        self._open.changed()
        return promoted

    def promote_session(self, session: str, *, seen: str | None = None) -> tuple[Candidate, ...]:
        """Approve the pending messages of one session, whichever program they came from; returns them by program. A person's act, as `promote` is.

        `seen`: the result of `sessions.seen` for the session that the person read. Raises NotFoundError if the session has no pending message
        or a part of it is not fetched, ChangedError if the session changed since.
        """
        self._open.scan()
        from ipfsmem.memories.candidates import promote_session

        promoted = promote_session(self.memories, session, seen)
        if not promoted:
            raise NotFoundError(
                f"no pending messages in a session {session[:60]!a}",
                hint="See what there is: ipfsmem approve --list",
            )
        self._open.changed()
        return promoted

    def files(self) -> dict[str, bytes]:
        """Every memory that is shown, by key."""
        self._open.look()
        with self._replica.reading():
            return {view.key: view.data for _, view in self.memories.views() if view.data is not None}
