"""`ipfsmem gc`: let go of old versions, with a reason for each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import provider_option, retention_options
from ipfsmem.cli.printing import Meter, clean, moment, size, style
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ipfsmem.results import Collecting
    from ipfsmem.sync.guards import Guarded
    from ipfsmem.sync.retention import Verdict


@cli_command("gc")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option(
    "--drop-guarded",
    multiple=True,
    metavar="VERSION|DEVICE|all",
    help="That mass delete was right: the version before it may go like any other. Of a device: all that came with it.",
)
@click.option(
    "--daily/--by-hand",
    default=None,
    help="From now on also by itself, once a day with a sync, keeping what is given here; or only by this command.",
)
@provider_option("Where")
@retention_options("Keep the newest N.")
def command(
    context: CommandContext,
    dry_run: bool,
    drop_guarded: tuple[str, ...],
    daily: bool | None,
    provider: tuple[str, ...],
    keep_roots: int,
    keep_days: int,
) -> None:
    """Let go of old versions at the provider and of what only they needed here. Syncs first.

    Never of the newest of a device, of what this device did not check, or of what is less than a day old. The last one before
    more than a tenth of what somebody wrote was deleted in a day stays until --drop-guarded says that this was right: by that version, by the
    device in whose published state the deletes came, or all. Each is listed with what went.
    """
    from ipfsmem.config import RetentionRule

    with context.memory(provider=provider) as memory, Meter(silent=context.json) as meter:
        done = asyncio.run(
            memory.maintenance.gc(
                dry_run=dry_run,
                keep_roots=keep_roots,
                keep_days=keep_days,
                drop_guarded=drop_guarded,
                progress=meter,
            )
        )
        if daily is not None and not dry_run:
            memory.maintenance.gc_daily(RetentionRule(keep_roots, keep_days) if daily else None)
    if context.json:
        context.emit(done)
    else:
        _show(done)
    done.raise_if_incomplete()


def _show(done: Collecting) -> None:
    for where, verdicts in (*done.providers.items(), ("this device", done.here)):
        _tell(where, verdicts)
    for where, size_there in done.freed.items():
        if size_there:
            click.echo(
                f"{size(size_there)} at {clean(where)}: free now, or in a day when other devices may still use it."
            )
    for where, problem in done.problems.items():
        click.echo(style("not freed: ", fg="yellow") + clean(f"{where}: {problem}"))
    for guard in done.guards:
        _tell_guard(guard, done.dry_run)
    verb = "would go" if done.dry_run else "went"
    click.echo(f"{size(done.blocks.bytes)} {verb} here.")


def _tell_guard(guard: Guarded, dry_run: bool) -> None:
    """A guarded root, what went after it, and what becomes of the guard."""
    if guard.at is None:
        why = "another device keeps it, for deletes that it took in"
    else:
        whose, by = (clean(", ".join(names)) for names in (guard.of, guard.by))
        why = f"before {count(guard.gone, 'text')} of {whose} went, taken in {moment(guard.at)} with what {by} published"
    mark = "guarded" if not guard.dropped else "would be let go" if dry_run else "let go"
    click.echo(f"{style(mark, fg='yellow')} {clean(guard.root)}  {why}")
    if not guard.dropped:
        click.echo(advice(f"    Was that right? ipfsmem gc --drop-guarded {clean(guard.root)}"))


def _tell(where: str, verdicts: Iterable[Verdict]) -> None:
    click.echo(style(clean(where), bold=True))
    for verdict in verdicts:
        mark = style("keep", dim=True) if verdict.keep else style("go  ", fg="yellow")
        click.echo(f"  {mark} {clean(verdict.root)}  {style(clean(verdict.why), dim=True)}")
