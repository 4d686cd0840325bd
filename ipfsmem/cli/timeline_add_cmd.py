"""`ipfsmem timeline add TYPE`: one event for the timeline."""

from __future__ import annotations

from typing import Any

import click

from ipfsmem.canonical import read_json
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.errors import UsageError
from ipfsmem.operations.timeline import add


def _ask(context: CommandContext, arguments: Arguments) -> None:
    pairs, document = arguments["pairs"], arguments["document"]
    if pairs and document is not None:
        raise UsageError("KEY=VALUE and --data exclude each other")
    arguments["data"] = _object(document) if document is not None else _pairs(pairs)


def _show(context: CommandContext, event: dict[str, Any], arguments: Arguments) -> None:
    click.echo(event["id"])


def _object(text: str) -> dict[str, Any]:
    value = _json(text, "--data")
    if not isinstance(value, dict):
        raise UsageError("--data requires a JSON object")
    return value


def _pairs(texts: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.rstrip(":"):
            raise UsageError(f"{text!r} is neither KEY=VALUE nor KEY:=JSON")
        if name.rstrip(":") in values:
            raise UsageError(f"{name.rstrip(':')} is given twice", hint="For several values: KEY:='[1, 2]'")
        if name.endswith(":"):
            values[name[:-1]] = _json(value, name[:-1])
        else:
            values[name] = value
    return values


def _json(text: str, name: str) -> Any:
    import msgspec

    try:
        return read_json(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}") from None


command = operation_command(
    "add",
    add,
    _show,
    ask=_ask,
    options=(
        click.Argument(["pairs"], nargs=-1, metavar="[KEY=VALUE | KEY:=JSON]..."),
        click.Option(["--data", "document"], metavar="JSON", help="The data as one JSON object."),
    ),
    notes="The output is the event's id. KEY=VALUE adds a text, KEY:=JSON any JSON value (count:=3).",
)
