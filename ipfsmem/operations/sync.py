"""The operation `sync`: pull, merge and publish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ipfsmem.operation import Cli, Except, OnProgress, View, operation
from ipfsmem.sync.report import SyncReport

#: Types of parameters, imported when an interface needs them.
LATE = {
    "Path": "pathlib",
    "ProviderChoice": "ipfsmem.provider.choice",
}

if TYPE_CHECKING:
    from pathlib import Path

    from ipfsmem.provider.choice import ProviderChoice


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sync. `exit_code`: that of the command; 0 if the sync was complete."""

    report: SyncReport
    exit_code: int


@operation(
    summary="Pull, merge and publish",
    right="write",
    about="memory",
    raises=(
        "ProviderError: no provider was reachable; no local change is lost.",
        "PublicError: mode ipfs without `public_ok`.",
        "SecretsError: mode ipfs, and a text looks like a secret; raised after the merge.",
        "FormatError, StorageError: `car` is not a CAR file, or cannot be read.",
    ),
    http="POST /v1/sync",
)
async def sync(
    view: View,
    provider: Annotated[
        ProviderChoice,
        Meta(description="Providers to use while the vault is open, instead of those of the vault."),
        Except(("cli", "http", "mcp")),
    ] = None,
    *,
    public_ok: Annotated[
        bool,
        Meta(description="Mode ipfs: agree, once, that everyone can read published data, permanently."),
        Except(("cli", "http", "mcp")),
    ] = False,
    allow: Annotated[
        Iterable[str],
        Meta(description="Memories (or `timeline/DAY`) to publish although they look like secrets."),
        Cli(
            metavar="KEY",
            help="Publish this memory (or timeline/DAY) although it looks like it contains a secret.",
        ),
        Except(("http", "mcp")),
    ] = (),
    car: Annotated[
        str | Path | None,
        Meta(
            description="Also merge a version that another device exported as a CAR file. The report says if it was not "
            "used (`not_used`)."
        ),
        Cli(
            metavar="FILE", help="Also merge a version that another device exported as a CAR file.", path=True
        ),
        Except(("http", "mcp")),
    ] = None,
    progress: OnProgress = None,
) -> SyncReport:
    """Pull versions of other devices, merge them, and publish.

    In mode ipfs published data is unencrypted and permanent: the first sync requires consent, and text that
    looks like a secret stops it. In mode encrypted-ipfs such a text is a notice.
    """
    return await view.syncing.sync(provider, public_ok=public_ok, allow=allow, car=car, progress=progress)


@sync.answers_with
def synced(report: SyncReport) -> Synced:
    """The report with the exit code."""
    return Synced(report=report, exit_code=report.exit_code)
