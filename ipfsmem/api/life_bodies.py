"""The body and the answer of routes of upkeep."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ipfsmem.api.bodies import Body
from ipfsmem.results import SettingShown


class CleanupBody(Body, frozen=True, kw_only=True):
    """How old what goes is at least, in seconds: an hour or more. `dry_run`: only say what would."""

    older_than: Annotated[float, msgspec.Meta(ge=3600)]
    dry_run: bool = False


class SettingsShown(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting by name; those of providers without their values, which may be tokens."""

    settings: list[SettingShown]
