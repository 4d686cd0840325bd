"""The operation `status`: the state of a vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.operation import View, operation

if TYPE_CHECKING:
    from ipfsmem.results import Status

LATE = {"Status": "ipfsmem.results"}


@operation(
    summary="Show the vault's state and unpublished changes",
    right="read",
    about="memory",
    http="GET /v1/status",
)
def status(view: View) -> Status:
    """Show the vault's contents, providers and members, and unpublished changes.

    Counts include all scopes. Works offline.
    """
    from ipfsmem.operations.vault_status import status_of

    return status_of(view.opened, view.syncing)
