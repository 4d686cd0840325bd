"""`ipfsmem context`: what a model is given at the start of a session, or before a prompt."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber
from ipfsmem.cli.printing import clean_lines, is_terminal
from ipfsmem.errors import UsageError
from ipfsmem.memories.context_layouts import Layout
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.bundle.secrets import SecretFinding
    from ipfsmem.memories.context import ContextBlock

#: Characters of a line with a secret that are shown.
_WIDE = 160


@cli_command("context", scoped=True, reads=True)
@click.option("--query", metavar="WORDS", help="Put matches of these words before the index.")
@click.option(
    "--max-tokens",
    type=WholeNumber(200, 200_000),
    metavar="N",
    help="Maximum number of tokens (default: 2,000; 500 for turn). A token counts as three bytes.",
)
@click.option(
    "--layout",
    type=click.Choice(["index", "ranked", "full", "turn"]),
    default="index",
    show_default=True,
    help="full: with recent events. ranked: only matches of the query. turn: only its best matches.",
)
@click.option(
    "--preview",
    is_flag=True,
    help="Show size, contents, omissions and possible secrets first.",
)
@click.option(
    "--session",
    metavar="NAME",
    default="",
    help="Omit texts that this session was already given; any name.",
)
@click.option(
    "--anew", is_flag=True, help="With --session: include all texts again, after the session lost them."
)
def command(
    context: CommandContext,
    query: str | None,
    max_tokens: int | None,
    layout: Layout,
    preview: bool,
    session: str,
    anew: bool,
) -> None:
    """Print the context for a model: the index of your memories, and with --query the matching memories,
    messages and events.

    Each quoted text names its author; the first sentence says that the texts are memory and not
    instructions. Texts of others are included once they are approved. With --scope: that scope, then the
    default scope.
    """
    if anew and not session:
        raise UsageError("--anew requires --session")
    with context.memory() as memory:
        if anew and not preview:
            memory.reset_context(session)
        block = memory.context(
            query,
            max_tokens=max_tokens,
            layout=layout,
            session="" if anew and preview else session,
            preview=True,
        )
        _print(context, block, preview)
        if not preview:  # what could not be printed is given again
            memory.mark_delivered(block, session)


def _print(context: CommandContext, block: ContextBlock, preview: bool) -> None:
    secrets: tuple[SecretFinding, ...] | None = None
    if preview:
        from ipfsmem.bundle.secrets import find_secrets

        secrets = tuple(find_secrets(block.text))
    if context.json:
        from ipfsmem.results import ContextText

        context.emit(ContextText.of(block, None if secrets is None else tuple(map(str, secrets))))
        return
    if preview:
        click.echo(clean_lines(_summary(block, secrets or ())))
    click.echo(clean_lines(block.text) if is_terminal() else block.text, nl=False)


def _summary(block: ContextBlock, secrets: tuple[SecretFinding, ...]) -> str:
    """What a model would be given, in a few lines for a person. A line with a secret is shown with a mark in its place."""
    lines = [f"{count(block.tokens, 'token')}, {len(block.text.encode()):,} bytes"]
    lines += [f"whole or cut: {', '.join(block.shown)}"] if block.shown else []
    lines += [f"match but do not fit: {', '.join(block.skipped)}"] if block.skipped else []
    lines.append(f"index: {block.listed} named, {block.left_out} left out")
    lines += [f"messages and events that match: {block.said}"] if block.said else []
    lines += [f"events: {block.events}"] if block.events else []
    lines += [f"omitted, as this session has them: {block.repeated}"] if block.repeated else []
    masked = _masked(block.text, secrets).split("\n")
    for number, finds in groupby(secrets, lambda found: found.line):
        lines += [f"looks like a secret: {found}" for found in finds]
        lines.append(f"  {masked[number - 1][:_WIDE]}")
    return "\n".join([*lines, ""])


def _masked(text: str, secrets: tuple[SecretFinding, ...]) -> str:
    """A text with a mark in the place of each secret, on as many lines as before."""
    for found in sorted(secrets, reverse=True, key=lambda one: one.start):
        breaks = "\n" * text.count("\n", found.start, found.end)
        text = f"{text[: found.start]}[{found.kind}]{breaks}{text[found.end :]}"
    return text
