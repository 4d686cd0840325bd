"""`ipfsmem why KEY WORDS`: how one memory fares with a question."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import clean, style
from ipfsmem.cli.recall_cmd import sum_of
from ipfsmem.wording import count


@cli_command("why", scoped=True, shows=True, stacks=True, reads=True)
@click.argument("key")
@click.argument("words", nargs=-1, required=True)
def command(context: CommandContext, key: str, words: tuple[str, ...]) -> None:
    """Say why the memory KEY fits WORDS, or a question, or why not: its place among all that recall finds, the parts that its
    score is the sum of beside those of the hit before it, and which of the words occur in it.
    """
    from ipfsmem.results import Explained

    with context.memory() as memory:
        read = memory.stack(*context.stacked) if context.stacked else memory
        found = Explained.of(read.why(key, " ".join(words)))
    if context.json:
        context.emit(found)
        return
    place = f"{found.scope}/{found.key}" if found.scope else found.key
    if found.place:
        where = f"is number {found.place:,} of {count(found.hits, 'hit')}, {count(found.searched, 'memory')} searched"
    else:
        where = f"is not found: {found.reason}"
    click.echo(clean(f"{place} {where}."))
    if not found.own:
        click.echo("It is others' word, a candidate, and comes after all own ones.")
    for line in sum_of(found.parts, found.before_parts if found.before else None):
        click.echo(style(line, dim=True))
    if found.before:
        click.echo(clean(f"The second column is {found.before}, the hit before it."))
    if found.words:
        click.echo(f"It has {clean(', '.join(found.words))}.")
    if found.missing:
        click.echo(f"It has not {clean(', '.join(found.missing))}.")
