"""`ipfsmem graph`: what stands in relation to what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands, WholeNumber
from ipfsmem.cli.printing import clean, table, write_bytes
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.errors import NotFoundError
from ipfsmem.graph.drawing import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipfsmem.graph.drawing import Format
    from ipfsmem.parts.graph import Edge, Node

_DEPTH = WholeNumber(0, 20)


@click.group("graph", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Entities and relations, read from memories: a list item is an observation, `- works at [[acme]]` a
    relation.

    Each entity is a memory, so recall, context and sync include it. ENTITY is its key or its name.
    """


@cli_command("add", scoped=True, short_help="Create an entity, or add observations to one")
@click.argument("name")
@click.option("--kind", default="", help="Kind of entity: a person, a project.")
@click.option("--say", "said", multiple=True, metavar="TEXT", help="An observation; repeatable.")
def add_command(context: CommandContext, name: str, kind: str, said: tuple[str, ...]) -> None:
    """Create the entity NAME, or add observations to the existing one."""
    with context.memory() as memory:
        made = memory.graph.add(name, kind, said)
    if context.json:
        context.emit(made)
    else:
        click.echo(f"{made.key} is {clean(made.name)}, {clean(made.kind)}.")
    context.print_where_scope_went()


@cli_command("relate", scoped=True, short_help="Add or remove a relation")
@click.argument("begin", metavar="ENTITY")
@click.argument("type")
@click.argument("end", metavar="ENTITY")
@click.option("--remove", is_flag=True, help="Remove the relation.")
def relate_command(context: CommandContext, begin: str, type: str, end: str, remove: bool) -> None:
    """Add a relation between two entities: `ipfsmem graph relate ada works_at acme`."""
    with context.memory() as memory:
        if remove and not memory.graph.unrelate(begin, type, end):
            raise NotFoundError(
                f"there is no relation {type[:60]} from {begin[:60]} to {end[:60]}",
                hint="List the relations: ipfsmem graph relations",
            )
        new = remove or memory.graph.relate(begin, type, end)
        found = memory.graph.relations(begin, type)
    if context.json:
        context.emit(found)
    else:
        click.echo("Removed." if remove else "Added." if new else "The relation exists already.")


@cli_command("list", scoped=True, shows=True, short_help="List entities")
@click.option("--kind", help="Only entities of this kind.")
def list_command(context: CommandContext, kind: str | None) -> None:
    """List entities: key, kind, name, number of observations."""
    with context.memory() as memory:
        found = memory.graph.list(kind)
    _print_nodes(
        context, found, "No entities." if kind is None else f"No entities of the kind {clean(kind)}."
    )


@cli_command("relations", scoped=True, shows=True, short_help="List relations")
@click.argument("entity", required=False)
@click.option("--type", help="Only relations of this type.")
def relations_command(context: CommandContext, entity: str | None, type: str | None) -> None:
    """List the relations, or those from and to ENTITY."""
    with context.memory() as memory:
        found = memory.graph.relations(entity, type)
    _print_edges(context, found, "No relations.")


@cli_command("search", scoped=True, shows=True, short_help="Search entities by words")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit",
    type=WholeNumber(1, 1000),
    default=20,
    show_default=True,
    metavar="N",
    help="Maximum number of results.",
)
def search_command(context: CommandContext, words: tuple[str, ...], limit: int) -> None:
    """List the entities that have all WORDS in their name, kind or observations."""
    with context.memory() as memory:
        found = memory.graph.search(" ".join(words), limit=limit)
    _print_nodes(context, found, "No entity has all these words.")


@cli_command("query", scoped=True, shows=True, short_help="List the targets of an entity's relations")
@click.argument("entity")
@click.argument("type", required=False)
def query_command(context: CommandContext, entity: str, type: str | None) -> None:
    """List the targets of the relations that begin at ENTITY, or of those of TYPE."""
    with context.memory() as memory:
        found = memory.graph.query(entity, type)
    _print_nodes(context, found, "No such relation begins at this entity.")


