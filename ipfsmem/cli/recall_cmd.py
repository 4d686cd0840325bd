"""`ipfsmem recall WORDS`: memories found by their words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber
from ipfsmem.cli.printing import clean, clean_lines, is_terminal, style
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.results import Recalled


@cli_command("recall", scoped=True, shows=True, stacks=True)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", type=WholeNumber(1, 200), default=10, show_default=True, metavar="N", help="At most so many."
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["user", "feedback", "project", "reference", "session"]),
    help="Only memories of this type.",
)
@click.option("--tag", help="Only memories with this tag.")
@click.option(
    "--since", metavar="DATE", help="Only what was written since this date or time (ISO 8601, UTC)."
)
@click.option("--why", is_flag=True, help="Say which of the words each has.")
def command(
    context: CommandContext,
    words: tuple[str, ...],
    limit: int,
    kind: str | None,
    tag: str | None,
    since: str | None,
    why: bool,
) -> None:
    """Find the memories in which one of WORDS occurs, those with most of them first.

    Words are matched plainly, whatever their case and accents, over name, description, tags, key and text. Own texts come before
    those of others, which are marked as candidates.
    """
    from ipfsmem.memories.writers import Writers
    from ipfsmem.results import Recalled

    with context.memory() as memory:
        read = memory.stack(*context.stacked) if context.stacked else memory
        found = read.recall(" ".join(words), limit=limit, type=kind, tag=tag, since=since, why=why)
        answer = Recalled.of(found, Writers(memory.replica), why=why)
    if context.json:
        context.emit(answer)
    else:
        _print(answer)
    context.print_where_scope_went()


def _print(answer: Recalled) -> None:
    for number, hit in enumerate(answer.hits):
        place = f"{hit.scope}/{hit.key}" if hit.scope else hit.key
        about = [hit.fields.get("name", ""), hit.written, f"by {hit.by}" if hit.by else ""]
        about += [] if hit.own else ["others' word, a candidate"]
        about += [f"has {', '.join(hit.words)}"] if hit.words is not None else []
        if number:
            click.echo()
        click.echo(f"{style(clean(place), bold=True)}  {clean(', '.join(filter(None, about)))}")
        click.echo(clean_lines("".join(f"  {line}\n" for line in hit.body.split("\n"))), nl=False)
    if is_terminal() or answer.not_fetched:
        said = f"{count(answer.found, 'memory')} found by plain words"
        if answer.not_fetched:
            said += (
                f"; {count(answer.not_fetched, 'text')} could not be looked through, not being on this device"
            )
        click.echo(style(said, dim=True), err=True)
