"""The operation `maintenance.salvage`: the readable part of damaged versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.operation import Cli, Except, OnProgress, View, operation

if TYPE_CHECKING:
    from ipfsmem.results import Salvage

LATE = {"Salvage": "ipfsmem.results"}


@operation(
    name="maintenance.salvage",
    summary="Restore the readable part of a damaged version",
    right="admin",
    about="memory",
    raises=("ConfigError: no provider is set.", "PublicError, SecretsError: as for `sync`."),
    audit="salvage",
    command="vault repair",
)
async def salvage(
    view: View,
    *,
    dry_run: Annotated[bool, Meta(description="Only show what would be restored.")] = False,
    pick: Annotated[
        Iterable[str],
        Meta(description="Entry names in `found.loose` of texts to restore too."),
        Except(("cli",)),
    ] = (),
    public_ok: Annotated[bool, Meta(description="As for `sync`."), Except(("cli",))] = False,
    allow: Annotated[
        Iterable[str],
        Meta(description="As for `sync`."),
        Cli(
            metavar="KEY",
            help="Publish this memory (or timeline/DAY) although it looks like it contains a secret.",
        ),
    ] = (),
    progress: OnProgress = None,
) -> Salvage:
    """Restore the readable part of a damaged version: one with a part that no provider and no device has.

    Texts that hashes prove are restored automatically, as writes of this device, and published; newer
    texts here are kept.

    Texts that are only signed by their writer are listed and can be picked: the lost part may contain
    newer revisions of them.
    """
    from functools import partial

    from ipfsmem import results
    from ipfsmem.open_vault.syncing import followed_by
    from ipfsmem.sync.engine import salvage
    from ipfsmem.sync.progress import no_progress

    opened, syncing = view.opened, view.syncing
    places = syncing.published_at()
    layout = None
    if not dry_run:
        syncing.agree(public_ok)
        layout = syncing.layout(syncing.secret_check(allow))
    before = dict(opened.replica.store.frame.ctx)
    opened.scan()
    with followed_by(opened.render, partial(syncing.erase_forgotten, before)):
        damage, done, report = await salvage(
            opened.replica,
            places.open,
            layout,
            picked=frozenset(pick),
            not_opened=places.not_opened,
            root=syncing.root,
            progress=progress or no_progress,
        )
    report.conflicts = len(opened.memories.conflicts())
    return results.Salvage(dry_run=dry_run, found=damage, done=done, report=report)
