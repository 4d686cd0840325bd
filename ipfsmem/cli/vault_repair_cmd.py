"""`ipfsmem vault repair`: restore the readable part of damaged heads, after a preview."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from ipfsmem.cli.consent import agrees_to_publish, public_option
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import provider_option
from ipfsmem.cli.printing import clean, style
from ipfsmem.cli.sync_cmd import notice_line, print_report
from ipfsmem.errors import NotFoundError
from ipfsmem.operations.salvage import salvage
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipfsmem.memory import Memory
    from ipfsmem.results import Salvage
    from ipfsmem.sync.salvage import Salvageable, Salvaged


@contextlib.contextmanager
def _opened(context: CommandContext, arguments: Arguments) -> Iterator[Memory]:
    with context.memory(provider=arguments["provider"]) as memory:
        yield memory


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> Salvage:
    dry_run: bool = arguments["dry_run"]
    arguments["public_ok"] = dry_run or agrees_to_publish(memory, arguments["yes_public"])
    result: Salvage = call(salvage, context, memory, {**arguments, "dry_run": True})
    arguments["pick"] = _picked(result.found, arguments["names"])
    if not dry_run and result.found.heads:
        result = call(salvage, context, memory, arguments)
    return replace(result, dry_run=dry_run)


def _end(context: CommandContext, result: Salvage, arguments: Arguments) -> None:
    result.raise_if_damaged()
    if code := result.exit_code:
        click.get_current_context().exit(code)


def _print(context: CommandContext, result: Salvage, arguments: Arguments) -> None:
    damage, repair, report = result.found, result.done, result.report
    if damage.heads or not (report.damaged or report.unread):
        _show(damage, repair)
    if repair is not None:
        print_report(report)
        return
    # If nothing could be opened, the error that follows reports it.
    hidden_kind = "" if damage.heads or result.unopened <= 0 else "head-refused"
    for line in dict.fromkeys(notice_line(notice) for notice in report.notices if notice.kind != hidden_kind):
        click.echo(line)


def _picked(damage: Salvageable, pick: tuple[str, ...]) -> set[str]:
    """Return entry names of the given names. Raises NotFoundError for one that cannot be picked."""
    from ipfsmem.causal.entries import entry_display_name

    loose: dict[str, set[str]] = {}
    for one in damage.loose:
        loose.setdefault(entry_display_name(one.name), set()).add(one.name)
    for name in pick:
        if name != "all" and name not in loose:
            raise NotFoundError(
                f"{name} is not in the list to pick from", hint="List them: ipfsmem vault repair --dry-run"
            )
    return set[str]().union(*(loose.values() if "all" in pick else (loose[name] for name in pick)))


def _show(damage: Salvageable, repair: Salvaged | None) -> None:
    from ipfsmem.causal.entries import entry_display_name

    if not damage.heads:
        click.echo("Nothing is damaged: every version found is readable.")
        return
    click.echo(style(count(len(damage.heads), "damaged version"), bold=True))
    rows: list[tuple[str, str, str]] = []
    for change in damage.changes:
        if change.taken:
            came = repair is not None and change.name in repair.back
            by = ", ".join(sorted({dot[:16] for dot, _ in change.taken}))
            rows.append(
                ("restored" if came else "here already" if repair else "would be restored", change.name, by)
            )
        elif change.gone:
            rows.append(("deleted" if repair else "would be deleted", change.name, ""))
    picked = set(repair.back) if repair is not None else set()
    rows += [
        ("restored" if one.name in picked else "signed only", one.name, one.dot[:16]) for one in damage.loose
    ]
    rows += [("not readable", name, dot[:16]) for name, dot in damage.unread]
    rows += [
        ("left out", name, "the memory has four texts: merge them first")
        for name in (repair.crowded if repair else ())
    ]
    for kind, name, by in rows:
        click.echo(f"  {kind:<16}  {clean(entry_display_name(name))}  {style(by, dim=True)}")
    if any(one.name not in picked for one in damage.loose):
        click.echo(
            advice(
                "Texts that are only signed may be outdated. Restore them with: ipfsmem vault repair --pick NAME (or --pick all)"
            )
        )


command = operation_command(
    "repair",
    salvage,
    _print,
    opens=_opened,
    run=_run,
    end=_end,
    options=[
        click.Option(
            ["--pick", "names"],
            multiple=True,
            metavar="NAME",
            help="Also restore this text, which is signed but not proved to be the latest; repeatable; 'all' for "
            "all.",
        )
    ],
    shared=(provider_option("Provider", of_vault=True), public_option),
    notes="Exit codes: `ipfsmem help exit-codes`.",
)
