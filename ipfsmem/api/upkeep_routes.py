"""The route of the settings, which are read-only here: only the person changes them, as one may name a program or a recipient of texts."""

from __future__ import annotations

from ipfsmem.agents.own_settings import settings_shown
from ipfsmem.api.calls import Call
from ipfsmem.api.life_bodies import SettingsShown
from ipfsmem.api.routes import Route


def _settings(call: Call) -> SettingsShown:
    return SettingsShown(settings=settings_shown())


ROUTES = (
    Route(
        "get",
        "/v1/settings",
        "settings",
        "List the settings of this user, with descriptions",
        _settings,
        SettingsShown,
        right="admin",
        about="whole",
    ),
)
