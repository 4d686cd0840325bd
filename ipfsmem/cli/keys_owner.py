"""What commands about members share: the memory open with its owner's keys, and the member that somebody named."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.printing import Meter, clean, count
from ipfsmem.cli.sync_cmd import tell
from ipfsmem.cli.wallets import as_owner
from ipfsmem.errors import UsageError

#: So many members are named where one name may mean several.
MOST_NAMED = 20

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ipfsmem.memory import Memory
    from ipfsmem.sync.report import Progress, SyncReport


def with_owner(
    context: CommandContext,
    given: dict[str, Any],
    work: Callable[[Memory, Progress], Coroutine[Any, Any, SyncReport]],
) -> None:
    """Open the memory with its owner's keys, do the work, tell what came of it."""
    with as_owner(context, given) as memory, Meter(silent=context.json) as meter:
        report = asyncio.run(work(memory, meter))
    if context.json:
        context.emit(report)
    else:
        tell(report)
    # What was asked is done once it is published; what else could not be read is said, and counts in the next sync.
    if report.blocked or report.not_placed:
        click.get_current_context().exit(report.exit_code)


def members_named(memory: Memory, text: str) -> set[str]:
    """The enrolled ids of the members that may be meant: the one with this id; else those whose id begins so and those of this
    label together, for a label may look like the beginning of somebody's id. All ids that one device has had are one member."""
    if not text:
        raise UsageError("no member is named", hint="See: ipfsmem keys list.")
    members = memory.members()
    whole = {p.family for p in members if p.id == text}
    return whole or {p.family for p in members if p.id.startswith(text) or p.label == text}


def known_member(memory: Memory, text: str) -> str:
    """The one member that is meant. Raises UsageError when there is none, or several."""
    found = members_named(memory, text)
    if len(found) == 1:
        return found.pop()
    if not found:
        raise UsageError(f"no member {text!r}", hint="See: ipfsmem keys list.")
    members = {p.id: p.label for p in memory.members()}
    could = ", ".join(f"{members.get(one) or 'no name'} ({one})" for one in sorted(found)[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    raise UsageError(
        f"{text!r} could be any of {count(len(found), 'member')}: {clean(could)}{more}",
        hint="Give the whole id.",
    )
