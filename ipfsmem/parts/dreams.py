"""`memory.dreams`: a look through all memories of a scope that proposes what to tidy up, does it, and takes it back."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import Awaitable, Iterable, Iterator
from typing import Final

import msgspec

from ipfsmem.config import settings
from ipfsmem.device.dream_notes import (
    DreamNotes,
    ask_to_abort,
    dream_notes,
    dreaming,
    is_dreaming,
    is_to_abort,
    note_dreaming,
)
from ipfsmem.device.dreams import Dreamt, Proposed
from ipfsmem.device.tables import meta
from ipfsmem.dream.asking import TOOLS, Asking
from ipfsmem.dream.chat import ChatModel, Reply
from ipfsmem.dream.gates import Gates, closed
from ipfsmem.dream.tidying import Progress
from ipfsmem.errors import IncompleteError, IpfsmemError, NotFoundError, ProviderUnavailable
from ipfsmem.memories.dreams import Dreams, Outcome, Undoing
from ipfsmem.memories.sessions_here import AllSessions
from ipfsmem.parts.part import MemoryPart
from ipfsmem.parts.summaries import model_of_the_settings
from ipfsmem.parts.usage import note_model_use
from ipfsmem.parts.vault_handle import VaultHandle

_ABORTED: Final = "the dream was aborted before it changed anything"
_ABORTED_HINT: Final = "Start another one: ipfsmem dream run"
_MODEL_HINT: Final = "No memory was changed. Check that the model runs, and its address: ipfsmem config show"
#: Seconds between two looks whether somebody aborted it, while a model is waited for.
_LOOK: Final = 0.25


def _named(among: Iterable[str] | None) -> frozenset[str] | None:
    return None if among is None else frozenset(among)


class DreamStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether dreams begin by themselves, how the last one went, and what one proposed that was not done. Moments in milliseconds
    since 1970 UTC, 0 for never."""

    #: Whether the settings allow it, and whether it was switched on for this memory on this device.
    enabled: bool
    chosen: bool
    #: Why none begins by itself now; "" when one would.
    waits_for: str
    under_way: bool
    phase: str
    worked: int
    failed: int
    failure: str
    #: The id of what was proposed for this scope and not done yet, and how many memories it would change.
    proposed: str
    changes: int
    #: How many dreams can be undone here.
    kept: int


class DreamRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a dream proposed, and what came of it; None when it was only to propose."""

    proposed: Proposed
    outcome: Outcome | None = None


class DreamLine(msgspec.Struct, frozen=True, kw_only=True):
    """One dream for lists: when it was, what made it, how many memories it changed and took away."""

    id: str
    scope: str
    at: int
    by: str
    written: int
    removed: int

    @classmethod
    def of(cls, dreamt: Dreamt) -> DreamLine:
        """What `list` returned."""
        removed = sum(one.what == "removed" for one in dreamt.done)
        return cls(
            id=dreamt.id,
            scope=dreamt.scope,
            at=dreamt.at,
            by=dreamt.by,
            written=len(dreamt.done) - removed,
            removed=removed,
        )


class MemoryDreams(MemoryPart):
    """The dreams of one scope."""

    def __init__(self, opened: VaultHandle, scope: str) -> None:
        super().__init__(opened)
        self._scope = scope

    def propose(
        self, *, among: Iterable[str] | None = None, progress: Progress = lambda phase: None
    ) -> Proposed:
        """Look through the memories and keep what is proposed; none is changed.

        `among`: the scopes of which it may know which keys there are, as links may mean these; None: all. `progress` is called with each phase. Raises LockedError while another process dreams, IncompleteError when somebody aborted it.
        """
        self._open.ingest_edits()
        with self._dreaming(progress) as told:
            return self._dreams().propose(among=_named(among), progress=told)

    async def ask(
        self,
        model: ChatModel | None = None,
        *,
        among: Iterable[str] | None = None,
        progress: Progress = lambda phase: None,
    ) -> Proposed:
        """Let a model look through the memories and keep what it proposes; none is changed, and only `apply` does it.

        `model`: the one of the settings' table `[model]` unless another is given. It is shown texts of the memory. Raises ConfigError when
        there is none, ProviderError, LockedError while another process dreams, IncompleteError when somebody aborted it.
        """
        chosen = model_of_the_settings() if model is None else model
        asking: Asking | None = None
        try:
            self._open.ingest_edits()
            with self._dreaming(progress) as told:
                told("gather")
                dreams = self._dreams()
                gathered = dreams.gathered(_named(among))
                asking = Asking(gathered.notes, self._replica.world.today().isoformat())
                try:
                    while asking.take(await self._unless_aborted(chosen.reply(asking.messages, TOOLS))):
                        told("consolidate")
                except ProviderUnavailable as error:
                    error.hint = _MODEL_HINT  # its own speaks of a sync
                    raise
                return dreams.keep(
                    asking.proposal(),
                    gathered,
                    chosen.name,
                    tokens=asking.given + asking.said,
                    refused=asking.refused,
                )
        finally:
            try:
                if asking is not None and asking.replies:
                    # What was spent stands in the timeline, also where nothing was proposed, or it failed.
                    used = (chosen.name, asking.given, asking.said)
                    note_model_use(self._open, self._target(), "dream", *used)
            finally:
                if model is None:
                    await chosen.close()

    def proposed(self) -> Proposed | None:
        """What was proposed last and not done yet; None when there is nothing."""
        return self._dreams().proposed()

    def apply(self, id: str | None = None) -> Outcome:
        """Do what was proposed last, where the memories still are what the dream saw. `id`: only if it is this one.

        Raises NotFoundError when there is nothing, or another one; LockedError while another process dreams.
        """
        self._asked_for(id)  # before the dream is noted: a wrong id is not a failed dream
        with self._dreaming(lambda phase: None):
            return self._done(self._asked_for(id))

    def _asked_for(self, id: str | None) -> Proposed:
        found = self._dreams().proposed()
        if found is None or id not in (None, found.id):
            raise NotFoundError(
                "no proposed changes" if id is None else f"the proposal {id[:80]} is gone",
                hint="Propose some: ipfsmem dream run --dry-run",
            )
        return found

    def run(self, *, among: Iterable[str] | None = None, progress: Progress = lambda phase: None) -> DreamRun:
        """Propose and apply it, but for what a person has to be shown first (`Outcome.waiting`). `among` and what it raises: as `propose`."""
        self._open.ingest_edits()
        with self._dreaming(progress) as told:
            found = self._dreams().propose(among=_named(among), progress=told)
            return DreamRun(proposed=found, outcome=self._done(found, asked=False))

    def run_due(self) -> builtins.list[DreamRun]:
        """Dream over each scope of the memory if it is time, as `waits_for` says; nothing else. Raises what `propose` raises."""
        if self.waits_for():
            return []
        self._open.ingest_edits()
        with self._dreaming(lambda phase: None) as told:
            found = []
            for scope in ("", *(one.token for one in self._open.scopes.listing())):
                here = MemoryDreams(self._open, scope)
                proposed = here._dreams().propose(progress=told)
                found.append(DreamRun(proposed=proposed, outcome=here._done(proposed, asked=False)))
            return found

    def undo(self, id: str | None = None) -> Undoing:
        """Write back what a dream replaced, the last one unless its id is given, where nobody wrote since.

        Raises NotFoundError when there is none on this device.
        """
        self._open.ingest_edits()
        undone = self._dreams().undo(id)
        self._show((*undone.back,))
        return undone

    def list(self) -> builtins.list[Dreamt]:
        """The dreams that can be undone on this device, the last first."""
        return self._dreams().kept()

    def waits_for(self) -> str:
        """Why no dream begins by itself now, over whatever scope, in words; "" when one does."""
        known, folder = settings().dream, self._replica.folder
        now, worked = self._replica.world.now(), dream_notes(folder).worked if folder is not None else 0
        if worked > now:
            worked = 0  # by a clock that was ahead and was put right: nobody knows how long ago that is
        scopes = ("", *(one.token for one in self._open.scopes.listing()))
        memories = self._open.memories
        sessions = [one for scope in scopes for one in AllSessions(memories.in_scope(scope)).listing()]
        return closed(
            Gates(hours=known.hours, sessions=known.sessions),
            enabled=known.enabled and settings().agents.enabled,
            chosen=self.by_themselves,
            now=now,
            last=worked,
            sessions=sum(one.changed > worked for one in sessions),
        )

    def switch(self, on: bool) -> None:
        """Say whether dreams begin by themselves over this memory on this device; the settings have to allow it too."""
        with self._replica.transaction():
            self._replica.db.set_meta(meta.DREAMING, b"1" if on else b"")

    @property
    def by_themselves(self) -> bool:
        """Whether that was said."""
        return self._replica.db.get_meta(meta.DREAMING) == b"1"

    def status(self) -> DreamStatus:
        """How things are. Raises ConfigError for settings that cannot be used."""
        folder, found = self._replica.folder, self.proposed()
        notes = dream_notes(folder) if folder is not None else DreamNotes()
        under_way = folder is not None and is_dreaming(folder)
        return DreamStatus(
            enabled=settings().dream.enabled,
            chosen=self.by_themselves,
            waits_for=self.waits_for(),
            under_way=under_way,
            phase=notes.phase if under_way else "",
            worked=notes.worked,
            failed=notes.failed,
            failure=notes.failure,
            proposed=found.id if found is not None else "",
            changes=sum(len(step.changes) for step in found.steps) if found is not None else 0,
            kept=len(self.list()),
        )

    def abort(self) -> bool:
        """Wish a dream of another process to be aborted; it is before its next phase, or at once where a model is waited for. False when none is under way. Raises StorageError."""
        folder = self._replica.folder
        if folder is None or not is_dreaming(folder):
            return False
        ask_to_abort(folder)
        return True

    # ---------------------------------------------------------------------------------------------------------------

    async def _unless_aborted(self, answering: Awaitable[Reply]) -> Reply:
        """What a model answers. Raises IncompleteError as soon as somebody aborts the dream, however long the model takes."""
        task, folder = asyncio.ensure_future(answering), self._replica.folder
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_LOOK)
                if folder is not None and is_to_abort(folder):
                    raise IncompleteError(_ABORTED, hint=_ABORTED_HINT)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    @contextlib.contextmanager
    def _dreaming(self, progress: Progress) -> Iterator[Progress]:
        """Dream in this process alone, and note how it goes."""
        folder, world = self._replica.folder, self._replica.world
        if folder is None:
            yield progress
            return

        def told(phase: str) -> None:
            if is_to_abort(folder):
                raise IncompleteError(_ABORTED, hint=_ABORTED_HINT)
            note_dreaming(folder, phase=phase)
            progress(phase)

        with dreaming(folder):
            note_dreaming(folder, began=world.now(), phase="")
            try:
                yield told
            except BaseException as error:
                kind = error.kind if isinstance(error, IpfsmemError) else type(error).__name__
                note_dreaming(folder, failed=world.now(), failure=kind)
                raise
            note_dreaming(folder, failed=0, failure="")

    def _done(self, found: Proposed, *, asked: bool = True) -> Outcome:
        outcome = self._dreams().do(found, asked=asked)
        self._show((*outcome.written, *outcome.removed))
        if self._replica.folder is not None:
            note_dreaming(self._replica.folder, worked=self._replica.world.now())
        return outcome

    def _show(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            self._open.render_file(key, self._target())

    def _target(self) -> str:
        return self._open.scopes.target(self._scope) if self._scope else ""

    def _dreams(self) -> Dreams:
        return Dreams(self._open.memories.in_scope(self._target()))
