"""`ipfsmem session`: conversations that go on on every device."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from ipfsmem.canonical import read_json
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Asked, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands, WholeNumber
from ipfsmem.cli.printing import clean, facts, is_terminal, moment, table, write_bytes
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import LimitError, NotFoundError, StorageError, UsageError
from ipfsmem.operations.sessions.add import SessionAdded, add
from ipfsmem.operations.sessions.create import SessionBegun, create
from ipfsmem.operations.sessions.forget import SessionForgotten, forget
from ipfsmem.operations.sessions.info import SessionInfo, info
from ipfsmem.operations.sessions.list import SessionPage, list_
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.sessions.compaction import Told

#: Bytes of what `session add` takes at once.
MAX_INPUT: Final = 64 * 1024 * 1024
#: Messages that are shown unless asked for more or fewer.
_FOUND: Final = 10
_OF_INPUT: Final = "They come from standard input: a JSON object on each line, or one JSON list of them."


@click.group("session", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Conversations of an agent, message by message. Each is a session with a name; its first message
    creates it.

    Sessions are encrypted and synced like memories. Lists of memories and plain folders omit them;
    context includes the messages that match a question.
    """


def _show_list(context: CommandContext, found: SessionPage, asked: Asked) -> None:
    table(
        ("session", "messages", "changed", "title"),
        [
            (one.session, str(one.messages), moment(one.changed), _whose(one.title, own=one.own))
            for one in found
        ],
        styles=("bold", "dim", "dim", ""),
        nothing="" if found.older or found.problems else "No sessions.",
    )


def _end_list(context: CommandContext, found: SessionPage, asked: Asked) -> None:
    if found.older:
        older = count(found.older, "older session")
        click.echo(advice(f"{older} not shown. See them: ipfsmem session list --all"), err=True)
    if found.problems:
        said = "; ".join(one.detail for one in found.problems)
        raise StorageError(said, hint=found.problems[0].hint)


def _show_info(context: CommandContext, info: SessionInfo, asked: Asked) -> None:
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
            ("pending", "" if info.own and info.summary_own else "imported messages that nobody approved"),
            ("summary of", clean(covered)),
            ("to compact", count(info.due, "message") if info.due else ""),
            ("last said", clean(info.preview)),
        ]
    )


def _absent(context: CommandContext, asked: Asked) -> NotFoundError:
    return NotFoundError(
        f"there is no session {asked['session']}", hint="See which there are: ipfsmem session list --all"
    )


def _show_created(context: CommandContext, begun: SessionBegun, asked: Asked) -> None:
    click.echo(begun.session)


def _read_messages(context: CommandContext, asked: Asked) -> None:
    asked["items"] = _given(sys.stdin.buffer.read(MAX_INPUT + 1))


def _show_added(context: CommandContext, done: SessionAdded, asked: Asked) -> None:
    click.echo(f"{count(done.added, 'message')} added to {clean(done.session)}.")


def _end_added(context: CommandContext, done: SessionAdded, asked: Asked) -> None:
    from ipfsmem.sessions.messages import read_message

    if unread := sum(not read_message(one).role for one in asked["items"]):
        are = f"{unread:,} of them {'has' if unread == 1 else 'have'}"
        click.echo(advice(f"{are} no known role and text: kept, but recall does not find it."), err=True)


@cli_command("resume", scoped=True, shows=True, short_help="Print the messages to resume a session with")
@click.argument("name", required=False, metavar="[SESSION]")
@click.option("--last", type=WholeNumber(1, 100_000), metavar="N", help="Maximum number of messages.")
def resume_command(context: CommandContext, name: str | None, last: int | None) -> None:
    """Print the last messages of SESSION (default: the session with the newest message) as a JSON list: 20
    unless the settings say otherwise, starting with a turn, without system instructions. The first is
    the summary, if the session is compacted.
    """
    with context.memory() as memory:
        chosen = memory.sessions.latest() if name is None else name
        if chosen is None:
            raise NotFoundError("there is no session", hint="Begin one: ipfsmem session create")
        _there(memory, chosen)
        items = memory.sessions.resume(chosen, last)
    context.emit_open(items)


