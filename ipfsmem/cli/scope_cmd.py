"""`ipfsmem scope`: the named parts of a memory, one for each project, agent or person that it serves."""

from __future__ import annotations

import click

from ipfsmem.bundle.keys import check_scope
from ipfsmem.cli.here import Here, ours
from ipfsmem.cli.printing import clean, count, facts, table
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError


@click.group("scope", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Named parts of this memory. Write into one with --scope NAME on other commands: its first write makes it.

    Scopes keep texts apart for order, not against members: who is a member of the vault can read all of them.
    """


@ours("list", short_help="All scopes.")
@click.option("--forgotten", is_flag=True, help="Those that are forgotten instead.")
def list_command(here: Here, forgotten: bool) -> None:
    """List the scopes: name, kind, how many memories, title, and what one turned out to be."""
    with here.memory() as memory:
        found = [(one, len(memory.scope(one.token).list())) for one in memory.scopes(forgotten=forgotten)]
    if here.json:
        here.emit([{"scope": one.token, "memories": number, "card": one.card} for one, number in found])
        return
    rows = []
    for one, number in found:
        into = f"is {one.card.into} now" if one.card is not None and one.card.into else ""
        kind = one.card.kind if one.card is not None else ""
        rows.append((one.token, kind, str(number), one.title, into))
    table(("scope", "kind", "memories", "title", ""), rows, styles=("bold", "cyan", "dim", "", "yellow"))


@ours("show", short_help="What one scope is.")
@click.argument("name", metavar="SCOPE")
def show_command(here: Here, name: str) -> None:
    """Show one scope: its title, its kind, how much is in it, and what it stands for."""
    check_scope(name)
    with here.memory() as memory:
        everything = [*memory.scopes(), *memory.scopes(forgotten=True)]
        one = next((scope for scope in everything if scope.token == name), None)
        if one is None:
            raise NotFoundError(f"there is no scope {name}", hint="List them with: ipfsmem scope list")
        part = memory.scope(name)
        memories, events = len(part.list()), len(part.timeline())
    card = one.card
    if here.json:
        here.emit(
            {"scope": name, "forgotten": one.forgotten, "memories": memories, "events": events, "card": card}
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


@ours("title", short_help="Say what people call it.")
@click.argument("name", metavar="SCOPE")
@click.argument("title")
def title_command(here: Here, name: str, title: str) -> None:
    """Give SCOPE another TITLE. Its name never changes."""
    check_scope(name)
    with here.memory() as memory:
        made = memory.title_scope(name, title)
    if here.json:
        here.emit({"scope": name, "title": made.title})
    else:
        click.echo(f"{name} is called {clean(made.title)}.")


@ours("forget", short_help="Forget a scope, on every device.")
@click.argument("name", metavar="SCOPE")
@click.option("--reason", default="", help="Why; it is kept in the timeline.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_command(here: Here, name: str, reason: str, yes: bool) -> None:
    """Forget SCOPE with every memory and event in it, on every device. What others write there meanwhile stands under
    its conflicts.

    Nothing can be written there any more until `ipfsmem scope restore`, which brings the texts back out of a published root
    as long as one with them is kept.
    """
    from ipfsmem.cli import secrets_in

    check_scope(name)
    with here.memory() as memory:
        one = next((scope for scope in memory.scopes() if scope.token == name), None)
        if one is None:
            raise NotFoundError(f"there is no scope {name}", hint="List them with: ipfsmem scope list")
        part = memory.scope(name)
        what = f"{count(len(part.list()), 'memory')} and {count(len(part.timeline()), 'event')}"
        if not yes:
            if not secrets_in.can_ask():
                raise UsageError(
                    f"this forgets the scope {name} with {what}, on every device", hint="Say so: --yes"
                )
            click.confirm(f"Forget the scope {name} with {what}, on every device?", abort=True, err=True)
        gone = memory.forget_scope(name, reason=reason)
    if here.json:
        here.emit({"scope": name, "forgotten": gone})
    else:
        click.echo(
            f"The scope {name} is forgotten here with {count(gone, 'memory')}; other devices learn it with the next sync."
        )


@ours("restore", short_help="Bring a forgotten scope back.")
@click.argument("name", metavar="SCOPE")
@click.option("--root", metavar="CID", help="With the texts and events of this root (see ipfsmem log).")
def restore_command(here: Here, name: str, root: str | None) -> None:
    """Make SCOPE writable again. With --root its texts and events come back out of a published root; without, it is empty."""
    check_scope(name)
    with here.memory() as memory:
        back = memory.restore_scope(name, root)
    if here.json:
        here.emit(
            {"scope": name, "memories": back.texts, "events": back.events, "not_fetched": back.not_fetched}
        )
    elif root is None:
        click.echo(
            f"The scope {name} is back, and empty. Its texts come with --root CID, before anything else."
        )
    else:
        click.echo(f"The scope {name} is back: {count(back.texts, 'text')}, {count(back.events, 'event')}.")
    if back.not_fetched:
        raise IncompleteError(
            f"{count(back.not_fetched, 'text')} of the scope {name} are not kept on this device",
            hint=f"Run: ipfsmem sync. Then bring one back: ipfsmem restore KEY --scope {name} --root {root}",
        )


for _command in (list_command, show_command, title_command, forget_command, restore_command):
    command.add_command(_command)
