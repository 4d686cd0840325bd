"""`ipfsmem context`: the context of a model at the start of a session, or before a prompt."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.printing import clean_lines, is_terminal
from ipfsmem.errors import UsageError
from ipfsmem.operations.context import context as operation
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.bundle.secrets import SecretFinding
    from ipfsmem.memories.context import ContextBlock
    from ipfsmem.memory import Memory

#: Maximum characters shown of a line with a secret.
_WIDE = 160


def _ask(context: CommandContext, arguments: Arguments) -> None:
    if arguments["reset"] and not arguments["session"]:
        raise UsageError("--reset requires --session")


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> ContextBlock:
    if arguments["reset"] and not arguments["preview"]:
        memory.reset_context(arguments["session"])
    session = "" if arguments["reset"] and arguments["preview"] else arguments["session"]
    block: ContextBlock = call(
        operation, context, memory, {**arguments, "session": session, "deliver": False}
    )
    return block


def _printed(context: CommandContext, memory: Memory, block: ContextBlock, arguments: Arguments) -> None:
    if not arguments["preview"]:  # output that failed is given again
        memory.mark_delivered(block, arguments["session"])


def _show(context: CommandContext, block: ContextBlock, arguments: Arguments) -> None:
    if arguments["preview"]:
        from ipfsmem.bundle.secrets import find_secrets

        click.echo(clean_lines(_summary(block, tuple(find_secrets(block.text)))))
    click.echo(clean_lines(block.text) if is_terminal() else block.text, nl=False)


def _summary(block: ContextBlock, secrets: tuple[SecretFinding, ...]) -> str:
    """Return a summary of the context for a person. A mark replaces each secret."""
    lines = [f"{count(block.tokens, 'token')}, {len(block.text.encode()):,} bytes"]
    lines += [f"whole or cut: {', '.join(block.shown)}"] if block.shown else []
    lines += [f"match but do not fit: {', '.join(block.skipped)}"] if block.skipped else []
    lines.append(f"index: {block.listed} named, {block.left_out} left out")
    lines += [f"messages and events that match: {block.said}"] if block.said else []
    lines += [f"events: {block.events}"] if block.events else []
    lines += [f"omitted, as this session has them: {block.repeated}"] if block.repeated else []
    masked = _masked(block.text, secrets).split("\n")
    for number, finds in groupby(secrets, lambda secret: secret.line):
        lines += [f"looks like a secret: {found}" for found in finds]
        lines.append(f"  {masked[number - 1][:_WIDE]}")
    return "\n".join([*lines, ""])


def _masked(text: str, secrets: tuple[SecretFinding, ...]) -> str:
    """Return a text with a mark in place of each secret, with the same number of lines."""
    for secret in sorted(secrets, reverse=True, key=lambda one: one.start):
        breaks = "\n" * text.count("\n", secret.start, secret.end)
        text = f"{text[: secret.start]}[{secret.kind}]{breaks}{text[secret.end :]}"
    return text


command = operation_command(
    "context",
    operation,
    _show,
    ask=_ask,
    run=_run,
    printed=_printed,
    options=(
        click.Option(
            ["--reset"],
            is_flag=True,
            help="With --session: include all texts again, for example after the session was compacted.",
        ),
    ),
    shows=False,  # the scope of an agent may have no memory yet
)