@cli_command("path", scoped=True, shows=True, short_help="Find a shortest path between two entities")
@click.argument("begin", metavar="ENTITY")
@click.argument("end", metavar="ENTITY")
def path_command(context: CommandContext, begin: str, end: str) -> None:
    """Show a shortest path from one ENTITY to another; relations count in both directions."""
    with context.memory() as memory:
        found = memory.graph.path(begin, end)
    if found is None:
        raise NotFoundError(
            f"no relations lead from {begin[:60]} to {end[:60]}",
            hint=f"List the neighbours: ipfsmem graph around {begin}",
        )
    _print_edges(context, found, "Both are the same entity.")


@cli_command("around", scoped=True, shows=True, short_help="List the relations around an entity")
@click.argument("entity")
@click.option(
    "--depth", type=_DEPTH, default=1, show_default=True, metavar="N", help="Maximum distance in relations."
)
@click.option(
    "--limit",
    type=WholeNumber(1, 1000),
    default=100,
    show_default=True,
    metavar="N",
    help="Maximum number of entities.",
)
def around_command(context: CommandContext, entity: str, depth: int, limit: int) -> None:
    """Show the relations among the entities near ENTITY."""
    with context.memory() as memory:
        found = memory.graph.around(entity, depth, limit=limit)
    if context.json:
        context.emit(found)
        return
    _print_edges(context, found.edges, "No entities are near it.")
    if found.more:
        click.echo(advice(f"More than {limit} entities are near it: --limit N"), err=True)


@cli_command("export", scoped=True, shows=True, short_help="Export the graph to other formats or a picture")
@click.argument("entity", required=False)
@click.option(
    "--format", type=click.Choice(FORMATS), default="graphml", show_default=True, help="Output format."
)
@click.option("--html", is_flag=True, help="A page with a picture, the same as --format html.")
@click.option(
    "--depth",
    type=_DEPTH,
    default=2,
    show_default=True,
    metavar="N",
    help="Maximum distance from ENTITY in relations.",
)
def export_command(
    context: CommandContext, entity: str | None, format: Format, html: bool, depth: int
) -> None:
    """Print the graph as GraphML, as Mermaid, or as a page with a picture; of all entities, or those near
    ENTITY.
    """
    with context.memory() as memory:
        form: Format = "html" if html else format
        text = memory.graph.drawn(form, entity=entity, depth=depth)
    if context.json:
        from ipfsmem.results import GraphDrawn

        context.emit(GraphDrawn(format=form, text=text))
    else:
        write_bytes(text.encode())


@cli_command("delete", scoped=True, short_help="Delete an entity; it can be restored")
@click.argument("entity")
def delete_command(context: CommandContext, entity: str) -> None:
    """Delete ENTITY on every device. Relations to it stay in their texts; `fact restore` brings it back."""
    with context.memory() as memory:
        nodes = [one for one in memory.graph.list() if entity in (one.key, one.name)]
        if not memory.graph.delete(entity):
            raise NotFoundError(
                f"there is no entity {entity[:60]}", hint="List the entities: ipfsmem graph list"
            )
        told = when_others_learn(memory.mode)
    if context.json:
        context.emit(nodes)
    else:
        key = nodes[0].key if nodes else entity
        click.echo(advice(f"{key} is deleted here{told}. Restore it: ipfsmem fact restore {key}"))


def _print_nodes(context: CommandContext, found: Sequence[Node], nothing: str) -> None:
    if context.json:
        context.emit(found)
        return
    table(
        ("key", "kind", "name", "observations"),
        [(one.key, one.kind, one.name, str(len(one.observations))) for one in found],
        styles=("bold", "cyan", "", "dim"),
        nothing=nothing,
    )


def _print_edges(context: CommandContext, found: Sequence[Edge], nothing: str) -> None:
    if context.json:
        context.emit(found)
        return
    table(
        ("from", "relation", "to"),
        [(one.begin, one.type, one.end) for one in found],
        styles=("bold", "cyan", "bold"),
        nothing=nothing,
    )


for _command in (
    add_command,
    relate_command,
    list_command,
    relations_command,
    search_command,
    query_command,
    path_command,
    around_command,
    export_command,
    delete_command,
):
    command.add_command(_command)
