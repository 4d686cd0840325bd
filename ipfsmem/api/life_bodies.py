"""The answer of the settings route."""

from __future__ import annotations

import msgspec

from ipfsmem.results import SettingShown


class SettingsShown(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting by name; those of providers without their values, which may be tokens."""

    settings: list[SettingShown]
