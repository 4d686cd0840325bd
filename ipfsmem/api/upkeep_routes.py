"""The routes of maintenance: the index of recall, the memory's disk space, and the settings, which are read-only here: only the
person changes them, as one may name a program or a recipient of texts."""

from __future__ import annotations

from ipfsmem.agents.own_settings import settings_shown
from ipfsmem.api.calls import Call
from ipfsmem.api.life_bodies import CleanupBody, SettingsShown
from ipfsmem.api.routes import Route
from ipfsmem.results import Cleaned, SearchIndexStatus, Vacuumed


def _index(call: Call) -> SearchIndexStatus:
    return call.whole.maintenance.index_status()


def _reindex(call: Call) -> SearchIndexStatus:
    return call.whole.maintenance.reindex()


def _vacuum(call: Call) -> Vacuumed:
    return call.whole.maintenance.vacuum()


def _cleanup(call: Call) -> Cleaned:
    given: CleanupBody = call.body
    return call.whole.maintenance.cleanup(given.older_than, dry_run=given.dry_run)


def _settings(call: Call) -> SettingsShown:
    return SettingsShown(settings=settings_shown())


ROUTES = (
    Route(
        "get",
        "/v1/index",
        "index",
        "Show the index that recall searches",
        _index,
        SearchIndexStatus,
        about="whole",
    ),
    Route(
        "post",
        "/v1/reindex",
        "reindex",
        "Rebuild the index",
        _reindex,
        SearchIndexStatus,
        right="write",
        about="whole",
        beside=True,
    ),
    Route(
        "post",
        "/v1/vacuum",
        "vacuum",
        "Reclaim disk space",
        _vacuum,
        Vacuumed,
        right="admin",
        about="whole",
    ),
    Route(
        "post",
        "/v1/cleanup",
        "cleanup",
        "Delete old, rebuildable data",
        _cleanup,
        Cleaned,
        right="admin",
        about="whole",
        body=CleanupBody,
    ),
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
