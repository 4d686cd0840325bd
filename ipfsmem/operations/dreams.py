"""The operations on dreams: propose changes that clean up the memories of a scope, apply them, and undo them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.config import settings
from ipfsmem.device.dream_notes import DreamNotes, ask_to_abort, dream_notes, is_dreaming
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.operation import Except, ForModels, Http, Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.device.dreams import Dreamt, Proposed
    from ipfsmem.dream.chat import ChatModel
    from ipfsmem.memories.dreams import Dreams, Outcome, Undoing

LATE = {
    "ChatModel": "ipfsmem.dream.chat",
    "Outcome": "ipfsmem.memories.dreams",
    "Proposed": "ipfsmem.device.dreams",
    "Undoing": "ipfsmem.memories.dreams",
}


class DreamStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether dreams start automatically, how the last one ended, and what is proposed. Times in milliseconds since 1970 UTC, 0 for never."""

    #: Whether the settings allow automatic dreams, and whether they are on for this vault on this device.
    enabled: bool
    chosen: bool
    #: Why none starts automatically now; "" if one does.
    waits_for: str
    under_way: bool
    phase: str
    worked: int
    failed: int
    failure: str
    #: The ID of the proposal for this scope that is not applied yet, and how many memories it changes.
    proposed: str
    changes: int
    #: Number of dreams that can be undone on this device.
    kept: int


class DreamRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a dream proposed, and what was applied; None if it only proposed. `exit_code`: that of the command, 0 if nothing was skipped."""

    proposed: Proposed
    outcome: Outcome | None = None
    exit_code: int = 0

    @classmethod
    def of(cls, proposed: Proposed, outcome: Outcome) -> DreamRun:
        """Return the result of an applied dream."""
        return cls(proposed=proposed, outcome=outcome, exit_code=outcome.exit_code)


class DreamRuns(Items[DreamRun], frozen=True, kw_only=True):
    """The dreams over each scope; none if none was due. It is a sequence of its `runs`."""

    runs: tuple[DreamRun, ...]


class DreamLine(msgspec.Struct, frozen=True, kw_only=True):
    """An applied dream: time, method, and number of memories written and removed."""

    id: str
    scope: str
    at: int
    by: str
    written: int
    removed: int

    @classmethod
    def of(cls, one: Dreamt) -> DreamLine:
        """Return the list entry of a dream that this device can undo."""
        removed = sum(done.what == "removed" for done in one.done)
        written = len(one.done) - removed
        return cls(id=one.id, scope=one.scope, at=one.at, by=one.by, written=written, removed=removed)


class DreamLines(Items[DreamLine], frozen=True, kw_only=True):
    """The dreams that can be undone on this device, the last first. It is a sequence of its `dreams`."""

    dreams: tuple[DreamLine, ...]


#: A callback of dreams.
OnPhase = Annotated[
    Callable[[str], None] | None,
    Meta(description="Called with the name of each phase."),
    Except(("cli", "http", "mcp")),
]


def dreams_of(view: View) -> Dreams:
    """Return the dreams of a scope."""
    from ipfsmem.memories.dreams import Dreams

    return Dreams(view.opened.memories.in_scope(view.target))


@operation(
    name="dreams.status",
    summary="Show whether a dream runs, and when the next is due",
    right="read",
    about="target",
    reaches="all",
    raises=("ConfigError: the settings are invalid.",),
    http="GET /v1/dream",
    tool="dream_status",
    title="Dream status",
    for_models="Show whether a dream is running, when the last one ended, what one proposed, and which can be undone.",
)
def status(view: View) -> DreamStatus:
    """Show whether automatic dreams are on, when the next is due, how the last one ended, and the proposed changes."""
    from ipfsmem.operations.dream_runs import is_automatic, waits_for

    opened, proposal = view.opened, dreams_of(view).proposed()
    folder = opened.replica.folder
    notes = DreamNotes() if folder is None else dream_notes(folder)
    under_way = folder is not None and is_dreaming(folder)
    return DreamStatus(
        enabled=settings().dream.enabled,
        chosen=is_automatic(opened.replica),
        waits_for=waits_for(opened),
        under_way=under_way,
        phase=notes.phase if under_way else "",
        worked=notes.worked,
        failed=notes.failed,
        failure=notes.failure,
        proposed="" if proposal is None else proposal.id,
        changes=0 if proposal is None else sum(len(step.changes) for step in proposal.steps),
        kept=len(dreams_of(view).kept()),
    )


@operation(
    name="dreams.switch",
    summary="Turn automatic dreams of this vault on or off on this device",
    right="admin",
    about="memory",
    audit="dream on",
    command="",
    http="PUT /v1/dream",
    idempotent=True,
)
def switch(
    view: View, chosen: Annotated[bool, Meta(description="Whether dreams start automatically.")]
) -> DreamStatus:
    """Turn automatic dreams of this vault on or off on this device. The settings must allow them too."""
    from ipfsmem.device.tables import meta

    replica = view.opened.replica
    with replica.transaction():
        replica.db.set_meta(meta.DREAMING, b"1" if chosen else b"")
    return status.work(view)


@operation(
    name="dreams.run",
    summary="Clean up the memories",
    right="write",
    about="target",
    raises=("LockedError: another process dreams.", "IncompleteError: somebody aborted the dream."),
    audit="dream",
    http="POST /v1/dream",
    beside=True,
)
def run(
    view: View,
    *,
    apply: Annotated[
        bool,
        Meta(description="Apply the proposal at once, except the steps that a person must see first."),
        Except(("cli",)),
        Http(default=False),
    ] = True,
    model: Annotated[
        bool,
        Meta(description="Let the model in the settings propose changes; it receives your texts."),
        Except(("python",)),
    ] = False,
    progress: OnPhase = None,
) -> DreamRun:
    """Clean up the memories of one scope, and list the changes and the proposals for you."""
    if apply and model:
        raise UsageError(
            "changes proposed by a model must be reviewed first: pass only one of apply and model"
        )
    from ipfsmem.operations.dream_runs import apply_here, dreaming_here

    if model:
        return DreamRun(proposed=asyncio.run(ask.work(view)))
    if not apply:
        return DreamRun(proposed=propose.work(view, progress=progress))
    opened, dreams = view.opened, dreams_of(view)
    opened.ingest_edits()
    with dreaming_here(opened, progress) as meter:
        proposal = dreams.propose(among=view.covered, progress=meter)
        return DreamRun.of(proposal, apply_here(opened, dreams, proposal, on_request=False))


@operation(
    name="dreams.propose",
    summary="Propose changes that clean up the memories",
    right="write",
    about="target",
    raises=("LockedError: another process dreams.", "IncompleteError: somebody aborted the dream."),
    audit="dream",
    command="",
    tool="dream",
    title="Dream",
    for_models="Scan all memories and propose what to tidy up, such as duplicates and dead links. Changes no memory.",
)
def propose(view: View, *, progress: OnPhase = None) -> Proposed:
    """Propose changes that clean up the memories of one scope. No memory is changed."""
    from ipfsmem.operations.dream_runs import dreaming_here

    view.opened.ingest_edits()
    with dreaming_here(view.opened, progress) as meter:
        return dreams_of(view).propose(among=view.covered, progress=meter)


@operation(
    name="dreams.ask",
    summary="Let a model propose changes",
    right="write",
    about="target",
    raises=(
        "ConfigError: no model is set.",
        "ProviderError: the model does not answer.",
        "LockedError: another process dreams.",
        "IncompleteError: somebody aborted the dream.",
    ),
    audit="dream",
    command="",
)
async def ask(
    view: View,
    model: Annotated[
        ChatModel | None,
        Meta(description="The model, in place of that of the settings."),
        Except(("cli", "http", "mcp")),
    ] = None,
    *,
    progress: OnPhase = None,
) -> Proposed:
    """Let a model propose changes; it receives texts. Its proposal must be applied by its ID."""
    from ipfsmem.operations.dream_runs import ask_model

    return await ask_model(view.opened, view.target, model, among=view.covered, progress=progress)


@operation(
    name="dreams.run_due",
    summary="Dream over each scope if a dream is due",
    right="write",
    about="memory",
    raises=("LockedError: another process dreams.", "IncompleteError: somebody aborted the dream."),
    audit="dream",
    command="",
)
def run_due(view: View) -> DreamRuns:
    """Dream over each scope if a dream is due according to `dreams.status`."""
    from ipfsmem.operations.dream_runs import dream_over_each

    return DreamRuns(runs=tuple(DreamRun.of(*one) for one in dream_over_each(view.opened)))


@operation(
    name="dreams.proposed",
    summary="Show the proposed changes",
    right="read",
    about="target",
    reaches="named",
    absent="no proposed changes",
    command="dream show",
    http="GET /v1/dream/proposal",
    tool="show_dream",
    title="Show a dream's proposal",
    for_models="Show the open proposal of the last dream: each step with the texts before and after it.",
)
def proposed(view: View) -> Proposed | None:
    """Show the changes that the last dream, an automatic clean-up of memories, proposed and that are not applied yet."""
    return dreams_of(view).proposed()


@operation(
    name="dreams.apply",
    summary="Apply the proposed changes",
    right="write",
    about="target",
    raises=(
        "NotFoundError: nothing is proposed, or something else.",
        "UsageError: a model proposed it, and `proposal` is None.",
        "LockedError: another process dreams.",
    ),
    http="POST /v1/dream/apply",
    tool="apply_dream",
    title="Apply a dream's proposal",
    for_models="Apply a proposal that was shown in full, except where somebody wrote since. undo_dream reverts it.",
    destructive=True,
)
def apply(
    view: View,
    proposal: Annotated[
        str | None,
        Meta(description="The ID of the proposal that was shown."),
        Http(required=True),
        ForModels("The id of the answer that showed it.", required=True, most=12),
    ] = None,
) -> Outcome:
    """Apply the changes that the last dream proposed.

    Without `proposal`, only a proposal that no model made is applied; with it, only the proposal of
    this ID.

    Memories that changed since are left as they are.
    """
    from ipfsmem.memories.dreams import RULES
    from ipfsmem.operations.dream_runs import apply_here, dreaming_here

    dreams, wanted_id = dreams_of(view), None if proposal is None else proposal.lower()

    def found() -> Proposed:
        one = dreams.proposed()
        if one is None or wanted_id not in (None, one.id):
            raise NotFoundError(
                "no proposed changes"
                if proposal is None
                else f"the proposal {proposal[:80]} no longer exists",
                hint="Propose some: ipfsmem dream run --dry-run",
            )
        if proposal is None and one.by != RULES:
            raise UsageError(
                f"{one.by} proposed this, so name the proposal",
                hint="Run: ipfsmem dream show. It prints the command.",
            )
        return one

    found()  # before the dream is noted: a wrong ID is not a failed dream
    with dreaming_here(view.opened):
        return apply_here(view.opened, dreams, found(), on_request=True)


@operation(
    name="dreams.abort",
    summary="Abort a running dream",
    right="write",
    about="memory",
    absent="no dream is running",
    http="POST /v1/dream/abort",
)
def abort(view: View) -> DreamStatus | None:
    """Abort a running dream before it changes anything: before its next phase, or at once while it waits for a model."""
    folder = view.opened.replica.folder
    if folder is None or not is_dreaming(folder):
        return None
    ask_to_abort(folder)
    return status.work(view)


@operation(
    name="dreams.list",
    summary="List the dreams that can be undone here",
    right="read",
    about="target",
    reaches="named",
    http="GET /v1/dreams",
)
def list_(view: View) -> DreamLines:
    """List the last dreams on this device: time, method and changes."""
    return DreamLines(dreams=tuple(map(DreamLine.of, dreams_of(view).kept())))


@operation(
    name="dreams.undo",
    summary="Undo a dream",
    right="write",
    about="target",
    raises=("NotFoundError: there is no such dream on this device.",),
    http="POST /v1/dreams/{dream}/undo",
    tool="undo_dream",
    title="Take a dream back",
    for_models="Restore the texts that a dream on this device replaced, except where somebody wrote since.",
)
def undo(
    view: View,
    dream: Annotated[
        str | None,
        Meta(description="The ID of the dream."),
        ForModels("Id of the dream, from apply_dream or dream_status.", required=True, most=12),
    ] = None,
) -> Undoing:
    """Undo the last dream on this device, or `dream`. Memories that changed since are left as they are."""
    view.opened.ingest_edits()
    undone = dreams_of(view).undo(None if dream is None else dream.lower())
    for key in undone.back:
        view.opened.render_file(key, view.target)
    return undone
