"""`ipfsmem recall WORDS`: the memories that fit a question, best first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from ipfsmem.bundle.session_parts import RECALLED_TYPES
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import Number, WholeNumber
from ipfsmem.cli.printing import clean, clean_lines, data_of, is_terminal, local_text, style
from ipfsmem.errors import UsageError
from ipfsmem.memories.moment_kinds import Kind
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.found import Found, FoundMoment, Recalled


@cli_command("recall", scoped=True, shows=True, stacks=True, reads=True)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit",
    type=WholeNumber(1, 200),
    default=10,
    show_default=True,
    metavar="N",
    help="Maximum number of results.",
)
@click.option(
    "--kind",
    type=click.Choice(["memory", "event", "message", "all"]),
    default="memory",
    show_default=True,
    help="What is looked through: event, what was noted in the timeline; message, what was said in sessions; all of these.",
)
@click.option(
    "--type",
    "of_type",
    metavar="TYPE",
    help="Only memories of this type (user, feedback, project, reference, session), or events of it, or what a user, an assistant or a tool said.",
)
@click.option("--tag", help="Only memories with this tag.")
@click.option("--category", help="Only memories of this category.")
@click.option(
    "--also", "queries", metavar="TEXT", multiple=True, help="Another phrasing of the question; repeatable."
)
@click.option("--by", metavar="NAME", help="Only texts that this device, member or speaker wrote or said.")
@click.option("--about", metavar="NAME", help="Only texts that name this person or thing.")
@click.option(
    "--when", metavar="RANGE", help="Only texts of a time range: last week, may 2023, since friday."
)
@click.option("--since", metavar="TIME", help="Only texts since: 7d, yesterday, friday, a day, a moment.")
@click.option("--until", metavar="TIME", help="Only texts until: yesterday, may 2023, a day, a moment.")
@click.option(
    "--threshold",
    type=Number(-1, 1),
    metavar="COSINE",
    help="Only what is so similar to the question, -1 to 1, by the model that the settings name.",
)
@click.option(
    "--why", is_flag=True, help="Show what each score is the sum of, and which of the words it has."
)
@click.option("--joined", is_flag=True, help="Show what the graph joins each memory with.")
def command(
    context: CommandContext,
    words: tuple[str, ...],
    limit: int,
    kind: Kind,
    of_type: str | None,
    tag: str | None,
    category: str | None,
    queries: tuple[str, ...],
    by: str | None,
    about: str | None,
    when: str | None,
    since: str | None,
    until: str | None,
    threshold: float | None,
    why: bool,
    joined: bool,
) -> None:
    """Find the memories that fit WORDS, or a question, the best first.

    They are ranked by words: over name, description, tags, key and text, whatever the case, accents and English
    endings; then by their type, tags, importance and age; and by meaning where the settings name a model. Own texts come before those of others, which are marked as candidates.
    With --kind also events of the timeline and what was said in sessions. With --also each phrasing is ranked by itself, and what fits one of them best comes first.
    """
    from ipfsmem.found import Recalled
    from ipfsmem.memories.writers import Writers

    if kind == "memory" and of_type not in (None, *RECALLED_TYPES):
        raise UsageError(f"unknown memory type {of_type!a}; supported: {', '.join(RECALLED_TYPES)}")
    with context.memory() as memory:
        read = memory.stack(*context.stacked) if context.stacked else memory
        found = read.recall(
            " ".join(words),
            queries=queries,
            kind=kind,
            limit=limit,
            type=of_type,
            tag=tag,
            category=category,
            when=when,
            since=since,
            until=until,
            by=by,
            about=about,
            threshold=threshold,
            why=why,
            joined=joined,
        )
        answer = Recalled.of(found, Writers(memory.replica), why=why, joined=joined)
    if context.json:
        context.emit(answer)
    else:
        _print(answer, kind)
    context.print_where_scope_went()


def _print(answer: Recalled, kind: Kind) -> None:
    from ipfsmem.found import FoundMoment

    found = answer.in_order()
    for number, hit in enumerate(found):
        place, about, text = _of_moment(hit) if isinstance(hit, FoundMoment) else _of_memory(hit)
        about += [f"has {', '.join(hit.words)}"] if hit.words else []
        if number:
            click.echo()
        click.echo(f"{style(clean(place), bold=True)}  {clean(', '.join(filter(None, about)))}")
        for line in sum_of(hit.parts or {}):
            click.echo(style(line, dim=True))
        click.echo(clean_lines("".join(f"  {line}\n" for line in text.split("\n"))), nl=False)
        for relation in getattr(hit, "joined", None) or ():
            click.echo(style(f"  {clean(' '.join(relation))}", dim=True))
    if answer.notice:
        click.echo(clean(answer.notice), err=True)
    if is_terminal() or answer.not_fetched or not found:
        nothing = "" if found else "nothing found: "
        what = {"memory": "memory", "event": "event", "message": "message", "all": "entry"}[kind]
        said = f"{nothing}{count(answer.searched, what)} searched, ranked by {answer.ranking}"
        if answer.not_fetched:
            said += (
                f"; {count(answer.not_fetched, 'text')} could not be looked through, not being on this device"
            )
        if not found and kind == "memory":
            said += "; --kind all looks through the timeline and sessions too"
        click.echo(style(said, dim=True), err=True)


def _of_memory(hit: Found) -> tuple[str, list[str], str]:
    """Where a hit stands, what is said of it, and its text."""
    about = [hit.fields.get("name", ""), hit.written, f"by {hit.by}" if hit.by else ""]
    about += [] if hit.own else ["others' word, a candidate"]
    about += [f"hides the one of {', '.join(map(_named, hit.hides))}"] if hit.hides else []
    return f"{hit.scope}/{hit.key}" if hit.scope else hit.key, about, hit.body


def _of_moment(hit: FoundMoment) -> tuple[str, list[str], str]:
    place = f"session {hit.session}" if hit.kind == "message" else f"event {hit.type}"
    about = [f"scope {hit.scope}" if hit.scope else "", local_text(hit.at)]
    about += [f"the {hit.type} says" if hit.kind == "message" else "", f"by {hit.by}" if hit.by else ""]
    about += [] if hit.own else ["imported, a candidate"]
    if hit.event is None:
        return place, about, hit.text
    return place, about, data_of(hit.event)


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
