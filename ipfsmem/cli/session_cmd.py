"""`ipfsmem session`: conversations that continue on every device."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from ipfsmem.canonical import read_json
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, facts, is_terminal, moment, table, write_bytes
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import LimitError, NotFoundError, StorageError, UsageError
from ipfsmem.operations.sessions.add import SessionAdded, add
from ipfsmem.operations.sessions.compact import SessionsCompacted, compact
from ipfsmem.operations.sessions.create import SessionBegun, create
from ipfsmem.operations.sessions.export import SessionExport, export
from ipfsmem.operations.sessions.forget import SessionForgotten, forget
from ipfsmem.operations.sessions.info import SessionInfo, info
from ipfsmem.operations.sessions.items import SessionItems
from ipfsmem.operations.sessions.list import SessionPage, SessionProblem, list_
from ipfsmem.operations.sessions.resume import resume
from ipfsmem.operations.sessions.search import SessionHits, search
from ipfsmem.operations.sessions.status import SessionStatus, status
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Maximum input of `session add` in bytes.
MAX_INPUT: Final = 64 * 1024 * 1024
_OF_INPUT: Final = "Messages come from standard input: one JSON object per line, or a JSON list of objects."


@click.group("session", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Conversations of an agent, message by message. Each is a session with a name; its first message
    creates it.

    Sessions are encrypted and synced like memories. Lists of memories and plain folders omit them;
    context includes the messages that match a question.
    """


def _show_list(context: CommandContext, page: SessionPage, arguments: Arguments) -> None:
    table(
        ("session", "messages", "changed", "title"),
        [
            (one.session, str(one.messages), moment(one.changed), _whose(one.title, own=one.own))
            for one in page
        ],
        styles=("bold", "dim", "dim", ""),
        nothing="" if page.older or page.problems else "No sessions.",
    )


def _end_list(context: CommandContext, page: SessionPage, arguments: Arguments) -> None:
    if page.older:
        older = count(page.older, "older session")
        click.echo(advice(f"{older} not shown. List them: ipfsmem session list --all"), err=True)
    _refuse_problems(page.problems)


def _show_info(context: CommandContext, info: SessionInfo, arguments: Arguments) -> None:
    covered = f"{count(info.covered, 'message')}, by {info.summary_by}" if info.covered else ""
    facts(
        [
            ("session", clean(info.session)),
            ("title", clean(info.title)),
            ("holds", f"{count(info.messages, 'message')}, about {count(info.tokens, 'token')}"),
            ("began", moment(info.began)),
            ("changed", moment(info.changed)),
            ("written on", count(info.devices, "device")),
            ("kept", "on this device only" if info.here else ""),
            ("pending", "" if info.own and info.summary_own else "imported messages, not approved"),
            ("summary of", clean(covered)),
            ("to compact", count(info.due, "message") if info.due else ""),
            ("last said", clean(info.preview)),
        ]
    )


def _absent(context: CommandContext, arguments: Arguments) -> NotFoundError:
    if arguments["session"] is None:
        return NotFoundError("there is no session", hint="Create one: ipfsmem session create")
    return NotFoundError(
        f"there is no session {arguments['session']}", hint="List the sessions: ipfsmem session list --all"
    )


def _show_created(context: CommandContext, begun: SessionBegun, arguments: Arguments) -> None:
    click.echo(begun.session)


def _read_messages(context: CommandContext, arguments: Arguments) -> None:
    arguments["items"] = _messages_in(sys.stdin.buffer.read(MAX_INPUT + 1))


def _show_added(context: CommandContext, result: SessionAdded, arguments: Arguments) -> None:
    click.echo(f"{count(result.added, 'message')} added to {clean(result.session)}.")


def _end_added(context: CommandContext, result: SessionAdded, arguments: Arguments) -> None:
    from ipfsmem.sessions.messages import read_message

    if unread := sum(not read_message(one).role for one in arguments["items"]):
        are = f"{unread:,} of them {'has' if unread == 1 else 'have'}"
        click.echo(advice(f"{are} no known role and text: stored, but recall does not find it."), err=True)


def _show_resumed(context: CommandContext, items: SessionItems, arguments: Arguments) -> None:
    context.emit(items)  # for a program also without --json


def _show_hits(context: CommandContext, hits: SessionHits, arguments: Arguments) -> None:
    from ipfsmem.sessions.transcript import shortened

    table(
        ("session", "when", "who", "what"),
        [(one.session, moment(one.at), one.role, _whose(shortened(one.text), own=one.own)) for one in hits],
        styles=("bold", "dim", "cyan", ""),
    )
    if not hits:
        click.echo("Nothing found.", err=True)


def _show_exported(context: CommandContext, document: SessionExport, arguments: Arguments) -> None:
    from ipfsmem.cli.printing import clean_lines

    if document.format == "json":
        click.echo(document.text)
    else:
        write_bytes((clean_lines(document.text) if is_terminal() else document.text).encode())


