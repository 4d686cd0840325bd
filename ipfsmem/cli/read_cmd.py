"""`ipfsmem read KEY`: one memory, verbatim."""

from __future__ import annotations

import click

from ipfsmem.cli.derived import operation_command
from ipfsmem.cli.read_work import STEPS
from ipfsmem.operations.read import read

command = operation_command(
    "read",
    read,
    STEPS.show,
    run=STEPS.run,
    absent=STEPS.absent,
    options=[click.Option(["--body", "only_body"], is_flag=True, help="Print the body only.")],
    notes="Without --scope or --stack, a memory that is not in the default scope is read from the only scope that has it.",
    shows=False,  # the error about a wrong scope names similar keys
)
