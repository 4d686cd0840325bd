"""`ipfsmem export`: all scopes as plain files, or one scope as a blob."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from ipfsmem.cli.app import output_closed_error, output_is_closed
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.new_file import is_stdout, new_file, refuse_existing
from ipfsmem.cli.options import not_empty, overwrite_option
from ipfsmem.cli.printing import clean, is_terminal, size, write_bytes
from ipfsmem.config import expanded
from ipfsmem.device.connection import DatabaseDamagedError
from ipfsmem.errors import IncompleteError, StorageError, UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.exchange.program_forms import Form as Program
    from ipfsmem.files.exporting import LeftOut
    from ipfsmem.memory import Memory
    from ipfsmem.operations.bundles.content import Exported
    from ipfsmem.results import FileWritten


_PROGRAMS: Final = ("initrunner", "initrunner-typed", "infraware")


@cli_command("export", scoped=True, shows=True)
@click.option(
    "--out",
    callback=not_empty,
    metavar="FILE",
    help="JSON file of one scope (default: standard output).",
)
@click.option(
    "--dir", "folder", callback=not_empty, metavar="DIR", help="New folder for plain Markdown files."
)
@click.option("--zip", "zipped", callback=not_empty, metavar="FILE", help="Zip of the same files.")
@click.option(
    "--plain-car", callback=not_empty, metavar="FILE", help="CAR of the same files, for IPFS programs."
)
@click.option(
    "--car",
    callback=not_empty,
    metavar="FILE",
    help="CAR of a published version, encrypted.",
)
@click.option(
    "--html",
    callback=not_empty,
    metavar="FILE",
    help="Page with the last published version, encrypted, that opens it in any browser.",
)
@click.option("--to", "form", type=click.Choice(["okf"]), help="With --dir: another format, okf 0.2.")
@click.option(
    "--as",
    "program",
    type=click.Choice(["initrunner", "initrunner-typed", "infraware"]),
    help="Another program's JSON format, for one scope.",
)
@click.option("--root", metavar="CID", help="Version for --car (default: the version published last).")
@overwrite_option
@click.option(
    "--partial", is_flag=True, help="Exit with 0 although texts were omitted; they are still named."
)
def command(
    context: CommandContext,
    out: str | None,
    folder: str | None,
    zipped: str | None,
    plain_car: str | None,
    car: str | None,
    html: str | None,
    form: str | None,
    program: Program | None,
    root: str | None,
    overwrite: bool,
    partial: bool,
) -> None:
    """Export the vault as plain files: --dir to a folder, --zip to a zip, --plain-car to a CAR. These
    contain all scopes, each in a folder of its own; with --scope only that one ('' is the default
    scope). `ipfsmem import` accepts each format.

    --out FILE, or no option, writes one scope as a JSON file (memory/0.1) without conflict copies: the
    default scope unless --scope is given. --to okf --dir DIR writes one scope in the Open Knowledge
    Format, --as PROGRAM your memories of one scope in that program's import format.

    All these files are unencrypted. --car writes a published version, encrypted, for any IPFS program.
    --html writes the last published version as an encrypted page, which any browser opens with the
    recovery phrase or a wallet, without a network.

    Omitted texts are named, and the exit code is then 7 unless --partial is given. From a damaged
    database, every export but --car writes all readable texts.
    """
    if sum(way is not None for way in (out, folder, zipped, plain_car, car, html)) > 1:
        raise UsageError("give one of --out, --dir, --zip, --plain-car, --car and --html")
    if folder == "-":
        raise UsageError(
            "a folder cannot go to standard output", hint="Or redirect it: ipfsmem export > FILE."
        )
    if root is not None and car is None:
        raise UsageError("--root requires --car")
    if program is not None and any(way is not None for way in (folder, zipped, plain_car, car, html, form)):
        raise UsageError(f"--as {program} writes one JSON file", hint="Name the file: --out FILE.")
    if form is not None and folder is None:
        raise UsageError(
            f"{form} requires a folder", hint="Name a new one: ipfsmem export --to okf --dir DIR"
        )
    if (html is not None or car is not None) and context.scope is not None:
        raise UsageError(
            f"a published version holds all scopes, so --{'car' if html is None else 'html'} accepts no --scope (or IPFSMEM_SCOPE)",
            hint="One scope as plain files: --dir, --zip or --plain-car.",
        )
    target = out or zipped or plain_car or car or html
    refuse_inside(context, target)
    if target is not None and not overwrite:
        refuse_existing(target)
    if html is not None:
        _export_html(context, expanded(html), partial, overwrite)
        return
    if car is not None:
        _export_car(context, expanded(car), root, overwrite)
        return
    tree = folder or zipped or plain_car
    if out is None and tree is None and is_terminal() and not context.json:
        raise UsageError(
            "no target: give --out FILE, --dir DIR or --zip FILE",
            hint="Or redirect it: ipfsmem export > FILE.",
        )
    if out is None and tree is None and output_is_closed():
        raise output_closed_error("ipfsmem export")
    form = program or form or ("folder" if folder else "zip" if zipped else "car" if plain_car else "blob")
    refuse_inside(context, tree or out)
    opened = False
    try:
        with context.memory() as memory:
            opened = True
            left_out = _export(context, memory, tree or out, form, overwrite)
            if context.scope and not context.json and (note := _missing_scopes(memory, context.scope, form)):
                click.echo(f"note: {note}", err=True)
    except StorageError as error:
        if opened and not isinstance(error, DatabaseDamagedError):
            raise  # the target could not be written
        left_out = _export_as_it_lies(context, error, tree or out, form, overwrite)
    report_left_out(left_out, partial)


def _export_as_it_lies(
    context: CommandContext, error: StorageError, to: str | None, form: str, overwrite: bool
) -> LeftOut:
    """Export a memory that cannot be opened normally, without writing to its folder: it is damaged, or its disk is full or
    read-only. Raises `error` if that fails, too."""
    with contextlib.ExitStack() as opened:
        try:
            memory = opened.enter_context(context.damaged_memory())
        except StorageError as still:
            raise still if isinstance(error, DatabaseDamagedError) else error from None
        goes = "the readable part" if isinstance(error, DatabaseDamagedError) else "the imported data so far"
        click.echo(f"{clean(str(error))}: exporting {goes}", err=True)
        return _export(context, memory, to, form, overwrite)


def _export(context: CommandContext, memory: Memory, to: str | None, form: str, overwrite: bool) -> LeftOut:
    """Write a memory, or the chosen scope, and print the result. Return the omitted data."""
    from msgspec import UNSET

    from ipfsmem.results import FileWritten

    if form not in ("blob", *_PROGRAMS) and to is not None:
        path = expanded(to)
        tree_export = _write_tree(memory, path, form, overwrite)
        report = FileWritten(path=str(path), files=tree_export.files, root=tree_export.root or UNSET)
        _show_report(context, report, f"{count(tree_export.files, 'file')}")
        return tree_export.left_out
    # The export first: a failed one is in the list of operations.
    if form in _PROGRAMS:
        blob = memory.bundles.export_for(cast("Program", form))
    else:
        blob = memory.bundles.export(partial=True)
    left_out = memory.bundles.left_out()
    if to is not None:
        path = expanded(to)
        with new_file(str(path), mode=0o600, overwrite=overwrite) as file:
            file.write(blob)
        _show_report(context, FileWritten(path=str(path), bytes=len(blob)), size(len(blob)))
    else:
        write_bytes(blob)
    return left_out


def _missing_scopes(memory: Memory, scope: str, form: str) -> str:
    """Return a note on the scopes that are read with this one by other commands, but that its export does not include."""
    scopes = memory._view().opened.scopes
    if (target := scopes.target(scope)) != scope:
        return f"The scope {scope} redirects to {target}: this export does not include later writes, which are in {target}."
    merged = [] if form in _PROGRAMS else [one for one in scopes.stack(scope) if one != scope]
    if not merged:
        return ""
    are = "are" if len(merged) > 1 else "is"
    return f"This export does not include {', '.join(merged)}, which {are} redirected to {scope}."


def refuse_inside(context: CommandContext, target: str | None) -> None:
    """Raise UsageError for a path in the folder of a vault: an export must not replace its files, or move away with a damaged
    vault."""
    if target is None or target == "-":
        return
    if expanded(target).resolve().is_relative_to(context.folder.resolve()):
        raise UsageError(
            f"{target} is in the vault's own folder", hint="Choose a folder outside the memory folder."
        )


def _write_tree(memory: Memory, path: Path, form: str, overwrite: bool) -> Exported:

    if form == "okf":
        return memory.bundles.export_okf(path, partial=True)
    if form == "folder":
        return memory.bundles.export_folder(path, partial=True)
    with new_file(str(path), mode=0o600, overwrite=overwrite) as out:
        return (memory.bundles.export_zip if form == "zip" else memory.bundles.export_car)(out, partial=True)


def report_left_out(left_out: LeftOut, partial: bool, *, ours: bool = True) -> None:
    """Print the omitted data, for a memory of `ours` with a hint. Raises IncompleteError unless `partial`."""
    if left_out and not partial:
        raise IncompleteError(
            f"the export is written but incomplete; omitted: {left_out}",
            hint=left_out.hint if ours else None,
        )
    if left_out:
        click.echo(f"omitted: {clean(str(left_out))}", err=True)


def _show_report(context: CommandContext, report: FileWritten, contents: str) -> None:

    if context.json:
        context.emit(report)
    else:
        click.echo(f"{clean(report.path)}: {contents}, unencrypted", err=is_stdout(report.path))


def _export_car(context: CommandContext, path: Path, root: str | None, overwrite: bool) -> None:

    refuse_inside(context, str(path))
    with context.memory() as memory, new_file(str(path), mode=0o600, overwrite=overwrite) as out:
        report = memory.bundles.export_published(out, root)
    _show_version(context, path, report.root)


def _export_html(context: CommandContext, path: Path, partial: bool, overwrite: bool) -> None:
    from ipfsmem.files.rescue_page import read_shell

    refuse_inside(context, str(path))
    read_shell()  # before any prompt: nothing can be written without it
    with context.memory() as memory:
        lacks = memory.bundles.unpublished()
        with new_file(str(path), mode=0o600, overwrite=overwrite) as out:
            report = memory.bundles.export_html(out, partial=True)
    _show_version(context, path, report.root)
    if lacks and not partial:
        raise IncompleteError(
            f"the export is written but incomplete; omitted: {clean(str(lacks))}", hint=lacks.hint
        )
    if lacks:
        click.echo(f"omitted: {clean(str(lacks))}", err=True)


def _show_version(context: CommandContext, path: Path, root: str) -> None:

    written = 0 if is_stdout(str(path)) else path.stat().st_size
    if context.json:
        from ipfsmem.results import FileWritten

        context.emit(FileWritten(path=str(path), root=root, bytes=written))
    else:
        long = f", {size(written)}" if written else ""
        click.echo(f"{clean(str(path))}: version {root}{long}", err=is_stdout(str(path)))
