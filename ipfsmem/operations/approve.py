"""The operation `approve`: release pending texts of others to agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.operation import Cli, Items, View, operation

if TYPE_CHECKING:
    from ipfsmem.memories.candidates import PendingText

LATE = {"PendingText": "ipfsmem.memories.candidates"}


class Approved(Items["PendingText"], frozen=True, kw_only=True):
    """The approved texts and messages, a sequence of them."""

    approved: tuple[PendingText, ...]


@operation(
    summary="Approve a pending text",
    right="admin",
    about="scope",
    raises=(
        "NotFoundError: there is no such memory or alternative, or the import brought nothing that can be approved.",
        "UsageError: not exactly one of `key` and `source` was given, or several texts are pending.",
        "KeyNameError: `key` is invalid.",
    ),
    audit="promote",
)
def approve(
    view: View,
    key: Annotated[
        str | None, Meta(min_length=1, max_length=200, description="The memory to approve.")
    ] = None,
    *,
    alternative: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=100,
            description="Alternative to approve, if there are several: its name in `conflicts`.",
        ),
        Cli(
            metavar="FILE",
            help="Alternative to approve, if there are several: its name in `ipfsmem conflicts`.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        Meta(
            min_length=1,
            max_length=64,
            description="Every text and session that imports of this program added on this device.",
        ),
        Cli(
            "from",
            metavar="NAME",
            help="Every text and session that `ipfsmem import --from NAME` added on this device. With --list: list only these.",
        ),
    ] = None,
) -> Approved:
    """Approve a pending text: the memory `key`, or one of its alternatives.

    The text becomes your own and replaces the current one. Read it first: agents receive approved
    texts, so a person decides, not a model.

    With `source`, memories with several texts stay pending, and so do texts whose only link to the
    import is their header.
    """
    if (key is None) == (source is None):
        raise UsageError("give exactly one of key and source")
    from ipfsmem.exchange.taken_before import ImportedTexts
    from ipfsmem.memories.candidates import PendingText, promote_all

    opened = view.opened
    memories = opened.memories.in_scope(view.scope)
    if key is not None:
        opened.ingest_file(key, view.scope)
        text = memories.promote(key, alternative)
        opened.render_file(key, view.scope)
        return Approved(approved=(PendingText.of(text),))
    if alternative is not None:
        raise UsageError("alternative requires key")
    assert source is not None
    opened.scan()
    texts = promote_all(memories, ImportedTexts(memories.replica).of_program(source), source)
    if not texts:
        raise NotFoundError(
            f"no import from {source[:60]!a} on this device brought a pending text that is alone under its key",
            hint="List pending texts: ipfsmem approve --list",
        )
    opened.render()
    opened.changed()
    return Approved(approved=texts)
