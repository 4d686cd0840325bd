"""`ipfsmem approve KEY`: a person's word that a text of others is their own from now on, or that a text of one scope is another's;
`--list` shows which there are of others."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, is_terminal
from ipfsmem.errors import UsageError
from ipfsmem.wording import count


@cli_command("approve", scoped=True)
@click.argument("key", required=False)
@click.option(
    "--copy", metavar="FILE", help="Which text, if there are several: a name from `ipfsmem conflicts`."
)
@click.option("--list", "listing", is_flag=True, help="List the pending texts instead.")
@click.option(
    "--from",
    "source",
    metavar="NAME",
    callback=not_empty,
    help="Everything that `import --from NAME` added on this device, including sessions. With --list: "
    "only these.",
)
@click.option(
    "--session",
    metavar="NAME",
    callback=not_empty,
    help="All imported messages of this session.",
)
@click.option(
    "--to",
    metavar="SCOPE",
    help="Move your own memory KEY from --scope to this scope ('' is the default scope).",
)
@click.option("--keep", is_flag=True, help="With --to: copy it instead of moving it.")
@click.option(
    "--if-match", metavar="SHA256", help="With --to: replace the text there only if it has this SHA-256."
)
def command(
    context: CommandContext,
    key: str | None,
    copy: str | None,
    listing: bool,
    source: str | None,
    session: str | None,
    to: str | None,
    keep: bool,
    if_match: str | None,
) -> None:
    """Approve a pending text: the memory KEY, or one alternative. It becomes your own text and replaces the
    current one.

    Read it first: agents are given the texts that you approve. --list prints the pending texts, --from
    NAME approves everything that an import added, --session NAME approves the imported messages of one
    session. With --to, a text of yours moves from one scope to another, for example from a project to
    the default scope.
    """
    if listing + (key is not None) + (source is not None and not listing) + (session is not None) != 1:
        raise UsageError("approve requires exactly one of KEY, --from NAME, --session NAME and --list")
    if (copy is not None or to is not None) and key is None:
        raise UsageError("--copy and --to require KEY")
    if to is None and (keep or if_match is not None):
        raise UsageError("--keep and --if-match require --to")
    if session is not None:
        _approve_session(context, session)
        return
    with context.memory() as memory:
        if listing:
            found = memory.candidates(source)
        elif source is not None:
            found = memory.promote_all(source)
        else:
            written = memory.promote(str(key), copy=copy, to=to, keep=keep, if_match=if_match)
            found = None
    if found is not None:
        if context.json:
            context.emit(found)
            return
        for one in found if listing else ():
            first = one.copy or one.key or f"session {one.session}"
            click.echo("\t".join(map(clean, (first, one.source, one.name, one.description))))
        if listing and not found and is_terminal():
            click.echo("No pending texts.", err=True)
        if not listing:
            texts = sum(not one.session for one in found)
            messages = sum(one.messages for one in found)
            if texts or not messages:
                click.echo(f"{count(texts, 'text is', 'texts are')} your own word now.")
            if messages:
                where = count(len({one.session for one in found} - {""}), "session")
                are = "is" if messages == 1 else "are"
                click.echo(f"{count(messages, 'message')} of {where} {are} your own word now.")
    elif context.json:
        from ipfsmem.results import Promoted

        context.emit(Promoted(key=str(key), sha256=written.sha256, scope=written.scope))
    else:
        click.echo(written.sha256)


def _approve_session(context: CommandContext, session: str) -> None:
    with context.memory() as memory:
        approved = memory.sessions.approve(session)
    if context.json:
        context.emit(approved)
    else:
        are = "is" if approved.messages == 1 else "are"
        click.echo(f"{count(approved.messages, 'message')} of 1 session {are} your own word now.")
