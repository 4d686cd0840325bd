"""`ipfsmem write KEY`: make or change one memory; what is not given stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import is_terminal, size
from ipfsmem.cli.values import pairs, read_text
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.memories.readings import Reading
    from ipfsmem.memories.write_request import WriteRequest
    from ipfsmem.memory import Memory


@cli_command("write", scoped=True)
@click.argument("key")
@click.argument("source", required=False, metavar="[-]")
@click.option("--body", metavar="TEXT", help="The text.")
@click.option("--file", callback=not_empty, metavar="PATH", help="A file with the text; - is standard input.")
@click.option(
    "--whole/--body-only",
    default=None,
    help="The input is the whole file, header and all, or the body alone. Without either it is looked at.",
)
@click.option("--empty", "empty_ok", is_flag=True, help="Yes, make the body empty.")
@click.option("--name", help="Its name for people.")
@click.option("--description", help="One line for lists and the index.")
@click.option(
    "--type",
    type=click.Choice(["user", "feedback", "project", "reference"]),
    help="What it is about.",
)
@click.option("--tag", "tags", multiple=True, help="A tag; may be given several times.")
@click.option(
    "--set",
    "fields",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Any header field; an empty value removes it.",
)
@click.option(
    "--by-type",
    is_flag=True,
    help="The type says where it goes: user and feedback to everybody's, project and reference to --scope.",
)
@click.option("--if-match", metavar="SHA256", help="Refuse unless the text now has this SHA-256.")
@click.option("--new", "must_be_new", is_flag=True, help="Refuse when there is such a memory.")
def command(
    context: CommandContext,
    key: str,
    source: str | None,
    body: str | None,
    file: str | None,
    fields: tuple[str, ...],
    by_type: bool,
    **request: Any,
) -> None:
    """Write the memory KEY and print its SHA-256.

    The text comes from --body, --file or, with a dash, from standard input. Without any of them only the header
    changes. A text that begins with a header, as `ipfsmem read` prints it, is taken as the whole file. An empty one is
    refused. A write replaces what is shown now; --if-match refuses to overwrite what you have not seen.
    """
    import msgspec

    from ipfsmem.memories.write_request import WriteRequest, scope_of_type

    _check_places(body, file, source)
    if by_type and request["type"] is None:
        raise UsageError("--by-type goes by --type, which is not given")
    there = scope_of_type(request["type"], context.scope or "") if by_type else None
    asked = WriteRequest(fields=pairs(fields, "--set"), **request)
    # Before a person types a text at the terminal, not after it.
    asked.check_without_text(has_text=any(place is not None for place in (body, file, source)))
    asked = msgspec.structs.replace(asked, text=_text(body, file or source))
    asked.check()
    with context.memory() as memory:
        written = _write(memory if there is None else memory.scope(there), key, asked)
    if context.json:
        from ipfsmem.results import Written

        context.emit(Written.of(written))
        return
    if is_terminal():  # a person needs no hash, a program nothing else
        click.echo(f"{key} is written: {size(len(written.data))}, on this disk")
    else:
        click.echo(written.sha256)
    context.print_where_scope_went()


def _check_places(body: str | None, file: str | None, source: str | None) -> None:
    """Raises UsageError unless the text is given in at most one place."""
    if source not in (None, "-"):
        raise UsageError(
            f"unexpected {source!r}", hint="Give the text with --body or --file, or - for standard input."
        )
    if sum(place is not None for place in (body, file, source)) > 1:
        raise UsageError("give the text once: --body, --file or -")


def _text(body: str | None, path: str | None) -> bytes | None:
    """The text of --body, or else of a file or standard input (`-`); None when there is none."""
    if body is not None:
        return body.encode("utf-8", "surrogateescape")
    return None if path is None else read_text(path, "the text")


def _write(memory: Memory, key: str, asked: WriteRequest) -> Reading:
    if asked.file is not None:
        return memory.write_text(key, asked.file, if_match=asked.expected)
    return memory.write(
        key,
        asked.body,
        name=asked.name,
        description=asked.description,
        type=asked.type,
        tags=asked.tags or None,
        fields=asked.fields,
        if_match=asked.expected,
    )