def _session_or_all(context: CommandContext, arguments: Arguments) -> None:
    if (arguments["session"] is None) != arguments["every"]:
        raise UsageError("give a SESSION or --all")
    arguments["now"] = not arguments["every"]


def _show_compacted(context: CommandContext, result: SessionsCompacted, arguments: Arguments) -> None:
    for compacted in result:
        if compacted.covered:
            more = count(compacted.covered, "message")
            click.echo(f"{clean(compacted.session)}: {more} summarised.")
    if not any(compacted.covered for compacted in result):
        click.echo("No session is long enough to be compacted.")


def _show_status(context: CommandContext, state: SessionStatus, arguments: Arguments) -> None:
    table(
        ("session", "messages", "in its summary", "to compact"),
        [(one.session, str(one.messages), str(one.covered), str(one.due)) for one in state],
        styles=("bold",),
        nothing="" if state.problems else "No sessions.",
    )


def _name_damaged(
    context: CommandContext, result: SessionHits | SessionStatus | SessionsCompacted, arguments: Arguments
) -> None:
    _refuse_problems(result.problems)


def _run_forget(context: CommandContext, memory: Memory, arguments: Arguments) -> SessionForgotten:
    from ipfsmem.cli import secret_input
    from ipfsmem.cli.consent import confirm

    name = arguments["session"]
    seen = memory.sessions.seen(name)
    number: int | None = None
    with contextlib.suppress(StorageError):  # a damaged one can be forgotten, too
        stored = memory.sessions.info(name)
        if stored is None:
            forget.refuse(memory._view(), {"session": name}, "cli", _absent(context, arguments))
        number = stored.messages
    arguments["holds"] = "messages that cannot be read" if number is None else count(number, "message")
    subject = f"the session {clean(name)} with {arguments['holds']}, on every device"
    if not arguments["yes"]:
        if not secret_input.can_ask():
            raise UsageError(f"this forgets {subject}", hint="Confirm: --yes")
        confirm(f"Forget {subject}?", "not forgotten")
    arguments["learn"] = when_others_learn(memory.mode)
    result: SessionForgotten = call(forget, context, memory, arguments | {"seen": seen})
    return result


def _show_forgotten(context: CommandContext, result: SessionForgotten, arguments: Arguments) -> None:
    click.echo(
        f"The session {clean(result.session)} is forgotten here with {arguments['holds']}{arguments['learn']}."
    )


def _whose(text: str, *, own: bool) -> str:
    from ipfsmem.sessions.transcript import PENDING

    return text if own else f"{text} ({PENDING})"


def _refuse_problems(problems: Sequence[SessionProblem]) -> None:
    """Raise StorageError for sessions that were omitted as damaged."""
    if problems:
        raise StorageError("; ".join(one.detail for one in problems), hint=problems[0].hint)


def _messages_in(data: bytes) -> list[Mapping[str, Any]]:
    """Return the objects in the input: of one JSON list, or one per line. Raises UsageError, LimitError."""
    import msgspec

    if len(data) > MAX_INPUT:
        raise LimitError(
            f"more than {MAX_INPUT:,} bytes of messages at once", hint="Add them in several calls."
        )
    messages: list[Any] = []
    try:
        text = data.decode()
        if text.lstrip().startswith("["):
            messages = read_json(text)
        else:
            messages = [read_json(line) for line in text.split("\n") if line.strip()]
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(
            f"standard input is neither a JSON list nor a JSON object on each line: {error}"
        ) from None
    if not messages:
        raise UsageError("standard input has no messages, so nothing was added")
    for number, one in enumerate(messages, 1):
        if not isinstance(one, dict):
            raise UsageError(f"message {number} is not a JSON object, so nothing was added")
    return messages


for _command in (
    operation_command("list", list_, _show_list, end=_end_list),
    operation_command("info", info, _show_info, absent=_absent),
    operation_command("create", create, _show_created),
    operation_command("add", add, _show_added, ask=_read_messages, end=_end_added, notes=_OF_INPUT),
    operation_command("resume", resume, _show_resumed, absent=_absent),
    operation_command("search", search, _show_hits, end=_name_damaged),
    operation_command("export", export, _show_exported, absent=_absent),
    operation_command(
        "compact",
        compact,
        _show_compacted,
        ask=_session_or_all,
        end=_name_damaged,
        notes="With SESSION, the summary covers all but its last messages, however short the session is.",
        options=[
            click.Option(
                ["--all", "every"], is_flag=True, help="Every session that is longer than the settings allow."
            )
        ],
    ),
    operation_command("status", status, _show_status, end=_name_damaged),
    operation_command(
        "delete",
        forget,
        _show_forgotten,
        run=_run_forget,
        absent=_absent,
        options=[click.Option(["--yes"], is_flag=True, help="Do not ask.")],
    ),
):
    command.add_command(_command)
