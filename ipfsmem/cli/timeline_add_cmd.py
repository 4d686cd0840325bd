"""`ipfsmem timeline add TYPE`: one event for the timeline."""

from __future__ import annotations

from typing import Any

import click

from ipfsmem.canonical import read_json
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.errors import UsageError


@cli_command("add", scoped=True)
@click.argument("kind", metavar="TYPE")
@click.argument("data", nargs=-1, metavar="[KEY=VALUE | KEY:=JSON]...")
@click.option("--data", "document", metavar="JSON", help="The data as one JSON object.")
def command(context: CommandContext, kind: str, data: tuple[str, ...], document: str | None) -> None:
    """Add an event of TYPE to the timeline and print its id.

    KEY=VALUE adds a text, KEY:=JSON any JSON value (count:=3).
    """
    if data and document is not None:
        raise UsageError("KEY=VALUE and --data exclude each other")
    if not kind.strip():
        raise UsageError("the type of the event is empty, so nothing was added")
    found = _object(document) if document is not None else _pairs(data)
    with context.memory() as memory:
        event = memory.note(kind, **found)
    if context.json:
        context.emit_open(event)
    else:
        click.echo(event["id"])
    context.print_where_scope_went()


def _object(text: str) -> dict[str, Any]:
    value = _json(text, "--data")
    if not isinstance(value, dict):
        raise UsageError("--data requires a JSON object")
    return value


def _pairs(texts: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.rstrip(":"):
            raise UsageError(f"{text!r} is neither KEY=VALUE nor KEY:=JSON")
        if name.rstrip(":") in found:
            raise UsageError(f"{name.rstrip(':')} is given twice", hint="For several values: KEY:='[1, 2]'")
        if name.endswith(":"):
            found[name[:-1]] = _json(value, name[:-1])
        else:
            found[name] = value
    return found


def _json(text: str, what: str) -> Any:
    import msgspec

    try:
        return read_json(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {error}") from None
