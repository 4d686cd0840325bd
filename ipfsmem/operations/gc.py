"""The operation `maintenance.gc`: delete old versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.operation import OnProgress, View, operation
from ipfsmem.sync.retention import KEEP_DAYS, KEEP_ROOTS

if TYPE_CHECKING:
    from ipfsmem.results import Collecting

LATE = {"Collecting": "ipfsmem.results"}


@operation(
    name="maintenance.gc",
    summary="Delete old versions",
    right="admin",
    about="memory",
    raises=(
        "ConfigError: no provider is set.",
        "NotFoundError: `drop_guarded` names nothing; nothing is deleted.",
    ),
    audit="gc",
    command="",
    destructive=True,
)
async def gc(
    view: View,
    *,
    dry_run: Annotated[bool, Meta(description="Delete nothing; return what would be deleted.")] = False,
    keep_roots: Annotated[int, Meta(description="Number of newest versions to keep.")] = KEEP_ROOTS,
    keep_days: Annotated[
        int, Meta(description="Number of days for which one version a week of each device is kept.")
    ] = KEEP_DAYS,
    drop_guarded: Annotated[
        str | Iterable[str],
        Meta(
            description="Mass deletes that were right, so that the version before each need not be kept: each by that "
            "version, or by the device (label or id) that published it, or `all`."
        ),
    ] = (),
    progress: OnProgress = None,
) -> Collecting:
    """Unpin superseded versions and delete blocks that only they needed. Each version has a reason to stay or go."""
    from ipfsmem import results
    from ipfsmem.memories.kept_vectors import erase_forgotten
    from ipfsmem.sync.collection import Rules
    from ipfsmem.sync.engine import collect
    from ipfsmem.sync.progress import no_progress

    rules = Rules(dry_run, keep_roots, keep_days, each_name(drop_guarded))
    places = view.syncing.published_at()
    done = await collect(
        view.opened.replica, places.open, rules, progress or no_progress, not_opened=places.not_opened
    )
    if not dry_run:
        erase_forgotten(view.opened.memories)
    return results.Collecting.of(done, dry_run=dry_run)


def each_name(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return names that may be given as one text."""
    return (names,) if isinstance(names, str) else tuple(names)
