"""`ipfsmem vault compact`: free space at the providers and on this disk, and print the result of each part."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import duration, provider_option, retention_options
from ipfsmem.cli.printing import Meter, clean, moment, size, style, table
from ipfsmem.errors import UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ipfsmem.operations.maintenance import Cleaned, Vacuumed
    from ipfsmem.results import Collecting
    from ipfsmem.sync.deletion_holds import Guarded
    from ipfsmem.sync.retention import Verdict
    from ipfsmem.upkeep import Compacted

#: As `upkeep.PARTS`, repeated so that the help needs no import; a test compares them.
PARTS = ("versions", "leftovers", "files")


def _age(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the seconds of a duration within the bounds of `cleanup`."""
    seconds = duration(ctx, param, text)
    if seconds is not None:
        from ipfsmem.operations.maintenance import cleanup

        bounds = cleanup.parameter("older_than")
        if bounds.problem(seconds):
            raise click.BadParameter(
                f"must be {bounds.least // 3_600}h to {bounds.most // 86_400}d (got {text})", ctx, param
            )
    return seconds


@cli_command("compact", short_help="Free disk space here and at the providers.")
@click.option("--dry-run", is_flag=True, help="Only print the space that each step would free.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(PARTS),
    help="Only this step (default: all three); repeatable.",
)
@click.option(
    "--older-than",
    callback=_age,
    metavar="TIME",
    help="Minimum age of leftovers to delete: 30d, 12h; at least 1h (default: 90d).",
)
@click.option(
    "--drop-guarded",
    multiple=True,
    metavar="VERSION|DEVICE|all",
    help="Confirm a mass delete, so that the version before it is no longer kept longer than others. "
    "DEVICE: all mass deletes by it.",
)
@click.option(
    "--daily/--by-hand",
    default=None,
    help="Delete old versions once a day during a sync, with these limits; or only with this command.",
)
@provider_option("Provider", of_vault=True)
@retention_options("Keep the newest N versions.")
def command(
    context: CommandContext,
    dry_run: bool,
    only: tuple[str, ...],
    older_than: float | None,
    drop_guarded: tuple[str, ...],
    daily: bool | None,
    provider: tuple[str, ...],
    keep_roots: int,
    keep_days: int,
) -> None:
    """Free disk space in three steps, and print the space that each freed. No memory changes, and nothing
    that another device needs is deleted.

    \b
    versions   syncs, then deletes old versions at the providers and here, with
               a reason for each
    leftovers  old indexes, temporary files, operation records, sync notices
    files      rewrites the database and the vectors; needs the same amount of
               free disk space

    `versions` keeps the newest version of each device, unchecked ones, those of the last day, and the
    last one before a mass delete of more than a tenth of one author's texts in a day.
    """
    from ipfsmem.config import RetentionRule

    if only and "versions" not in only and (drop_guarded or daily is not None):
        raise UsageError(
            "--drop-guarded, --daily and --by-hand require the step versions, which --only omits"
        )
    if only and "leftovers" not in only and older_than is not None:
        raise UsageError("--older-than requires the step leftovers, which --only omits")
    if drop_guarded or daily is not None or provider:
        only = only or PARTS  # refused for an unpublished vault, not skipped
    with context.memory(provider=provider) as memory, Meter(silent=context.json) as meter:
        result = asyncio.run(
            memory.maintenance.compact(
                only=only,
                dry_run=dry_run,
                older_than=older_than,
                keep_roots=keep_roots,
                keep_days=keep_days,
                drop_guarded=drop_guarded,
                progress=meter,
            )
        )
        if daily is not None and result.versions is not None and not dry_run:
            memory.maintenance.gc_daily(RetentionRule(keep_roots, keep_days) if daily else None)
    if context.json:
        context.emit(result)
    else:
        _show(result)
    result.raise_if_incomplete()


def _show(result: Compacted) -> None:
    if result.versions is not None:
        _show_versions(result.versions)
    if result.leftovers is not None:
        _show_leftovers(result.leftovers)
    if result.files is not None:
        _show_files(result.files, result.dry_run)
    for part, problem in result.problems.items():
        click.echo(style(f"{part}: not done: ", fg="yellow") + advice(problem), err=True)


def _show_leftovers(result: Cleaned) -> None:
    for name, had in result.files.items():
        click.echo(f"  {clean(name)}  {style(size(had), dim=True)}")
    verb = "would be deleted" if result.dry_run else "deleted"
    click.echo(
        f"leftovers: {count(len(result.files), 'file')} ({size(result.bytes)}), {count(result.operations, 'record')} of operations and "
        f"{count(result.notices, 'notice')} {verb}."
    )


def _show_files(result: Vacuumed, dry_run: bool) -> None:
    table(
        ("file", "before", "after"),
        [(name, size(had), size(result.after.get(name, 0))) for name, had in result.before.items()],
        styles=("bold", "dim", ""),
    )
    freed = size(max(result.freed, 0))
    click.echo(f"files: at least {freed} would be freed." if dry_run else f"files: {freed} freed.")


def _show_versions(result: Collecting) -> None:
    for provider, verdicts in (*result.providers.items(), ("this device", result.here)):
        _tell(provider, verdicts)
    for provider, size_there in result.freed.items():
        if size_there:
            click.echo(
                f"{size(size_there)} at {clean(provider)}: freed now, or in a day if other devices may still use it."
            )
    for provider, problem in result.problems.items():
        click.echo(style("not freed: ", fg="yellow") + clean(f"{provider}: {problem}"))
    for guard in result.guards:
        _tell_guard(guard, result.dry_run)
    verb = "would be freed" if result.dry_run else "freed"
    click.echo(f"versions: {size(result.blocks.bytes)} {verb} on this device.")


def _tell_guard(guard: Guarded, dry_run: bool) -> None:
    """Print a guarded root, the deletes after it, and whether the guard is released."""
    if guard.at is None:
        why = "another device keeps it, because of deletes that it merged"
    else:
        whose, by = (clean(", ".join(names)) for names in (guard.of, guard.by))
        why = f"before {count(guard.gone, 'text')} of {whose} were deleted, merged on {moment(guard.at)} from {by}"
    mark = "guarded" if not guard.dropped else "would be released" if dry_run else "released"
    click.echo(f"{style(mark, fg='yellow')} {clean(guard.root)}  {why}")
    if not guard.dropped:
        click.echo(
            advice(f"    To confirm the delete: ipfsmem vault compact --drop-guarded {clean(guard.root)}")
        )


def _tell(place: str, verdicts: Iterable[Verdict]) -> None:
    click.echo(style(clean(place), bold=True))
    for verdict in verdicts:
        mark = style("keep", dim=True) if verdict.keep else style("go  ", fg="yellow")
        click.echo(f"  {mark} {clean(verdict.root)}  {style(clean(verdict.why), dim=True)}")
