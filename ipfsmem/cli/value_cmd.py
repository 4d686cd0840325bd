"""`ipfsmem value`: values under free keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import Number, Subcommands, WholeNumber
from ipfsmem.cli.printing import clean, earlier, moment, table
from ipfsmem.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from ipfsmem.memories.values import Value

_LEVELS = ("user", "session", "agent")


@click.group("value", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Values under free keys: 1 to 256 bytes of any characters, such as user:preference:theme. Each is a
    memory, so recall and sync include it. Replaced and deleted values stay in the history of their key.
    """


@cli_command("set", scoped=True, short_help="Set the value of a key")
@click.argument("key")
@click.argument("value")
@click.option(
    "--parse", is_flag=True, help="Parse VALUE as JSON: a number, list, object, true, false or null."
)
@click.option("--level", type=click.Choice(_LEVELS), help="Level: lifetime of the value.")
@click.option("--ttl", type=Number(0, 1e10), metavar="SECONDS", help="Seconds until it expires; 0 for never.")
def set_command(
    context: CommandContext, key: str, value: str, parse: bool, level: str | None, ttl: float | None
) -> None:
    """Set the value of KEY to VALUE. The earlier value stays in its history."""
    given: Any = _parsed(value) if parse else value
    with context.memory() as memory:
        made = memory.values.set(key, given, level=level, ttl=ttl)
    if context.json:
        context.emit(made)
    else:
        click.echo(f"{clean(made.key)} is stored.")
    context.print_where_scope_went()


@cli_command("get", scoped=True, shows=True, short_help="Print the value of a key")
@click.argument("key")
def get_command(context: CommandContext, key: str) -> None:
    """Print the value of KEY: a text as it is, anything else as JSON."""
    with context.memory() as memory:
        found = memory.values.get(key)
    if found is None:
        raise NotFoundError(f"no value for the key {key[:80]!a}", hint="List the keys: ipfsmem value list")
    if context.json:
        context.emit(found)
    else:
        click.echo(_shown(found.value))
        _print_conflicts(found)


@cli_command("list", scoped=True, shows=True, short_help="List keys and values")
@click.option("--prefix", default="", help="Only keys with this prefix.")
@click.option("--level", type=click.Choice(_LEVELS), help="Only values of this level.")
@click.option("--expired", is_flag=True, help="List expired values that are not swept yet.")
def list_command(context: CommandContext, prefix: str, level: str | None, expired: bool) -> None:
    """List keys and values, by key."""
    with context.memory() as memory:
        found = memory.values.list(prefix, level=level, expired=expired)
    if context.json:
        context.emit(found)
        return
    rows = [(one.key, one.level, moment(one.changed), _line(one)) for one in found]
    table(
        ("key", "level", "changed (UTC)", "value"),
        rows,
        styles=("bold", "cyan", "dim", ""),
        shrink=(0, 3),
        nothing="No values.",
    )


@cli_command("delete", scoped=True, short_help="Delete the value of a key")
@click.argument("key")
def delete_command(context: CommandContext, key: str) -> None:
    """Delete the value of KEY, on every device. `value restore` brings it back."""
    with context.memory() as memory:
        gone = memory.values.delete(key)
    if context.json:
        context.emit(gone)
    else:
        click.echo(f"{clean(gone.key)} is deleted. `value restore` brings it back.")


@cli_command("clear", scoped=True, short_help="Delete several values")
@click.argument("keys", nargs=-1)
@click.option("--prefix", help="Only keys with this prefix.")
@click.option("--level", type=click.Choice(_LEVELS), help="Only values of this level.")
def clear_command(
    context: CommandContext, keys: tuple[str, ...], prefix: str | None, level: str | None
) -> None:
    """Delete the values of KEYS, of a prefix or of a level; combined filters must all match. `value
    restore` brings each back.
    """
    if not keys and prefix is None and level is None:
        raise UsageError("no values selected", hint="Give keys, --prefix or --level.")
    with context.memory() as memory:
        gone = memory.values.clear(prefix=prefix, level=level, keys=list(keys) or None)
    lacking = sorted({*keys}.difference(gone)) if prefix is None and level is None else []
    if gone or not lacking:
        _print_gone(context, gone)
    if lacking:
        raise NotFoundError(
            f"no value for {', '.join(f'{key[:80]!a}' for key in lacking[:5])}",
            hint="List the keys: ipfsmem value list",
        )


@cli_command("sweep", scoped=True, short_help="Delete expired values")
def sweep_command(context: CommandContext) -> None:
    """Delete expired values. Until then, answers only omit them."""
    with context.memory() as memory:
        gone = memory.values.sweep()
    _print_gone(context, gone)


@cli_command("history", scoped=True, shows=True, short_help="List the earlier values of a key")
@click.argument("key")
def history_command(context: CommandContext, key: str) -> None:
    """List the earlier values of KEY, newest first: number, time of replacement, reason, value."""
    with context.memory() as memory:
        found, shown = memory.values.history(key), memory.values.get(key)
        if not found and shown is None:
            raise NotFoundError(
                f"no value for the key {key[:80]!a}", hint="List the keys: ipfsmem value list"
            )
    if context.json:
        context.emit(found)
        return
    rows = ((str(one.number or "-"), one.until, one.why, _shown(one.value)) for one in found)
    earlier(rows, "number", "value", f"{clean(key)} has no earlier value.")
    if shown is not None:
        _print_conflicts(shown)


@cli_command("restore", scoped=True, short_help="Restore an earlier value of a key")
@click.argument("key")
@click.option(
    "--number", type=WholeNumber(1), default=1, metavar="N", help="Number of the value in `value history`."
)
def restore_command(context: CommandContext, key: str, number: int) -> None:
    """Restore an earlier value of KEY, the newest unless you give a number; also a deleted value."""
    with context.memory() as memory:
        made = memory.values.restore(key, number)
    if context.json:
        context.emit(made)
    else:
        click.echo(f"{clean(made.key)} is {_line(made)} again.")


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


def _print_conflicts(one: Value) -> None:
    """Name the texts beside a value, on the error stream, as `read` does."""
    if one.conflicts:
        from ipfsmem.cli.hint_commands import advice

        within = f" --scope {one.scope}" if one.scope else ""
        click.echo(
            advice(f"also: {', '.join(one.conflicts)} (ipfsmem conflicts {one.memory}{within})"), err=True
        )


def _line(one: Value) -> str:
    said = " ".join(_shown(one.value).split())
    return said if one.own else f"{said}  (pending)"


def _print_gone(context: CommandContext, gone: list[str]) -> None:
    if context.json:
        context.emit(gone)
        return
    for key in gone:
        click.echo(f"{clean(key)} is deleted.")
    if not gone:
        click.echo("No values were deleted.", err=True)


for _command in (
    set_command,
    get_command,
    list_command,
    delete_command,
    clear_command,
    sweep_command,
    history_command,
    restore_command,
):
    command.add_command(_command)
