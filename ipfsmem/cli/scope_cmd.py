"""`ipfsmem scope`: the named parts of a memory, one for each project, agent or person that it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.bundle.keys import check_scope
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, facts, table
from ipfsmem.cli.scope_clear import command as clear_command
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import IncompleteError, UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.causal.cards import Kind


@click.group("scope", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Named parts of the vault. Other commands write to one with --scope NAME; the first write creates it.

    Scopes organise texts and are no access control: every member of the vault can read all scopes.
    """


@cli_command("list", short_help="List scopes")
@click.option("--forgotten", is_flag=True, help="List forgotten scopes instead.")
def list_command(context: CommandContext, forgotten: bool) -> None:
    """List the scopes: name, kind, number of memories, title, and the scope that replaced it."""
    with context.memory() as memory:
        inside = {one.scope: one.memories for one in memory.scopes.counts()}
        found = [(one, inside.get(one.token, 0)) for one in memory.scopes.list(forgotten=forgotten)]
        live = {one.token for one in memory.scopes.list()}
    if context.json:
        from ipfsmem.results import ScopeLine

        context.emit([ScopeLine(scope=one.token, memories=number, card=one.card) for one, number in found])
        return
    rows = []
    for one, number in found:
        into = f"is {one.card.into} now" if one.card is not None and one.card.into in live else ""
        kind = one.card.kind if one.card is not None else ""
        rows.append((one.token, kind, str(number), one.title, into))
    table(
        ("scope", "kind", "memories", "title", ""),
        rows,
        styles=("bold", "cyan", "dim", "", "yellow"),
        nothing="No forgotten scopes."
        if forgotten
        else advice("No scopes. The first write creates one: ipfsmem write KEY --scope NAME --body TEXT"),
    )


@cli_command("show", short_help="Show a scope")
@click.argument("name", metavar="SCOPE")
def show_command(context: CommandContext, name: str) -> None:
    """Show a scope: title, kind, contents, and the scopes that it includes."""
    check_scope(name)
    with context.memory() as memory:
        one = memory.scopes.known(name)
        part = memory.scope(name)
        memories, events = len(part.list()), len(part.timeline.read())
    card = one.card
    if context.json:
        from ipfsmem.results import ScopeFacts

        context.emit(
            ScopeFacts(scope=name, forgotten=one.forgotten, memories=memories, events=events, card=card)
        )
        return
    facts(
        [
            ("scope", name),
            ("title", clean(one.title)),
            ("kind", card.kind if card is not None else ""),
            ("state", "forgotten" if one.forgotten else ""),
            ("holds", f"{count(memories, 'memory')}, {count(events, 'event')}"),
            ("is now", card.into or "" if card is not None else ""),
            ("stands for", clean(", ".join("/".join(i[1:]) for i in card.ids)) if card is not None else ""),
        ]
    )


@cli_command("make", short_help="Create a scope")
@click.argument("name", metavar="SCOPE")
@click.option("--title", help="Title; it can be changed later.")
@click.option(
    "--kind",
    type=click.Choice(["workspace", "user", "agent"]),
    default="workspace",
    show_default=True,
    help="workspace: a project. user: a person. agent: an agent.",
)
def make_command(context: CommandContext, name: str, title: str | None, kind: Kind) -> None:
    """Create SCOPE with a title and a kind. A first write also creates a scope, without them."""
    check_scope(name)
    with context.memory() as memory:
        made = memory.scopes.make(name, title=title, kind=kind)
    if context.json:
        from ipfsmem.results import ScopeCard

        context.emit(ScopeCard(scope=name, card=made.card))
    else:
        click.echo(f"{name} is created: {clean(made.title)}.")


@cli_command("into", short_help="Redirect a scope to another one")
@click.argument("name", metavar="SCOPE")
@click.argument("other", required=False, metavar="[OTHER]")
@click.option("--stay", is_flag=True, help="Remove the redirection.")
def into_command(context: CommandContext, name: str, other: str | None, stay: bool) -> None:
    """Redirect SCOPE to OTHER. Nothing moves: readers of OTHER get the texts of SCOPE after its own, and
    new writes for SCOPE go to OTHER.
    """
    check_scope(name)
    if (other is None) != stay:
        raise UsageError("give OTHER or --stay")
    if other is not None:
        check_scope(other)
    with context.memory() as memory:
        made = memory.scopes.redirect(name, other)
    if context.json:
        from ipfsmem.results import ScopeCard

        context.emit(ScopeCard(scope=name, card=made.card))
    elif other is None:
        click.echo(f"{name} is no longer redirected.")
    else:
        click.echo(
            f"{name} is redirected to {other}: new writes go to {other}, which also shows the texts of {name}."
        )


