"""Run dreams: one process at a time, with recorded progress, until done or aborted; and decide whether one is due."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Container, Iterator
from typing import Final

from ipfsmem.config import settings
from ipfsmem.device.dream_notes import dream_notes, dreaming, is_to_abort, note_dreaming
from ipfsmem.device.dreams import Proposed
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta
from ipfsmem.dream.asking import TOOLS, Asking
from ipfsmem.dream.chat import ChatModel, Reply
from ipfsmem.dream.gates import Gates, closed
from ipfsmem.dream.tidying import Progress
from ipfsmem.errors import IncompleteError, IpfsmemError, ProviderUnavailable
from ipfsmem.memories.dreams import Dreams, Outcome
from ipfsmem.memories.sessions_here import AllSessions
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.operations.sessions.summaries import model_of_the_settings
from ipfsmem.operations.usage.recording import note_model_use

_ABORTED: Final = "the dream was aborted before it changed anything"
_ABORTED_HINT: Final = "Start another one: ipfsmem dream run"
_MODEL_HINT: Final = "No memory was changed. Check that the model runs, and its address: ipfsmem config show"
#: Seconds between two checks for an abort while a model works.
_LOOK: Final = 0.25


def is_automatic(replica: Replica) -> bool:
    """Tell whether automatic dreams are on for this vault on this device; the settings must allow them too."""
    return replica.db.get_meta(meta.DREAMING) == b"1"


def waits_for(opened: VaultHandle) -> str:
    """Return why no automatic dream starts now; "" if one does."""
    dream_settings, folder, memories = settings().dream, opened.replica.folder, opened.memories
    now, worked = opened.replica.environment.now(), dream_notes(folder).worked if folder is not None else 0
    if worked > now:
        worked = 0  # recorded by a clock that was ahead, so the elapsed time is unknown
    enabled, chosen = dream_settings.enabled and settings().agents.enabled, is_automatic(opened.replica)
    # Only automatic dreams read the sessions, which is slow.
    scopes = _scopes(opened) if enabled and chosen else []
    sessions = [one for scope in scopes for one in AllSessions(memories.in_scope(scope)).listing()]
    return closed(
        Gates(hours=dream_settings.hours, sessions=dream_settings.sessions),
        enabled=enabled,
        chosen=chosen,
        now=now,
        last=worked,
        sessions=sum(one.changed > worked for one in sessions),
    )


@contextlib.contextmanager
def dreaming_here(opened: VaultHandle, progress: Progress | None = None) -> Iterator[Progress]:
    """Run a dream in this process only, and record its progress. Yields a function to call with the name of each phase.

    Raises LockedError while another process dreams; the function raises IncompleteError if somebody aborted the dream.
    """
    folder, now = opened.replica.folder, opened.replica.environment.now

    def told(phase: str) -> None:
        if folder is not None:
            if is_to_abort(folder):
                raise IncompleteError(_ABORTED, hint=_ABORTED_HINT)
            note_dreaming(folder, phase=phase)
        if progress is not None:
            progress(phase)

    if folder is None:
        yield told
        return
    with dreaming(folder):
        note_dreaming(folder, began=now(), phase="")
        try:
            yield told
        except BaseException as error:
            kind = error.kind if isinstance(error, IpfsmemError) else type(error).__name__
            note_dreaming(folder, failed=now(), failure=kind)
            raise
        note_dreaming(folder, failed=0, failure="")


def apply_here(opened: VaultHandle, dreams: Dreams, proposal: Proposed, *, on_request: bool) -> Outcome:
    """Apply a proposal, and update the linked folders. `on_request`: a person was shown it."""
    outcome = dreams.do(proposal, asked=on_request)
    for key in (*outcome.written, *outcome.removed):
        opened.render_file(key, proposal.scope)
    if opened.replica.folder is not None:
        note_dreaming(opened.replica.folder, worked=opened.replica.environment.now())
    return outcome


def dream_over_each(opened: VaultHandle) -> list[tuple[Proposed, Outcome]]:
    """Dream over each scope if a dream is due. Raises LockedError, IncompleteError."""
    if waits_for(opened):
        return []
    opened.ingest_edits()
    outcomes = []
    with dreaming_here(opened) as meter:
        for scope in _scopes(opened):
            dreams = Dreams(opened.memories.in_scope(opened.scopes.target(scope) if scope else ""))
            proposed = dreams.propose(progress=meter)
            outcomes.append((proposed, apply_here(opened, dreams, proposed, on_request=False)))
    return outcomes


async def ask_model(
    opened: VaultHandle,
    scope: str,
    model: ChatModel | None = None,
    *,
    among: Container[str] | None = None,
    progress: Progress | None = None,
) -> Proposed:
    """Let a model propose changes to a scope; it receives texts. `model`: None for the one of the settings; `among`: as in
    `Dreams.propose`. Raises ConfigError without a model, ProviderError, LockedError, IncompleteError."""
    chosen = model_of_the_settings() if model is None else model
    asking: Asking | None = None
    try:
        opened.ingest_edits()
        with dreaming_here(opened, progress) as meter:
            meter("gather")
            dreams = Dreams(opened.memories.in_scope(scope))
            gathered = dreams.gathered(among)
            asking = Asking(gathered.notes, opened.replica.environment.today().isoformat())
            try:
                while asking.take(await _unless_aborted(opened, chosen.reply(asking.messages, TOOLS))):
                    meter("consolidate")
            except ProviderUnavailable as error:
                error.hint = _MODEL_HINT  # the error's own hint is about a sync
                raise
            tokens = asking.given + asking.said
            return dreams.keep(
                asking.proposal(), gathered, chosen.name, tokens=tokens, refused=asking.refused
            )
    finally:
        try:
            if asking is not None and asking.replies:
                # The cost is in the timeline even if nothing was proposed, or it failed.
                note_model_use(opened, scope, "dream", chosen.name, asking.given, asking.said)
        finally:
            if model is None:
                await chosen.close()


async def _unless_aborted(opened: VaultHandle, answering: Awaitable[Reply]) -> Reply:
    """Return the reply of a model. Raises IncompleteError as soon as the dream is aborted, however long the model takes."""
    task, folder = asyncio.ensure_future(answering), opened.replica.folder
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


def _scopes(opened: VaultHandle) -> list[str]:
    return ["", *(one.token for one in opened.scopes.listing())]
