"""`ipfsmem value`: values under free keys."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, earlier, moment, style, table
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.operations.values.clear import ValueKeys, clear
from ipfsmem.operations.values.delete import delete
from ipfsmem.operations.values.get import get
from ipfsmem.operations.values.history import EarlierValues, history
from ipfsmem.operations.values.list import ValuePage, list_
from ipfsmem.operations.values.restore import restore
from ipfsmem.operations.values.set import set_
from ipfsmem.operations.values.stored import no_value
from ipfsmem.operations.values.sweep import sweep

if TYPE_CHECKING:
    from ipfsmem.memories.values import KeyValue
    from ipfsmem.memory import Memory


@click.group("value", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Values under free keys: 1 to 256 bytes of any characters, such as user:preference:theme. Each is a
    memory, so recall and sync include it. Replaced and deleted values stay in the history of their key.
    """


def _ask_set(context: CommandContext, arguments: Arguments) -> None:
    if arguments["parse"]:
        arguments["value"] = _parsed(arguments["value"])


def _show_set(context: CommandContext, entry: KeyValue, arguments: Arguments) -> None:
    click.echo(f"{clean(entry.key)} is stored.")


def _absent(context: CommandContext, arguments: Arguments) -> NotFoundError:
    return no_value(arguments["key"])


def _show_value(context: CommandContext, entry: KeyValue, arguments: Arguments) -> None:
    click.echo(_shown(entry.value))
    if not entry.own:
        click.echo(style("pending: ", fg="yellow") + "others proposed this value.", err=True)
    _print_conflicts(entry)


def _show_list(context: CommandContext, page: ValuePage, arguments: Arguments) -> None:
    rows = [(one.key, one.level, moment(one.changed), _line(one)) for one in page]
    table(
        ("key", "level", "changed (UTC)", "value"),
        rows,
        styles=("bold", "cyan", "dim", ""),
        shrink=(0, 3),
        nothing="No values.",
    )
    if page.next is not None:
        click.echo(style(clean(f"More: --cursor {shlex.quote(page.next)}"), dim=True), err=True)


def _run_delete(context: CommandContext, memory: Memory, arguments: Arguments) -> KeyValue:
    arguments["learn"] = when_others_learn(memory.mode)
    gone: KeyValue = call(delete, context, memory, arguments)
    arguments["left"] = call(get, context, memory, {"key": gone.key})
    return gone


def _show_deleted(context: CommandContext, gone: KeyValue, arguments: Arguments) -> None:
    typed = f"{'-- ' if gone.key.startswith('-') else ''}{shlex.quote(gone.key)}"
    if not gone.own:
        back = "It was pending, so its history does not keep it."
    elif clean(gone.key) != gone.key:
        back = "`value restore` with the same key restores it."
    else:
        back = advice(f"Restore it: ipfsmem value restore {typed}")
    click.echo(f"{clean(gone.key)} is deleted here{arguments['learn']}. {back}")
    if arguments["left"] is not None:
        click.echo(style("pending: ", fg="yellow") + "a value that others proposed is shown now.", err=True)


def _ask_clear(context: CommandContext, arguments: Arguments) -> None:
    arguments["keys"] = arguments["keys"] or None
    if arguments["keys"] is arguments["prefix"] is arguments["level"] is None:
        raise UsageError("no values selected", hint="Give keys, --prefix or --level.")


def _show_gone(context: CommandContext, gone: ValueKeys, arguments: Arguments) -> None:
    for key in gone:
        click.echo(f"{clean(key)} is deleted.")
    if not gone and not arguments.get("keys"):
        click.echo("No values were deleted.", err=True)


def _end_clear(context: CommandContext, gone: ValueKeys, arguments: Arguments) -> None:
    keys = arguments["keys"] or () if arguments["prefix"] is None and arguments["level"] is None else ()
    if lacking := sorted({*keys}.difference(gone)):
        raise NotFoundError(
            f"no value for {', '.join(f'{key[:80]!a}' for key in lacking[:5])}",
            hint="List the keys: ipfsmem value list",
        )


def _run_history(context: CommandContext, memory: Memory, arguments: Arguments) -> EarlierValues:
    revisions: EarlierValues = call(history, context, memory, arguments)
    arguments["shown"] = call(get, context, memory, arguments)
    return revisions


def _show_history(context: CommandContext, revisions: EarlierValues, arguments: Arguments) -> None:
    rows = ((str(one.number or "-"), one.until, one.why, _shown(one.value)) for one in revisions)
    earlier(rows, "number", "value", f"{clean(arguments['key'])} has no earlier value.")
    if arguments["shown"] is not None:
        _print_conflicts(arguments["shown"])


def _show_restored(context: CommandContext, entry: KeyValue, arguments: Arguments) -> None:
    click.echo(f"{clean(entry.key)} is {_line(entry)} again.")


def _parsed(value: str) -> Any:
    import json

    import msgspec

    from ipfsmem.canonical import read_json

    def named_once(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"VALUE has the name {name[:60]!a} twice, and only one would be stored",
                    hint="Give each name once, or leave --parse out to store it as text.",
                )

    try:
        parsed = read_json(value.encode("utf-8", "surrogatepass"), Any)
        json.loads(value, object_pairs_hook=named_once, parse_int=str)
        return parsed
    except (msgspec.MsgspecError, UnicodeError):
        raise UsageError("VALUE is not JSON", hint="Leave --parse out to store it as text.") from None


def _shown(value: Any) -> str:
    from ipfsmem.bundle.value_file import as_text

    return clean(as_text(value))


def _print_conflicts(one: KeyValue) -> None:
    """Name the alternatives of a value, on the error stream, as `read` does."""
    if one.conflicts:
        from ipfsmem.cli.hint_commands import advice

        within = f" --scope {one.scope}" if one.scope else ""
        click.echo(
            advice(f"also: {', '.join(one.conflicts)} (ipfsmem conflicts {one.memory}{within})"), err=True
        )


def _line(one: KeyValue) -> str:
    text = " ".join(_shown(one.value).split())
    return text if one.own else f"{text}  (pending)"


for _command in (
    operation_command(
        "set",
        set_,
        _show_set,
        ask=_ask_set,
        options=[
            click.Option(
                ["--parse"],
                is_flag=True,
                help="Parse VALUE as JSON: a number, list, object, true, false or null.",
            )
        ],
    ),
    operation_command(
        "get", get, _show_value, absent=_absent, notes="A string is printed raw, any other value as JSON."
    ),
    operation_command("list", list_, _show_list),
    operation_command("delete", delete, _show_deleted, run=_run_delete),
    operation_command(
        "clear",
        clear,
        _show_gone,
        ask=_ask_clear,
        end=_end_clear,
        options=[click.Argument(["keys"], nargs=-1)],
    ),
    operation_command("sweep", sweep, _show_gone),
    operation_command("history", history, _show_history, run=_run_history),
    operation_command("restore", restore, _show_restored),
):
    command.add_command(_command)