@cli_command("title", short_help="Change the title of a scope")
@click.argument("name", metavar="SCOPE")
@click.argument("title")
def title_command(context: CommandContext, name: str, title: str) -> None:
    """Change the title of SCOPE to TITLE. Its name never changes."""
    check_scope(name)
    with context.memory() as memory:
        made = memory.scopes.title(name, title)
    if context.json:
        from ipfsmem.results import ScopeTitle

        context.emit(ScopeTitle(scope=name, title=made.title))
    else:
        click.echo(f"{name} is now titled {clean(made.title)}.")


@cli_command("forget", short_help="Forget a scope on every device")
@click.argument("name", metavar="SCOPE")
@click.option("--reason", default="", help="The reason, for the timeline.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_command(context: CommandContext, name: str, reason: str, yes: bool) -> None:
    """Forget SCOPE with every memory and event, on every device. Concurrent writes of others to it become
    conflicts.

    Writes to the scope fail until `ipfsmem scope restore`, which restores its texts from a published
    version while one with them is kept.
    """
    from ipfsmem.cli import secret_input
    from ipfsmem.cli.consent import confirm

    check_scope(name)
    with context.memory() as memory:
        memory.scopes.known(name, live=True)
        # Not of those that turned out to be this one: they stay.
        held = next(counted for counted in memory.scopes.counts() if counted.scope == name)
        what = f"{count(held.memories, 'memory')} and {count(held.events, 'event')}"
        lost = memory.scopes.unpublished(name)
        never = f" ({count(lost, 'memory')} never synced: {'it' if lost == 1 else 'they'} cannot be restored)"
        lasting = never if lost else ""
        if not yes:
            if not secret_input.can_ask():
                raise UsageError(
                    f"this forgets the scope {name} with {what}{lasting}, on every device",
                    hint="Confirm: --yes",
                )
            confirm(f"Forget the scope {name} with {what}{lasting}, on every device?", "not forgotten")
        gone = memory.scopes.forget(name, reason=reason)
        told = when_others_learn(memory.mode)
    if context.json:
        from ipfsmem.results import ScopeForgotten

        context.emit(ScopeForgotten(scope=name, forgotten=gone, never_synced=lost))
    else:
        click.echo(f"The scope {name} is forgotten here with {count(gone, 'memory')}{lasting}{told}.")


@cli_command("restore", short_help="Restore a forgotten scope")
@click.argument("name", metavar="SCOPE")
@click.option(
    "--root", metavar="CID", help="Restore the texts and events of this version (see `ipfsmem vault log`)."
)
def restore_command(context: CommandContext, name: str, root: str | None) -> None:
    """Make SCOPE writable again. --root restores its texts and events from a published version; otherwise
    it is empty.
    """
    check_scope(name)
    with context.memory() as memory:
        back = memory.scopes.restore(name, root)
        looked = root is None and memory.mode.published
        newest = memory.scopes.newest_version(name) if looked else None
        gone = looked and newest is None and memory.scopes.held_anything(name)
    if context.json:
        from ipfsmem.results import ScopeRestored

        context.emit(
            ScopeRestored(scope=name, memories=back.texts, events=back.events, not_fetched=back.not_fetched)
        )
    elif root is None and not gone:
        texts = (
            f" To restore its texts too, before writing there: ipfsmem scope restore {name} --root {newest}"
        )
        click.echo(advice(f"The scope {name} is back, and empty.{texts if newest else ''}"))
    elif not gone:
        click.echo(f"The scope {name} is back: {count(back.texts, 'text')}, {count(back.events, 'event')}.")
    if gone:
        error = IncompleteError(
            f"the scope {name} can be written again, but its texts are not restored: no version on this device contains them"
        )
        error.hint = ""
        raise error
    if back.not_fetched:
        raise IncompleteError(
            f"{count(back.not_fetched, 'text')} of the scope {name} are not kept on this device",
            hint=f"Run: ipfsmem sync. Then restore them: ipfsmem restore KEY --scope {name} --root {root}",
        )


for _command in (
    list_command,
    show_command,
    make_command,
    title_command,
    into_command,
    clear_command,
    forget_command,
    restore_command,
):
    command.add_command(_command)
