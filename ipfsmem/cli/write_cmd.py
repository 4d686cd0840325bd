"""`ipfsmem write KEY`: make or change one memory; what is not given stays as it is."""

from __future__ import annotations

from collections.abc import Mapping

import click

from ipfsmem.cli.context import CommandContext, cli_command, decode, not_empty, pairs, read_text
from ipfsmem.cli.printing import is_terminal, size
from ipfsmem.errors import UsageError


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
@click.option("--empty", is_flag=True, help="Yes, make the body empty.")
@click.option("--name", help="Its name for people.")
@click.option("--description", help="One line for lists and the index.")
@click.option(
    "--type",
    "kind",
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
@click.option("--if-match", metavar="SHA256", help="Refuse unless the text now has this SHA-256.")
@click.option("--new", "must_be_new", is_flag=True, help="Refuse when there is such a memory.")
def command(
    context: CommandContext,
    key: str,
    source: str | None,
    body: str | None,
    file: str | None,
    whole: bool | None,
    empty: bool,
    name: str | None,
    description: str | None,
    kind: str | None,
    tags: tuple[str, ...],
    fields: tuple[str, ...],
    if_match: str | None,
    must_be_new: bool,
) -> None:
    """Write the memory KEY and print its SHA-256.

    The text comes from --body, --file or, with a dash, from standard input. Without any of them only the header
    changes. A text that begins with a header, as `ipfsmem read` prints it, is taken as the whole file. An empty one is
    refused. A write replaces what is shown now; --if-match refuses to overwrite what you have not seen.
    """
    if source not in (None, "-"):
        raise UsageError(
            f"unexpected {source!r}", hint="Give the text with --body or --file, or - for standard input."
        )
    given = [body is not None, file is not None, source == "-"]
    if sum(given) > 1:
        raise UsageError("give the text once: --body, --file or -")
    if if_match is not None and must_be_new:
        raise UsageError("--if-match and --new exclude each other")
    match = "" if must_be_new else if_match
    header = any(value is not None for value in (name, description, kind)) or bool(tags) or bool(fields)
    if not any(given) and not header:
        raise UsageError("nothing to write", hint="Give --body TEXT, --file PATH or - for standard input.")
    if whole and (header or not any(given)):
        raise UsageError("--whole takes the whole file from --body, --file or -, and no header options")
    text = _text(body, "-" if source else file)
    if text is not None and not text.strip() and not empty:
        raise UsageError(
            "the text is empty, so nothing was written",
            hint="When the memory shall have an empty text: --empty. To take it away: ipfsmem forget.",
        )
    extra = pairs(fields, "--set")
    _check_fields(extra, {"name": name, "description": description, "type": kind, "tags": tags or None})
    given_file = _whole(text, whole) if text is not None else None
    if given_file is not None and header:
        raise UsageError(
            "the text begins with a header of its own, so it takes no header options",
            hint="Leave them out, or say that it is the body alone: --body-only.",
        )
    with context.memory() as memory:
        if given_file is not None:
            written = memory.write_text(key, given_file, if_match=match)
        else:
            written = memory.write(
                key,
                None if text is None else decode(text, "the text"),
                name=name,
                description=description,
                type=kind,
                tags=tags or None,
                fields=extra,
                if_match=match,
            )
    if context.json:
        from ipfsmem.results import Written

        context.emit(Written.of(written))
        return
    if is_terminal():  # a person needs no hash, a program nothing else
        click.echo(f"{key} is written: {size(len(written.data))}, on this disk")
    else:
        click.echo(written.sha256)
    context.print_where_scope_went()


def _check_fields(extra: Mapping[str, str], options: Mapping[str, object]) -> None:
    """Refuse what `--set` says when an option says it too, or when it is nothing that the field can be (format 1.2).

    A whole file is taken as it is: who wrote it may know of more than we do.
    """
    from datetime import datetime

    from ipfsmem.bundle.index import SESSION
    from ipfsmem.bundle.memory_file import DECAYS, TYPES

    for field, value in extra.items():
        if options.get(field) is not None:
            raise UsageError(f"--{'tag' if field == 'tags' else field} and --set {field}= say it twice")
        known = {"type": (*TYPES, SESSION), "decay": DECAYS}.get(field)
        if not value:
            continue
        if known is not None and value not in known:
            raise UsageError(f"{value!r} is no {field}", hint=f"It is one of {', '.join(known)}.")
        if field in ("created", "updated", "expires"):
            try:
                datetime.fromisoformat(value)
            except ValueError:
                raise UsageError(
                    f"{field} is a date, and {value!r} is none",
                    hint="For instance 2026-11-22 or 2026-11-22T17:30:00Z.",
                ) from None


def _whole(text: bytes, whole: bool | None) -> bytes | None:
    """The text when it is a whole file: said so, or seen by its header."""
    from ipfsmem.bundle.memory_file import has_header

    return text if whole or (whole is None and has_header(text)) else None


def _text(body: str | None, path: str | None) -> bytes | None:
    if body is not None:
        return body.encode("utf-8", "surrogateescape")
    return None if path is None else read_text(path, "the text")