@cli_command("search", scoped=True, shows=True, short_help="Search the messages of all sessions")
@click.argument("query")
@click.option(
    "--limit",
    type=WholeNumber(1, 1_000),
    default=_FOUND,
    show_default=True,
    metavar="N",
    help="Maximum number of results.",
)
def search_command(context: CommandContext, query: str, limit: int) -> None:
    """Find the messages of all sessions that fit QUERY best, including those that a summary replaces."""
    from ipfsmem.sessions.transcript import shortened

    with context.memory() as memory:
        problems: dict[str, StorageError] = {}
        hits = memory.sessions.search(query, limit, problems=problems)
    if context.json:
        context.emit(hits)
    else:
        table(
            ("session", "when", "who", "what"),
            [
                (one.session, moment(one.at), one.role, _whose(shortened(one.text), own=one.own))
                for one in hits
            ],
            styles=("bold", "dim", "cyan", ""),
        )
        if not hits:
            click.echo("Nothing found.", err=True)
    _name(problems)


@cli_command("export", scoped=True, shows=True, short_help="Print a session as Markdown or JSON")
@click.argument("name", metavar="SESSION")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json"]),
    default="markdown",
    show_default=True,
    help="Output format.",
)
def export_command(context: CommandContext, name: str, form: str) -> None:
    """Print all messages of SESSION: as Markdown for people, or as the JSON list that `ipfsmem session add`
    accepts. The output is unencrypted.
    """
    with context.memory() as memory:
        found = _there(memory, name)
    if form == "json" or context.json:
        from ipfsmem.sessions.compaction import marked

        context.emit_open(marked(found))
        return
    from ipfsmem.cli.printing import clean_lines
    from ipfsmem.sessions.transcript import as_markdown

    text = as_markdown(found, moment)
    write_bytes((clean_lines(text) if is_terminal() else text).encode("utf-8", "replace"))


@cli_command("compact", scoped=True, short_help="Summarise the older messages of a session")
@click.argument("name", required=False, metavar="[SESSION]")
@click.option("--all", "every", is_flag=True, help="Every session that is longer than the settings allow.")
@click.option(
    "--model", is_flag=True, help="Let the model in the settings write the summary; it receives the messages."
)
def compact_command(context: CommandContext, name: str | None, every: bool, model: bool) -> None:
    """Summarise all but the last messages of SESSION (20 unless the settings say otherwise). `session
    resume` then returns the summary instead of these messages. Nothing is deleted: export and search
    still have every message. Without --model, the summary consists of sentences from the messages.
    """
    if (name is None) != every:
        raise UsageError("name a session, or say --all: one of both")
    from ipfsmem.results import SessionCompacted

    with context.memory() as memory:
        if name is None:
            names = [known.session for known in memory.sessions.known()]
        else:
            _there(memory, name)
            names = [name]
        summariser = memory.sessions.model_summariser() if model else None
        by = summariser.name if summariser is not None else ""
        done = [
            SessionCompacted(
                session=one,
                covered=memory.sessions.compact(one, now=not every, summarise=summariser, by=by),
            )
            for one in names
        ]
    if context.json:
        context.emit(done)
        return
    for compacted in done:
        if compacted.covered:
            more = count(compacted.covered, "message")
            click.echo(f"{clean(compacted.session)}: a summary stands for {more} more.")
    if not any(compacted.covered for compacted in done):
        click.echo("Nothing is long enough to be compacted.")


