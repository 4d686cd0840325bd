"""`ipfsmem fact`: single sentences with a category, kept in order by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Number, Subcommands, WholeNumber
from ipfsmem.cli.printing import clean, earlier, moment, table
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.facts.categories import GENERAL, KINDS
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.facts.categories import Kind
    from ipfsmem.parts.facts import EarlierFact

#: Entries that are shown unless asked for more or fewer.
_SHOWN: Final = 20


@click.group("fact", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Facts: single sentences with a category. Each is a memory, so recall, context and sync include it.

    A new fact is compared with the existing ones: a known fact is not written twice, and a more detailed
    one replaces the old text. `fact restore` brings replaced texts back.
    """


@cli_command("add", scoped=True, short_help="Add a fact")
@click.argument("text")
@click.option("--category", default=GENERAL, show_default=True, help="Category, any word.")
@click.option("--kind", type=click.Choice(KINDS), default="fact", show_default=True, help="Kind of fact.")
@click.option("--confidence", type=Number(0, 1), metavar="0..1", help="Confidence.")
@click.option("--important", is_flag=True, help="Hide this fact last when there are too many.")
def add_command(
    context: CommandContext, text: str, category: str, kind: Kind, confidence: float | None, important: bool
) -> None:
    """Add the fact TEXT, and print the result: added, kept (already known), or the fact that it replaced."""
    with context.memory() as memory:
        made = memory.facts.add(text, category, kind=kind, confidence=confidence, important=important)
    if made is None:
        raise UsageError("the text has only spaces and dashes, so nothing was written")
    if context.json:
        context.emit(made)
    else:
        key, was = made.fact.key, clean(made.was)
        said = {
            "kept": f"{key} already says this.",
            "updated": f"{key} now says this, instead of: {was}",
            "added": f"{key} is added.",
        }
        click.echo(said[made.action])
        if made.conflict:
            where = was if made.action == "added" else "what it said before"
            click.echo(
                advice(f"note: it contradicts {where}. See: ipfsmem list --tag conflict"),
                err=True,
            )
        if made.hidden:
            gone = count(len(made.hidden), "entry", "entries")
            click.echo(advice(f"{gone} is hidden on this device. See: ipfsmem list --hidden"), err=True)
    context.print_where_scope_went()


@cli_command("list", scoped=True, shows=True, short_help="List facts")
@click.option("--category", help="Only facts of this category.")
@click.option("--kind", type=click.Choice(KINDS), help="Only facts of this kind.")
@click.option(
    "--limit",
    type=WholeNumber(1),
    default=_SHOWN,
    show_default=True,
    metavar="N",
    help="Maximum number of results.",
)
@click.option("--deleted", is_flag=True, help="List deleted facts that can be restored.")
def list_command(
    context: CommandContext, category: str | None, kind: Kind | None, limit: int, deleted: bool
) -> None:
    """List facts, newest first: key, category, time, text."""
    if deleted and (category is not None or kind is not None):
        raise UsageError("--deleted excludes --category and --kind")
    if deleted:
        with context.memory() as memory:
            gone = memory.facts.deleted()[:limit]
        _print_earlier(context, gone, "No deleted facts.")
        return
    with context.memory() as memory:
        found = memory.facts.list(kind, category, limit)
    if context.json:
        context.emit(found)
        return
    table(
        ("key", "category", "written", "fact"),
        [
            (
                one.key,
                one.category if one.kind == "fact" else f"{one.kind}, {one.category}",
                moment(one.changed),
                f"{one.text}{'' if one.own else '  (pending)'}",
            )
            for one in found
        ],
        styles=("bold", "cyan", "dim", ""),
        shrink=(3,),
        nothing="No facts." if kind is None and category is None else "No facts of this kind and category.",
    )


@cli_command("edit", scoped=True, short_help="Change the text of a fact")
@click.argument("key")
@click.argument("text")
def edit_command(context: CommandContext, key: str, text: str) -> None:
    """Replace the text of the fact KEY with TEXT. `fact history` keeps the earlier text."""
    with context.memory() as memory:
        made = memory.facts.edit(key, text)
    if context.json:
        context.emit(made)
    else:
        click.echo(f"{made.key} now says: {clean(made.text)}")


@cli_command("history", scoped=True, shows=True, short_help="List the earlier texts of a fact")
@click.argument("key")
def history_command(context: CommandContext, key: str) -> None:
    """List the earlier texts of the fact KEY, newest first: number, time of replacement, reason, text."""
    with context.memory() as memory:
        found = memory.facts.history(key)
        if not found and memory.read(key, counts=False) is None:
            raise NotFoundError(f"there is no fact {key}", hint="List them with: ipfsmem fact list")
    _print_earlier(context, found, f"{clean(key)} has no earlier text.", numbers=True)


@cli_command("delete", scoped=True, short_help="Delete a fact; it can be restored")
@click.argument("key")
@click.option("--reason", default="", help="The reason, for the timeline.")
def delete_command(context: CommandContext, key: str, reason: str) -> None:
    """Delete the fact KEY on every device. `fact restore` brings it back; `ipfsmem forget` also deletes its
    earlier texts.
    """
    with context.memory() as memory:
        gone = memory.facts.delete(key, reason=reason)
        told = when_others_learn(memory.mode)
    if context.json:
        context.emit(gone)
    else:
        click.echo(advice(f"{gone.key} is deleted here{told}. Restore it: ipfsmem fact restore {gone.key}"))


@cli_command("restore", scoped=True, short_help="Restore an earlier text of a fact")
@click.argument("key")
@click.option(
    "--number", type=WholeNumber(1), default=1, metavar="N", help="Number of the text in `fact history`."
)
def restore_command(context: CommandContext, key: str, number: int) -> None:
    """Restore an earlier text of the fact KEY, the newest unless you give a number; also of a deleted fact."""
    with context.memory() as memory:
        made = memory.facts.restore(key, number)
    if context.json:
        context.emit(made)
    else:
        click.echo(f"{made.key} now says: {clean(made.text)}")


def _print_earlier(
    context: CommandContext, found: list[EarlierFact], nothing: str, *, numbers: bool = False
) -> None:
    if context.json:
        context.emit(found)
        return
    rows = ((str(one.number) if numbers else one.key, one.until, one.why, one.text) for one in found)
    earlier(rows, "number" if numbers else "key", "text", nothing)


for _command in (
    add_command,
    list_command,
    edit_command,
    history_command,
    delete_command,
    restore_command,
):
    command.add_command(_command)
