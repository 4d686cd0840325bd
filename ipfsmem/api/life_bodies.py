"""The request body and the answer of the maintenance routes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ipfsmem.api.bodies import Body
from ipfsmem.results import SettingShown


class CleanupBody(Body, frozen=True, kw_only=True):
    """Minimum age in seconds of deleted leftovers: at least an hour. `dry_run`: only list them."""

    older_than: Annotated[float, msgspec.Meta(ge=3600)]
    dry_run: bool = False


class SettingsShown(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting by name; those of providers without their values, which may be tokens."""

    settings: list[SettingShown]
