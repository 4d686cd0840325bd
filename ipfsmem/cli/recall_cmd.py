"""`ipfsmem recall WORDS`: the memories that fit a question, best first."""

from __future__ import annotations

from collections.abc import Mapping
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
@click.option("--category", help="Only memories of this category.")
@click.option(
    "--by", metavar="NAME", help="Only what this device or member wrote: what it is called, or its id."
)
@click.option(
    "--since", metavar="DATE", help="Only what was written since this date or time (ISO 8601, UTC)."
)
@click.option(
    "--threshold",
    type=click.FloatRange(-1, 1),
    metavar="COSINE",
    help="Only what is so similar to the question, -1 to 1, by the model that the settings name.",
)
@click.option(
    "--why", is_flag=True, help="Show what each score is the sum of, and which of the words it has."
)
def command(
    context: CommandContext,
    words: tuple[str, ...],
    limit: int,
    kind: str | None,
    tag: str | None,
    category: str | None,
    by: str | None,
    since: str | None,
    threshold: float | None,
    why: bool,
) -> None:
    """Find the memories that fit WORDS, or a question, the best first.

    They are ranked by words: over name, description, tags, key and text, whatever the case, accents and English
    endings; then by their type, tags, importance and age; and by meaning where the settings name a model. Own texts come before those of others, which are marked as candidates.
    """
    from ipfsmem.memories.writers import Writers
    from ipfsmem.results import Recalled

    with context.memory() as memory:
        read = memory.stack(*context.stacked) if context.stacked else memory
        found = read.recall(
            " ".join(words),
            limit=limit,
            type=kind,
            tag=tag,
            category=category,
            since=since,
            by=by,
            threshold=threshold,
            why=why,
        )
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
        about += [f"hides the one of {', '.join(map(_named, hit.hides))}"] if hit.hides else []
        about += [f"has {', '.join(hit.words)}"] if hit.words else []
        if number:
            click.echo()
        click.echo(f"{style(clean(place), bold=True)}  {clean(', '.join(filter(None, about)))}")
        for line in sum_of(hit.parts or {}):
            click.echo(style(line, dim=True))
        click.echo(clean_lines("".join(f"  {line}\n" for line in hit.body.split("\n"))), nl=False)
    if answer.notice:
        click.echo(clean(answer.notice), err=True)
    if is_terminal() or answer.not_fetched or not answer.hits:
        found = "" if answer.hits else "nothing found: "
        said = f"{found}{count(answer.searched, 'memory')} searched, ranked by {answer.ranking}"
        if answer.not_fetched:
            said += (
                f"; {count(answer.not_fetched, 'text')} could not be looked through, not being on this device"
            )
        click.echo(style(said, dim=True), err=True)


def sum_of(parts: Mapping[str, float], beside: Mapping[str, float] | None = None) -> list[str]:
    """The parts of a score, the greatest first, and the score below them, which is their sum as it is printed; in a second column
    those of another score."""
    names = sorted({**parts, **(beside or {})}, key=lambda name: (-abs(round(parts.get(name, 0.0), 3)), name))
    columns = [parts] if beside is None else [parts, beside]
    rounded = [{name: round(column.get(name, 0.0), 3) for name in names} for column in columns]
    if not names:
        return []
    lines = [(name, [column[name] for column in rounded]) for name in names]
    lines.append(("score", [sum(column.values()) for column in rounded]))
    return [f"  {name:<10}" + "".join(f"{value:>8.3f}" for value in values) for name, values in lines]


def _named(scope: str) -> str:
    return f"the scope {scope}" if scope else "everybody"