@cli_command("status", scoped=True, shows=True, short_help="Show which sessions are compacted, or could be")
def status_command(context: CommandContext) -> None:
    """List sessions with their number of messages, of summarised messages, and of messages that `session
    compact --all` would summarise.
    """
    with context.memory() as memory:
        problems: dict[str, StorageError] = {}
        told = memory.sessions.told_each([one.session for one in memory.sessions.known()], problems)
        infos = [
            SessionInfo.of(
                name,
                found,
                memory.sessions.due(name),
                here=memory.sessions.is_here(name),
                seen=memory.sessions.seen(name),
            )
            for name, found in told.items()
        ]
    if context.json:
        context.emit(infos)
    else:
        table(
            ("session", "messages", "in its summary", "to compact"),
            [(one.session, str(one.messages), str(one.covered), str(one.due)) for one in infos],
            styles=("bold",),
            nothing="" if problems else "No sessions.",
        )
    _name(problems)


def _run_forget(context: CommandContext, memory: Memory, asked: Asked) -> SessionForgotten:
    from ipfsmem.cli import secret_input
    from ipfsmem.cli.consent import confirm

    name = asked["session"]
    seen = memory.sessions.seen(name)
    number: int | None = None
    with contextlib.suppress(StorageError):  # one that is damaged can be forgotten as well
        number = len(_there(memory, name).messages)
    asked["holds"] = "messages that cannot be read" if number is None else count(number, "message")
    what = f"the session {clean(name)} with {asked['holds']}, on every device"
    if not asked["yes"]:
        if not secret_input.can_ask():
            raise UsageError(f"this forgets {what}", hint="Say so: --yes")
        confirm(f"Forget {what}?", "not forgotten")
    asked["learn"] = when_others_learn(memory.mode)
    done: SessionForgotten = call(forget, context, memory, asked | {"seen": seen})
    return done


def _show_forgotten(context: CommandContext, done: SessionForgotten, asked: Asked) -> None:
    click.echo(f"The session {clean(done.session)} is forgotten here with {asked['holds']}{asked['learn']}.")


def _whose(text: str, *, own: bool) -> str:
    from ipfsmem.sessions.transcript import PENDING

    return text if own else f"{text} ({PENDING})"


def _name(problems: dict[str, StorageError]) -> None:
    """Raises StorageError for sessions that were left out as they are damaged."""
    if problems:
        raise StorageError("; ".join(map(str, problems.values())), hint=next(iter(problems.values())).hint)


def _there(memory: Memory, session: str) -> Told:
    """All of a session. Raises NotFoundError when there is none."""
    found = memory.sessions.told(session)
    if not found.messages and all(one.session != session for one in memory.sessions.known()):
        raise NotFoundError(
            f"there is no session {session}", hint="See which there are: ipfsmem session list --all"
        )
    return found


def _given(data: bytes) -> list[Mapping[str, Any]]:
    """The objects in what was given: of one JSON list, or one on each line. Raises UsageError, LimitError."""
    import msgspec

    if len(data) > MAX_INPUT:
        raise LimitError(
            f"more than {MAX_INPUT:,} bytes of messages at once", hint="Add them in several calls."
        )
    found: list[Any] = []
    try:
        text = data.decode()
        if text.lstrip().startswith("["):
            found = read_json(text)
        else:
            found = [read_json(line) for line in text.split("\n") if line.strip()]
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(
            f"standard input is neither a JSON list nor a JSON object on each line: {error}"
        ) from None
    if not found:
        raise UsageError("standard input holds no message, so nothing was added")
    for number, one in enumerate(found, 1):
        if not isinstance(one, dict):
            raise UsageError(f"message {number} is no JSON object, so nothing was added")
    return found


for _command in (
    operation_command("list", list_, _show_list, end=_end_list),
    operation_command("info", info, _show_info, absent=_absent),
    operation_command("create", create, _show_created),
    operation_command("add", add, _show_added, ask=_read_messages, end=_end_added, notes=_OF_INPUT),
    resume_command,
    search_command,
    export_command,
    compact_command,
    status_command,
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
