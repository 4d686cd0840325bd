"""Shared code of commands about members: the vault open with its owner's keys, and the member that a text names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import run_coroutine
from ipfsmem.cli.printing import clean
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.cli.wallets import as_owner
from ipfsmem.errors import UsageError
from ipfsmem.wording import count

#: Maximum members listed for an ambiguous name.
MOST_NAMED = 20

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from ipfsmem.memory import Memory
    from ipfsmem.sync.progress import Progress
    from ipfsmem.sync.removals import Removal
    from ipfsmem.sync.report import SyncReport


def with_owner(
    context: CommandContext,
    owner_options: dict[str, Any],
    work: Callable[[Memory, Progress], Coroutine[Any, Any, SyncReport]],
) -> None:
    """Open the vault with its owner's keys, run `work`, print its report."""
    with as_owner(context, owner_options) as memory:
        report = run_coroutine(context, lambda meter: work(memory, meter))
    if context.json:
        context.emit(report)
    else:
        print_report(report)
    exit_as(report)


def exit_as(report: SyncReport) -> None:
    """Exit with the code of a report, unless it was published: other unreadable data is reported, and the next sync exits with its code."""
    if report.blocked or report.not_placed:
        click.get_current_context().exit(report.exit_code)


def names_somebody(memory: Memory, text: str) -> bool:
    """Tell whether `text` names one or more members of this vault. Raises UsageError for an empty text."""
    from ipfsmem.ring.labels import families_named

    if not text:
        raise UsageError("no member given", hint="See: ipfsmem member list.")
    return bool(families_named(memory.replica.ring, text, _labels(memory)))


def find_member(memory: Memory, text: str, removed: Iterable[Removal] = ()) -> str:
    """Return the enrolled id of the one that `text` names, among members and `removed` ones.

    Raises UsageError for none or several.
    """
    from ipfsmem.ring.labels import families_named

    labels = {one.id: one.label for one in removed} | _labels(memory)
    families = families_named(memory.replica.ring, text, labels)
    if len(families) == 1:
        return families.pop()
    if not families:
        raise UsageError(f"unknown member {text!r}", hint="See: ipfsmem member list.")
    could = ", ".join(f"{labels.get(one) or 'no name'} ({one})" for one in sorted(families)[:MOST_NAMED])
    more = f" and {len(families) - MOST_NAMED} more" if len(families) > MOST_NAMED else ""
    raise UsageError(
        f"{text!r} matches {count(len(families), 'member')}: {clean(could)}{more}",
        hint="Pass the whole id.",
    )


def _labels(memory: Memory) -> dict[str, str]:
    """Return the label of each member of a vault, by id."""
    return {member.id: member.label for member in memory.members.list()}
