"""`ipfsmem recall WORDS`: the memories that match a query, best first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import operation_command
from ipfsmem.cli.printing import clean, clean_lines, data_of, is_terminal, local_text, style
from ipfsmem.operations.recall import FoundMoment, Recalled, RecallHit, recall
from ipfsmem.wording import count


def _show(context: CommandContext, answer: Recalled, arguments: Mapping[str, Any]) -> None:
    hits = answer.in_order()
    for number, hit in enumerate(hits):
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
    if is_terminal() or answer.not_fetched or not hits:
        nothing = "" if hits else "nothing found: "
        noun = {"memory": "memory", "event": "event", "message": "message", "all": "entry"}[arguments["kind"]]
        summary = f"{nothing}{count(answer.searched, noun)} searched, ranked by {answer.ranking}"
        if answer.not_fetched:
            summary += f"; {count(answer.not_fetched, 'text')} not on this device, not searched"
        if not hits and arguments["kind"] == "memory":
            summary += "; --kind all also searches the timeline and sessions"
        click.echo(style(summary, dim=True), err=True)


def _of_memory(hit: RecallHit) -> tuple[str, list[str], str]:
    """Return the scope and key of a hit, its details, and its text."""
    about = [hit.fields.get("name", ""), hit.written, f"by {hit.by}" if hit.by else ""]
    about += [] if hit.own else ["pending"]
    about += [f"overrides the memory in {', '.join(map(_scope_text, hit.hides))}"] if hit.hides else []
    return f"{hit.scope}/{hit.key}" if hit.scope else hit.key, about, hit.body


def _of_moment(hit: FoundMoment) -> tuple[str, list[str], str]:
    place = f"session {hit.session}" if hit.kind == "message" else f"event {hit.type}"
    about = [f"scope {hit.scope}" if hit.scope else "", local_text(hit.at)]
    about += [f"the {hit.type} says" if hit.kind == "message" else "", f"by {hit.by}" if hit.by else ""]
    about += [] if hit.own else ["imported, pending"]
    if hit.event is None:
        return place, about, hit.text
    return place, about, data_of(hit.event)


def sum_of(parts: Mapping[str, float], beside: Mapping[str, float] | None = None) -> list[str]:
    """Return lines with the parts of a score, the greatest first, and their sum as printed; a second column has those of
    another score."""
    names = sorted({**parts, **(beside or {})}, key=lambda name: (-abs(round(parts.get(name, 0.0), 3)), name))
    columns = [parts] if beside is None else [parts, beside]
    rounded = [{name: round(column.get(name, 0.0), 3) for name in names} for column in columns]
    if not names:
        return []
    lines = [(name, [column[name] for column in rounded]) for name in names]
    lines.append(("score", [sum(column.values()) for column in rounded]))
    return [f"  {name:<10}" + "".join(f"{value:>8.3f}" for value in values) for name, values in lines]


def _scope_text(scope: str) -> str:
    return f"the scope {scope}" if scope else "the default scope"


command = operation_command("recall", recall, _show)
