"""`ipfsmem approve KEY`: release a pending text, or move a text of one scope to another; `--list` lists pending texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, is_terminal
from ipfsmem.errors import UsageError
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.operations.approve import Approved, approve
from ipfsmem.operations.pending import PendingTexts, pending
from ipfsmem.operations.promote import promote
from ipfsmem.operations.sessions.approve import SessionApproved
from ipfsmem.operations.sessions.approve import approve as approve_session
from ipfsmem.wording import count

_NOTES = """--list prints the pending texts; --session NAME approves the imported messages of one
session. With --to, your own memory moves to another scope, for example from a project to the default
scope."""

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


def _ask(context: CommandContext, arguments: Arguments) -> None:
    """Check the options before the memory is opened."""
    key, source, session, listing = (arguments[name] for name in ("key", "source", "session", "listing"))
    if listing + (key is not None) + (source is not None and not listing) + (session is not None) != 1:
        raise UsageError("approve requires exactly one of KEY, --from NAME, --session NAME and --list")
    if (arguments["alternative"] is not None or arguments["to"] is not None) and key is None:
        raise UsageError("--alternative and --to require KEY")
    if arguments["to"] is None and (arguments["keep"] or arguments["if_match"] is not None):
        raise UsageError("--keep and --if-match require --to")
    if arguments["to"] is not None and arguments["alternative"] is not None:
        raise UsageError("--alternative names a pending text: approve it first, then move it to a scope")


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> Any:
    if arguments["listing"]:
        return call(pending, context, memory, arguments)
    if arguments["session"] is not None:
        return call(approve_session, context, memory, arguments)
    return call(approve if arguments["to"] is None else promote, context, memory, arguments)


def _show(context: CommandContext, result: Any, arguments: Arguments) -> None:
    if isinstance(result, PendingTexts):
        for one in result:
            first = one.copy or one.key or f"session {one.session}"
            click.echo("\t".join(map(clean, (first, one.source, one.name, one.description))))
        if not result and is_terminal():
            click.echo("No pending texts.", err=True)
    elif isinstance(result, SessionApproved):
        _show_messages(result.messages, 1)
    elif isinstance(result, MemoryRecord):
        click.echo(result.sha256)
    elif isinstance(result, Approved):
        _show_approved(result, arguments)


def _show_approved(result: Approved, arguments: Arguments) -> None:
    if arguments["key"] is not None:
        click.echo(result[0].sha256)
        return
    texts = sum(not one.session for one in result)
    messages = sum(one.messages for one in result)
    if texts or not messages:
        click.echo(f"Approved {count(texts, 'text')}.")
    if messages:
        _show_messages(messages, len({one.session for one in result} - {""}))


def _show_messages(messages: int, sessions: int) -> None:
    click.echo(f"Approved {count(messages, 'message')} of {count(sessions, 'session')}.")


command = operation_command(
    "approve",
    approve,
    _show,
    ask=_ask,
    run=_run,
    options=(
        click.Option(["--list", "listing"], is_flag=True, help="List the pending texts instead."),
        click.Option(
            ["--session"], metavar="NAME", callback=not_empty, help="All imported messages of this session."
        ),
        click.Option(
            ["--to"],
            metavar="SCOPE",
            help="Move your own memory KEY from --scope to this scope ('': the default scope).",
        ),
        click.Option(["--keep"], is_flag=True, help="With --to: copy it instead of moving it."),
        click.Option(
            ["--if-match"],
            metavar="SHA256",
            help="With --to: replace the text there only if it has this SHA-256.",
        ),
    ),
    notes=_NOTES,
)
