"""`ipfsmem scope`: the named parts of a vault, such as one per project or agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, facts, table
from ipfsmem.cli.scope_clear import command as clear_command
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError
from ipfsmem.operations.scopes import (
    ScopeCard,
    ScopeFacts,
    ScopeForgotten,
    ScopeList,
    ScopeRestored,
    forget,
    list_,
    make,
    redirect,
    restore,
    show,
    title_,
)
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


@click.group("scope", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Named parts of the vault. Other commands write to one with --scope NAME; the first write creates it.

    The default scope has no name. Scopes organise texts and are not access control: every member of the
    vault can read all scopes.
    """


def _list(context: CommandContext, memory: Memory, arguments: Arguments) -> ScopeList:
    arguments["live"] = memory.scopes.names()
    scopes: ScopeList = call(list_, context, memory, arguments)
    return scopes


def _show_list(context: CommandContext, scopes: ScopeList, arguments: Arguments) -> None:
    rows = []
    for one in scopes:
        into = (
            f"redirects to {one.card.into}"
            if one.card is not None and one.card.into in arguments["live"]
            else ""
        )
        kind = one.card.kind if one.card is not None else ""
        rows.append((one.scope, kind, str(one.memories), one.title, into))
    table(
        ("scope", "kind", "memories", "title", ""),
        rows,
        styles=("bold", "cyan", "dim", "", "yellow"),
        nothing="No forgotten scopes."
        if arguments["forgotten"]
        else advice("No scopes. The first write creates one: ipfsmem write KEY --scope NAME --body TEXT"),
    )


def _show_scope(context: CommandContext, one: ScopeFacts, arguments: Arguments) -> None:
    card = one.card
    facts(
        [
            ("scope", one.scope),
            ("title", clean(one.title)),
            ("kind", card.kind if card is not None else ""),
            ("state", "forgotten" if one.forgotten else ""),
            ("holds", f"{count(one.memories, 'memory')}, {count(one.events, 'event')}"),
            ("is now", card.into or "" if card is not None else ""),
            ("stands for", clean(", ".join("/".join(i[1:]) for i in card.ids)) if card is not None else ""),
        ]
    )


def _show_made(context: CommandContext, card: ScopeCard, arguments: Arguments) -> None:
    click.echo(f"{card.scope} is created: {clean(card.title)}.")


def _refuse_unsaid(context: CommandContext, arguments: Arguments) -> None:
    if (arguments["into"] is None) != arguments["remove"]:
        raise UsageError("give OTHER or --remove")


def _show_redirected(context: CommandContext, card: ScopeCard, arguments: Arguments) -> None:
    name, other = card.scope, arguments["into"]
    if other is None:
        click.echo(f"{name} is no longer redirected.")
    else:
        click.echo(
            f"{name} is redirected to {other}: new writes go to {other}, which also shows the texts of {name}."
        )


def _show_titled(context: CommandContext, card: ScopeCard, arguments: Arguments) -> None:
    click.echo(f"{card.scope} is now titled {clean(card.title)}.")


def _forget(context: CommandContext, memory: Memory, arguments: Arguments) -> ScopeForgotten:
    from ipfsmem.cli import secret_input
    from ipfsmem.cli.consent import confirm

    name = arguments["name"]
    try:
        memory.scopes.known(name, live=True)
    except NotFoundError as error:
        forget.refuse(memory._view(), {"name": name}, "cli", error)
    # Not of those that lead to this one: they stay.
    counts = next(counted for counted in memory.scopes.counts() if counted.scope == name)
    contents = f"{count(counts.memories, 'memory')} and {count(counts.events, 'event')}"
    lost = memory.scopes.unpublished(name)
    never = f" ({count(lost, 'memory')} never synced: {'it' if lost == 1 else 'they'} cannot be restored)"
    arguments["lasting"] = never if lost else ""
    if not arguments["yes"]:
        if not secret_input.can_ask():
            raise UsageError(
                f"this forgets the scope {name} with {contents}{arguments['lasting']}, on every device",
                hint="Confirm: --yes",
            )
        confirm(
            f"Forget the scope {name} with {contents}{arguments['lasting']}, on every device?",
            "not forgotten",
        )
    result: ScopeForgotten = call(forget, context, memory, arguments)
    arguments["told"] = when_others_learn(memory.mode)
    return result


def _show_forgotten(context: CommandContext, result: ScopeForgotten, arguments: Arguments) -> None:
    gone = count(result.forgotten, "memory")
    click.echo(
        f"The scope {result.scope} is forgotten here with {gone}{arguments['lasting']}{arguments['told']}."
    )


def _restore(context: CommandContext, memory: Memory, arguments: Arguments) -> ScopeRestored:
    name, searches = arguments["name"], arguments["root"] is None and memory.mode.published
    back: ScopeRestored = call(restore, context, memory, arguments)
    arguments["newest"] = memory.scopes.newest_version(name) if searches else None
    arguments["gone"] = searches and arguments["newest"] is None and memory.scopes.held_anything(name)
    return back


def _show_restored(context: CommandContext, back: ScopeRestored, arguments: Arguments) -> None:
    name, newest, gone = arguments["name"], arguments["newest"], arguments["gone"]
    if arguments["root"] is None and not gone:
        texts = (
            f" To restore its texts too, before writing there: ipfsmem scope restore {name} --root {newest}"
        )
        click.echo(advice(f"The scope {name} is restored, without texts.{texts if newest else ''}"))
    elif not gone:
        click.echo(
            f"The scope {name} is restored: {count(back.memories, 'text')}, {count(back.events, 'event')}."
        )


def _refuse_incomplete(context: CommandContext, back: ScopeRestored, arguments: Arguments) -> None:
    name = back.scope
    if arguments["gone"]:
        error = IncompleteError(
            f"the scope {name} can be written again, but its texts are not restored: no version on this device contains them"
        )
        error.hint = ""
        raise error
    if back.not_fetched:
        raise IncompleteError(
            f"{count(back.not_fetched, 'text')} of the scope {name} are not kept on this device",
            hint=f"Run: ipfsmem sync. Then restore them: ipfsmem restore KEY --scope {name} --root {arguments['root']}",
        )


for _command in (
    operation_command("list", list_, _show_list, run=_list),
    operation_command("show", show, _show_scope),
    operation_command("make", make, _show_made),
    operation_command("title", title_, _show_titled),
    operation_command(
        "into",
        redirect,
        _show_redirected,
        ask=_refuse_unsaid,
        options=(click.Option(("--remove",), is_flag=True, help="Remove the redirection."),),
    ),
    clear_command,
    operation_command(
        "forget",
        forget,
        _show_forgotten,
        run=_forget,
        options=(click.Option(("--yes",), is_flag=True, help="Do not ask."),),
    ),
    operation_command("restore", restore, _show_restored, run=_restore, end=_refuse_incomplete),
):
    command.add_command(_command)
