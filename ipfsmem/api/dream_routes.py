"""The routes about dreams: what one proposes, done as it was shown, and taken back.

A dream takes long, so it works on the memory opened once more, and may be aborted meanwhile. How dreams go is known of the whole memory
on this device; what one proposes and did, of its scope.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ipfsmem.api.calls import Call
from ipfsmem.api.life_bodies import (
    Applied,
    ApplyBody,
    DreamBody,
    Dreamed,
    DreamLines,
    SwitchBody,
    Undone,
)
from ipfsmem.api.routes import Route
from ipfsmem.device.dreams import Proposed
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError
from ipfsmem.parts.dreams import DreamLine, DreamStatus


def _code(skipped: bool) -> int:
    return IncompleteError.exit_code if skipped else 0


def _status(call: Call) -> DreamStatus:
    return call.memory.dreams.status()


def _switch(call: Call) -> DreamStatus:
    given: SwitchBody = call.body
    call.memory.dreams.switch(given.chosen)
    return call.memory.dreams.status()


def _dream(call: Call) -> Dreamed:
    given: DreamBody = call.body
    if given.apply and given.model:
        raise UsageError("changes proposed by a model must be reviewed first: give one of both")
    dreams, among = call.memory.dreams, call.caller.scopes
    if given.apply:
        done = dreams.run(among=among)
        skipped = done.outcome is not None and bool(done.outcome.skipped)
        return Dreamed(proposed=done.proposed, outcome=done.outcome, exit_code=_code(skipped))
    found = asyncio.run(dreams.ask(among=among)) if given.model else dreams.propose(among=among)
    return Dreamed(proposed=found, outcome=None, exit_code=0)


def _proposed(call: Call) -> Proposed:
    found = call.memory.dreams.proposed()
    if found is None:
        raise NotFoundError("no proposed changes")
    return found


def _apply(call: Call) -> Applied:
    given: ApplyBody = call.body
    outcome = call.memory.dreams.apply(given.proposal)
    return Applied(outcome=outcome, exit_code=_code(bool(outcome.skipped)))


def _dreams(call: Call) -> DreamLines:
    return DreamLines(dreams=[DreamLine.of(one) for one in call.memory.dreams.list()])


def _undo(call: Call) -> Undone:
    undoing = call.memory.dreams.undo(call.query["dream"])
    return Undone(undoing=undoing, exit_code=_code(bool(undoing.changed or undoing.lost)))


def _abort(call: Call) -> DreamStatus:
    if not call.memory.dreams.abort():
        raise NotFoundError("no dream is running")
    return call.memory.dreams.status()


ROUTES: Final = (
    Route(
        "get",
        "/v1/dream",
        "dream_status",
        "Show whether a dream runs, how the last one ended, and when the next is due",
        _status,
        DreamStatus,
        about="whole",
        query=("scope",),
    ),
    Route(
        "put",
        "/v1/dream",
        "switch_dreams",
        "Turn automatic dreams of this vault on or off on this device",
        _switch,
        DreamStatus,
        right="admin",
        about="whole",
        body=SwitchBody,
    ),
    Route(
        "post",
        "/v1/dream",
        "dream",
        "Scan the memories of a scope and propose changes",
        _dream,
        Dreamed,
        right="write",
        writes=True,
        body=DreamBody,
        beside=True,
    ),
    Route(
        "get",
        "/v1/dream/proposal",
        "dream_proposal",
        "Show the proposed changes",
        _proposed,
        Proposed,
        onward=True,
    ),
    Route(
        "post",
        "/v1/dream/apply",
        "apply_dream",
        "Apply the proposed changes, except to memories that changed since",
        _apply,
        Applied,
        right="write",
        writes=True,
        body=ApplyBody,
    ),
    Route(
        "post",
        "/v1/dream/abort",
        "abort_dream",
        "Abort the running dream",
        _abort,
        DreamStatus,
        right="write",
        about="whole",
    ),
    Route(
        "get",
        "/v1/dreams",
        "dreams",
        "List the dreams that can be undone on this device",
        _dreams,
        DreamLines,
        onward=True,
    ),
    Route(
        "post",
        "/v1/dreams/{dream}/undo",
        "undo_dream",
        "Undo a dream, except for memories that changed since",
        _undo,
        Undone,
        right="write",
        writes=True,
    ),
)
