"""`ipfsmem write KEY`: create or change one memory; omitted parts stay unchanged."""

from __future__ import annotations

import click

from ipfsmem.cli.derived import operation_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.write_work import STEPS
from ipfsmem.operations.write import write

_NOTES = """The text comes from --body, --file or, with a dash, standard input; without any, only the
header changes. Input that begins with a header, as `ipfsmem read` prints it, is the whole file. Empty
input is refused.

--if-match refuses to replace a text that you have not seen. The output is the SHA-256 of the text."""

command = operation_command(
    "write",
    write,
    STEPS.show,
    ask=STEPS.ask,
    run=STEPS.run,
    options=(
        click.Argument(["source"], required=False, metavar="[-]"),
        click.Option(
            ["--file"], callback=not_empty, metavar="PATH", help="File with the text; - is standard input."
        ),
        click.Option(
            ["--whole/--body-only"],
            default=None,
            help="Treat the input as the whole file with its header, or as the body (default: detect).",
        ),
        click.Option(["--empty", "empty_ok"], is_flag=True, help="Allow an empty body."),
        click.Option(
            ["--set", "fields"],
            multiple=True,
            metavar="FIELD=VALUE",
            help="Set a header field; an empty value removes it.",
        ),
        click.Option(
            ["--by-type"],
            is_flag=True,
            help="Choose the scope by type: the default scope for user and feedback, --scope for project and reference.",
        ),
        click.Option(["--new"], is_flag=True, help="Refuse if the memory exists."),
    ),
    notes=_NOTES,
)
