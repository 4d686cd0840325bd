"""`ipfsmem forget KEY`: remove a memory on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.operations.forget import Forgotten, forget

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


def _check_match(context: CommandContext, arguments: Arguments) -> None:
    if (
        arguments["if_match"] == ""
    ):  # from an unset variable; it would forget the earlier texts of a memory that is gone
        raise UsageError("--if-match must not be empty")


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> Forgotten:
    result: Forgotten = call(forget, context, memory, arguments)
    if not result:
        arguments["there"] = memory.scopes.having(arguments["key"]) if context.scope is None else []
        return result
    arguments["folders"] = memory.folders.list()
    arguments["public"] = memory.mode.public and memory.status().root is not None
    arguments["told"] = when_others_learn(memory.mode)
    return result


def _absent(context: CommandContext, arguments: Arguments) -> NotFoundError:
    key, there = arguments["key"], arguments["there"]
    return NotFoundError(
        f"there is no memory {key}" + (" in the default scope" if there else ""),
        hint=f"It is in a scope: ipfsmem forget {key} --scope {there[0]}"
        if there
        else "List the memories: ipfsmem list.",
    )


def _show(context: CommandContext, result: Forgotten, arguments: Arguments) -> None:
    click.echo(f"{result.key} is forgotten here{arguments['told']}.")
    if arguments["public"]:
        click.echo(
            "Published data stays public: whoever has its address or a copy can read it permanently.",
            err=True,
        )
    if arguments["folders"]:
        click.echo(
            "An editor's swap file, the trash and backups of its folder may still have the text.", err=True
        )


command = operation_command("forget", forget, _show, ask=_check_match, run=_run, absent=_absent)
