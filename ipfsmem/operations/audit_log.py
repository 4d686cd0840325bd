"""The operation `operations.list`: the audit log of this device."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from ipfsmem.answer import Answer
from ipfsmem.operation import Items, View, operation

#: Default and maximum entries of a list.
PAGE = 100
MAX_PAGE = 10_000


class OperationLine(Answer, frozen=True, kw_only=True):
    """An entry of the audit log: the operation (named as on the command line), its scope and key, the interface `face` (`python`, `cli`,
    `http`, `mcp`, `hook`), and the caller (a client's name, a token's id). `outcome`: "" for success, else the kind of the error."""

    at: int
    operation: str
    scope: str
    key: str
    face: str
    by: str
    outcome: str


class OperationList(Items[OperationLine], frozen=True, kw_only=True):
    """Operations on this device, newest first. It is a sequence of its `operations`."""

    operations: tuple[OperationLine, ...]


@operation(
    name="operations.list",
    summary="List the operations on this device",
    right="admin",
    about="memory",
    audit="",
    command="",
    raises=("KeyNameError: the name of the scope is invalid.", "StorageError: the audit log cannot be read."),
    http="GET /v1/operations",
)
def list_(
    view: View,
    *,
    operation: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=64,
            description="Only operations of this name, such as write; session for all on sessions.",
        ),
    ] = None,
    scope: Annotated[str | None, Meta(max_length=64, description="Only operations on this scope.")] = None,
    since: Annotated[
        str | None,
        Meta(
            min_length=1, max_length=64, description="Only operations since: 24h, yesterday, a day, a time."
        ),
    ] = None,
    limit: Annotated[
        int, Meta(ge=1, le=MAX_PAGE, description="Maximum number of operations: the newest ones.")
    ] = PAGE,
) -> OperationList:
    """List the operations on this vault on this device with interface and caller, newest first.

    The list contains no texts. The setting `operations.kept` limits it.
    """
    from ipfsmem.bundle.keys import check_scope
    from ipfsmem.device.operations import operations
    from ipfsmem.wording import moment_of

    opened = view.opened
    if scope:
        check_scope(scope)
    begin = 0 if since is None else moment_of(since, opened.replica.environment.now())
    rows = (
        one
        for one in operations(opened.replica, opened.operations_kept)
        if (operation is None or one.operation == operation or one.operation.startswith(f"{operation} "))
        and (scope is None or one.scope == scope)
        and one.at >= begin
    )
    return OperationList(operations=tuple(OperationLine(**asdict(one)) for one in islice(rows, limit)))
