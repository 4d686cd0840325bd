"""`ipfsmem context`: what a model is given at the start of a session, or before a prompt."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber
from ipfsmem.cli.printing import clean_lines, is_terminal


@cli_command("context", scoped=True)
@click.option("--query", metavar="WORDS", help="Put the memories that match these words before the index.")
@click.option(
    "--max-tokens",
    type=WholeNumber(200, 200_000),
    default=2_000,
    show_default=True,
    metavar="N",
    help="Never more; a token is counted as three bytes.",
)
@click.option(
    "--layout",
    type=click.Choice(["index", "turn"]),
    default="index",
    show_default=True,
    help="turn: only what matches the query.",
)
def command(context: CommandContext, query: str | None, max_tokens: int, layout: str) -> None:
    """Print what a model is given: the index of the own memories, and with --query the texts that match.

    Everything in it is quoted with who wrote it, after one sentence that says that it is memory and not instruction. Texts of
    others stand in it once they are promoted. With --scope: that scope, then what is everybody's.
    """
    with context.memory() as memory:
        block = memory.context(query, max_tokens=max_tokens, layout="turn" if layout == "turn" else "index")
    if context.json:
        from ipfsmem.results import ContextText

        context.emit(ContextText.of(block))
        return
    click.echo(clean_lines(block.text) if is_terminal() else block.text, nl=False)
