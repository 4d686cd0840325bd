"""`ipfsmem resolve KEY`: one text instead of all texts of a conflict."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, operation_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.values import read_text
from ipfsmem.errors import UsageError
from ipfsmem.operations.resolve import Resolved, resolve


def _ask(context: CommandContext, arguments: Arguments) -> None:
    """Check the options and read the text before the memory is opened."""
    key, file = arguments["key"], arguments["file"]
    look = f"See it first: ipfsmem conflicts {key}"
    if sum((arguments["keep"], arguments["alternative"] is not None, file is not None)) != 1:
        raise UsageError("give exactly one of --keep, --alternative FILE and --file PATH", hint=look)
    text = arguments["text"] = None if file is None else read_text(file, "the text")
    if text is not None and not text.strip():
        raise UsageError(
            "the text is empty, so nothing was replaced",
            hint=f"To keep the current text: --keep. To delete the memory afterwards: ipfsmem forget {key}",
        )
    if arguments["seen"] is None:
        raise UsageError("--seen HASH is missing", hint=f"{look} (it prints the command to run)")


def _show(context: CommandContext, result: Resolved, arguments: Arguments) -> None:
    click.echo(f"{result.key} stays forgotten." if result.shown is None else result.shown.sha256)


command = operation_command(
    "resolve",
    resolve,
    _show,
    ask=_ask,
    options=(
        click.Option(
            ["--file"],
            callback=not_empty,
            metavar="PATH",
            help="Use this whole file, header included; - is standard input.",
        ),
    ),
)
