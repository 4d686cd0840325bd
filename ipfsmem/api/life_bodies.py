"""What callers of the HTTP API send about facts, the graph, dreams, usage and upkeep, and the answers that no other face has."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ipfsmem.api.bodies import Body
from ipfsmem.device.dreams import Proposed
from ipfsmem.memories.dreams import Outcome, Undoing
from ipfsmem.parts.dreams import DreamLine
from ipfsmem.results import SettingShown


class DreamBody(Body, frozen=True, kw_only=True):
    """A look through all memories. `apply`: do at once what it proposes; `model`: let the model of the settings look, which is shown
    the texts, and only propose."""

    apply: bool = False
    model: bool = False


class ApplyBody(Body, frozen=True, kw_only=True):
    """The id of what was proposed and shown: nothing else is done."""

    proposal: str


class SwitchBody(Body, frozen=True, kw_only=True):
    """Whether dreams begin by themselves over this memory on this device."""

    chosen: bool


class CleanupBody(Body, frozen=True, kw_only=True):
    """How old what goes is at least, in seconds: an hour or more. `dry_run`: only say what would."""

    older_than: Annotated[float, msgspec.Meta(ge=3600)]
    dry_run: bool = False


class SettingsShown(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting by name; those of providers without their values, which may be tokens."""

    settings: list[SettingShown]


class Dreamed(msgspec.Struct, frozen=True, kw_only=True):
    """What a dream proposed, and what was done of it, None when nothing was to be done yet. `exit_code`: what the command ends with for
    the same; 0 when all that was asked was done."""

    proposed: Proposed
    outcome: Outcome | None
    exit_code: int


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What was done of a proposal. `exit_code`: what the command ends with for the same; 0 when all of it was."""

    outcome: Outcome
    exit_code: int


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What undoing a dream came to. `exit_code`: what the command ends with for the same; 0 when all of it was taken back."""

    undoing: Undoing
    exit_code: int


class DreamLines(msgspec.Struct, frozen=True, kw_only=True):
    """The dreams that can be undone on this device, the last first."""

    dreams: list[DreamLine]
