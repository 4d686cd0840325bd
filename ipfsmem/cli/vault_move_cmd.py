"""`ipfsmem vault move`: publish at another provider, after checking all data there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.consent import agrees_to_publish, public_options, warn_of
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import retention_options
from ipfsmem.cli.printing import Meter, clean, size, style
from ipfsmem.cli.provider_cmd import print_places
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.sync.moving import Moved


@cli_command("move")
@click.argument("target")
@click.option("--from", "source", metavar="SPEC", help="Leave only this provider (default: all others).")
@retention_options("Copy the newest N versions.")
@public_options
def command(
    context: CommandContext,
    target: str,
    source: str | None,
    keep_roots: int,
    keep_days: int,
    yes_public: bool,
    allow: tuple[str, ...],
) -> None:
    """Copy all live data to TARGET, check it there, and publish there from then on.

    Nothing is deleted at the old provider; an interrupted move can be run again.
    """
    warn_of([target])
    with context.memory() as memory:
        public_ok = agrees_to_publish(memory, yes_public)
        with Meter(silent=context.json) as meter:
            moved = asyncio.run(
                memory.providers.move(
                    target,
                    source=source,
                    keep_roots=keep_roots,
                    keep_days=keep_days,
                    public_ok=public_ok,
                    allow=allow,
                    progress=meter,
                )
            )
        found = memory.status().providers
    from ipfsmem.results import MovedTo

    result = MovedTo(moved=moved, providers=found)
    if context.json:
        context.emit(result)
    else:
        _print_moved(target, moved)
        print_places(found)
    result.raise_if_incomplete(target)


def _print_moved(target: str, moved: Moved) -> None:
    click.echo(
        f"{count(len(moved.roots), 'version')} at {clean(target)}: {size(moved.bytes)} sent, "
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
