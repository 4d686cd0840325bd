"""`ipfsmem graph`: entities, and the relations between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, table, write_bytes
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import NotFoundError
from ipfsmem.operations.graph.entities import add, delete, list_, search
from ipfsmem.operations.graph.relations import (
    GraphDrawing,
    Subgraph,
    around,
    drawn,
    path,
    query,
    relate,
    relations,
    unrelate,
)
from ipfsmem.operations.graph.stored import Edge, Node, Relations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ipfsmem.memory import Memory


@click.group("graph", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Entities and relations, read from memories: a list item is an observation, `- works at [[acme]]` a
    relation.

    Each entity is a memory, so recall, context and sync include it. An entity is named by its key or its
    name.
    """


def _show_added(context: CommandContext, node: Node, arguments: Arguments) -> None:
    click.echo(f"{node.key} is {clean(node.name)}, {clean(node.kind)}.")


def _run_relate(context: CommandContext, memory: Memory, arguments: Arguments) -> Relations:
    result: Relations | None = call(unrelate if arguments["remove"] else relate, context, memory, arguments)
    if result is None:
        raise NotFoundError(
            f"there is no relation {arguments['type'][:60]} from {arguments['begin'][:60]} to {arguments['end'][:60]}",
            hint="List the relations: ipfsmem graph relations",
        )
    return result


def _show_related(context: CommandContext, result: Relations, arguments: Arguments) -> None:
    click.echo("Removed." if arguments["remove"] else "Added." if result else "The relation exists already.")


def _no_path(context: CommandContext, arguments: Arguments) -> NotFoundError:
    return NotFoundError(
        f"no relations lead from {arguments['begin'][:60]} to {arguments['end'][:60]}",
        hint=f"List the neighbours: ipfsmem graph around {arguments['begin']}",
    )


def _show_around(context: CommandContext, subgraph: Subgraph, arguments: Arguments) -> None:
    _print_edges(subgraph.edges, "No entities are near it." if arguments["entity"] else "No relations.")


def _end_around(context: CommandContext, subgraph: Subgraph, arguments: Arguments) -> None:
    if subgraph.more and not context.json:
        click.echo(advice(f"More than {arguments['limit']} entities are near it: --limit N"), err=True)


def _ask_drawn(context: CommandContext, arguments: Arguments) -> None:
    arguments["format"] = "html" if arguments["html"] else arguments["format"]


def _show_drawn(context: CommandContext, drawing: GraphDrawing, arguments: Arguments) -> None:
    write_bytes(drawing.text.encode())


def _run_delete(context: CommandContext, memory: Memory, arguments: Arguments) -> Node | None:
    arguments["learn"] = when_others_learn(memory.mode)
    gone: Node | None = call(delete, context, memory, arguments)
    return gone


def _no_entity(context: CommandContext, arguments: Arguments) -> NotFoundError:
    return NotFoundError(
        f"there is no entity {arguments['entity'][:60]}", hint="List the entities: ipfsmem graph list"
    )


def _show_deleted(context: CommandContext, gone: Node, arguments: Arguments) -> None:
    click.echo(
        advice(f"{gone.key} is deleted here{arguments['learn']}. Restore it: ipfsmem fact restore {gone.key}")
    )


def _nodes(nothing: str) -> Callable[[CommandContext, Iterable[Node], Arguments], None]:
    """Return a printer of entities; `nothing`: text without any."""

    def show(context: CommandContext, nodes: Iterable[Node], arguments: Arguments) -> None:
        kind = arguments.get("kind")
        table(
            ("key", "kind", "name", "observations"),
            [(one.key, one.kind, one.name, str(len(one.observations))) for one in nodes],
            styles=("bold", "cyan", "", "dim"),
            nothing=nothing if kind is None else f"No entities of the kind {clean(kind)}.",
        )

    return show


def _edges(nothing: str) -> Callable[[CommandContext, Iterable[Edge], Arguments], None]:
    return lambda context, found, arguments: _print_edges(found, nothing)


def _print_edges(edges: Iterable[Edge], nothing: str) -> None:
    table(
        ("from", "relation", "to"),
        [(one.begin, one.type, one.end) for one in edges],
        styles=("bold", "cyan", "bold"),
        nothing=nothing,
    )


_REMOVE = click.Option(["--remove"], is_flag=True, help="Remove the relation.")
_HTML = click.Option(["--html"], is_flag=True, help="A page with a picture, the same as --format html.")
for _command in (
    operation_command("add", add, _show_added),
    operation_command("relate", relate, _show_related, run=_run_relate, options=[_REMOVE]),
    operation_command("list", list_, _nodes("No entities.")),
    operation_command("relations", relations, _edges("No relations.")),
    operation_command("search", search, _nodes("No entity has all these words.")),
    operation_command("query", query, _nodes("No such relation begins at this entity.")),
    operation_command("path", path, _edges("Both are the same entity."), absent=_no_path),
    operation_command("around", around, _show_around, end=_end_around),
    operation_command("export", drawn, _show_drawn, ask=_ask_drawn, options=[_HTML]),
    operation_command("delete", delete, _show_deleted, run=_run_delete, absent=_no_entity),
):
    command.add_command(_command)
