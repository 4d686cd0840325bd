"""`ipfsmem write KEY`: make or change one memory; what is not given stays as it is."""

from __future__ import annotations

import click

from ipfsmem.cli.here import Here, decode, ours, pairs, read_text
from ipfsmem.cli.printing import is_terminal, size
from ipfsmem.errors import UsageError


@ours("write")
@click.argument("key")
@click.argument("source", required=False, metavar="[-]")
@click.option("--body", metavar="TEXT", help="The text.")
@click.option("--file", metavar="PATH", help="A file with the text; - is standard input.")
@click.option("--whole", is_flag=True, help="The input is the whole file, header and all.")
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
    here: Here,
    key: str,
    source: str | None,
    body: str | None,
    file: str | None,
    whole: bool,
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
    changes. A write replaces what is shown now; --if-match refuses to overwrite what you have not seen.
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
    extra = pairs(fields, "--set")
    with here.memory() as memory:
        if whole:
            assert text is not None
            written = memory.write_text(key, text, if_match=match)
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
    if here.json:
        here.emit({"key": key, "sha256": written.sha256, "bytes": len(written.data), "token": written.token})
        return
    click.echo(written.sha256)
    if is_terminal():
        click.echo(f"{key}: {size(len(written.data))}, on this disk", err=True)


def _text(body: str | None, path: str | None) -> bytes | None:
    if body is not None:
        return body.encode("utf-8", "surrogateescape")
    return None if path is None else read_text(path, "the text")
