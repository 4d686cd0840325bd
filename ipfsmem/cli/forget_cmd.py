"""`ipfsmem forget KEY`: remove a memory on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Asked, call, operation_command
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.operations.forget import Forgotten, forget

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


def _check_match(context: CommandContext, asked: Asked) -> None:
    if (
        asked["if_match"] == ""
    ):  # from an unset variable; it would forget the earlier texts of a memory that is gone
        raise UsageError("--if-match must not be empty")


def _run(context: CommandContext, memory: Memory, asked: Asked) -> Forgotten:
    result: Forgotten = call(forget, context, memory, asked)
    if not result:
        asked["there"] = memory.scopes.having(asked["key"]) if context.scope is None else []
        return result
    asked["folders"] = memory.folders.list()
    asked["public"] = memory.mode.public and memory.status().root is not None
    asked["told"] = when_others_learn(memory.mode)
    return result


def _absent(context: CommandContext, asked: Asked) -> NotFoundError:
    key, there = asked["key"], asked["there"]
    return NotFoundError(
        f"there is no memory {key}" + (" in the default scope" if there else ""),
        hint=f"It is in a scope: ipfsmem forget {key} --scope {there[0]}"
        if there
        else "List the memories: ipfsmem list.",
    )


def _show(context: CommandContext, result: Forgotten, asked: Asked) -> None:
    click.echo(f"{result.key} is forgotten here{asked['told']}.")
    if asked["public"]:
        click.echo(
            "Published data stays public: whoever has its address or a copy can read it permanently.",
            err=True,
        )
    if asked["folders"]:
        click.echo(
            "An editor's swap file, the trash and backups of its folder may still have the text.", err=True
        )


command = operation_command("forget", forget, _show, ask=_check_match, run=_run, absent=_absent)
