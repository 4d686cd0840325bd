"""`ipfsmem vault move`: publish at another provider, after checking all data there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.consent import agrees_to_publish, public_option, warn_of, with_warning
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.printing import clean, size, style
from ipfsmem.cli.provider_cmd import print_places
from ipfsmem.operations.provider_moves import MovedTo, move
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


def _warn(context: CommandContext, arguments: Arguments) -> None:
    warn_of(arguments, "target")


def _move(context: CommandContext, memory: Memory, arguments: Arguments) -> MovedTo:
    arguments["public_ok"] = agrees_to_publish(memory, arguments["yes_public"])
    result: MovedTo = call(move, context, memory, arguments)
    return with_warning(result, arguments)


def _show(context: CommandContext, result: MovedTo, arguments: Arguments) -> None:
    moved = result.moved
    click.echo(
        f"{count(len(moved.roots), 'version')} at {clean(arguments['target'])}: {size(moved.bytes)} sent, "
        f"{count(moved.checked, 'block')} checked there."
    )
    if moved.forwarding_at:
        click.echo(
            f"Devices that still publish at {', '.join(map(clean, moved.forwarding_at))} see the move; run ipfsmem provider follow on them."
        )
    for place in moved.no_forwarding_at:
        click.echo(
            style("not told: ", fg="yellow")
            + f"{clean(place)} could not record the move: on devices that publish there, run ipfsmem provider add and remove",
            err=True,
        )
    why = clean(moved.down) or "a part is lost"
    for root in moved.incomplete:
        click.echo(style("incomplete: ", fg="yellow") + f"{root} ({why})")
    print_places(result.providers)


def _end(context: CommandContext, result: MovedTo, arguments: Arguments) -> None:
    result.raise_if_incomplete(arguments["target"])


command = operation_command("move", move, _show, ask=_warn, run=_move, end=_end, shared=(public_option,))
