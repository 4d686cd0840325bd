"""`ipfsmem folder attach DIR`: link a folder of plain files to this vault."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, cast

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.consent import confirm
from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, style
from ipfsmem.config import expanded
from ipfsmem.errors import IncompleteError, UsageError
from ipfsmem.operations.folders import attach
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.files.working_copies import FolderFacts, FolderPreview
    from ipfsmem.memory import Memory

#: Maximum file names in a preview.
_NAMED = 10


def _attach(context: CommandContext, memory: Memory, arguments: Arguments) -> FolderFacts | FolderPreview:
    arguments["existed"] = expanded(arguments["folder"]).exists()
    choices = {name: arguments[name] for name in ("scope", "take_over")}
    preview: FolderPreview = memory.folders.preview(arguments["folder"], **choices)
    arguments["preview"] = preview
    if arguments["dry_run"]:
        return preview
    if preview.taken and not preview.known and not arguments["yes"]:
        _ask(preview)
    folder: FolderFacts = call(attach, context, memory, arguments)
    arguments["left"] = untouched = memory.folders.left_alone(folder.path)
    notices = [
        text for text in memory.folders.notices(folder.path) if f"{folder.path}: {text}" not in untouched
    ]
    if preview.unread and not preview.known:
        notices = [text for text in notices if not text.startswith("subfolders are not read")]
        notices.append(_unread_line(preview))
    arguments["notices"] = notices
    return folder


def _show(context: CommandContext, result: FolderFacts | FolderPreview, arguments: Arguments) -> None:
    if arguments["dry_run"]:
        click.echo("\n".join(_preview_lines(arguments["preview"])))
    else:
        _show_made(cast("FolderFacts", result), arguments["notices"], arguments["existed"])


def _end(context: CommandContext, result: FolderFacts | FolderPreview, arguments: Arguments) -> None:
    if arguments["dry_run"]:
        arguments["preview"].raise_if_incomplete()
    elif arguments["left"]:
        raise left_alone_error(arguments["left"])


command = operation_command(
    "attach",
    attach,
    _show,
    run=_attach,
    end=_end,
    options=(
        click.Option(("--dry-run",), is_flag=True, help="Show the changes without making them."),
        click.Option(("--yes",), is_flag=True, help="Do not ask, even in a git repository."),
    ),
    notes="If DIR has files, the changes are shown first and, on a terminal, must be confirmed.",
)


def left_alone_error(reasons: list[str]) -> IncompleteError:
    """Return the error about skipped files of a new linked folder."""
    return IncompleteError(
        "; ".join(reasons),
        hint="The other files are imported, and the folder is linked. Fix these files: the next command imports them.",
    )


def _show_made(folder: FolderFacts, notices: list[str], stood: bool) -> None:
    whose = f" of scope {clean(folder.scope)}" if folder.scope else ""
    was = "is" if stood else "was created and is"
    click.echo(f"{clean(folder.path)} {was} now a linked folder{whose}: {count(folder.files, 'file')}.")
    for text in (*folder.remarks, *notices):
        click.echo(style("note: ", fg="yellow") + advice(text))


def _ask(preview: FolderPreview) -> None:
    """Ask a person to confirm that the files of a folder become memories. Raises UsageError without a terminal for a folder in
    a git repository."""
    if secret_input.can_ask():
        click.echo("\n".join(_preview_lines(preview)), err=True)
        confirm("Link this folder?", "not attached", default=not preview.repository)
    elif preview.repository:
        typed = shlex.quote(preview.path) + (
            f" --scope {shlex.quote(preview.scope)}" if preview.scope else ""
        )
        raise UsageError(
            f"{_in_repository(preview)}, and {preview.written} written among its files",
            hint=f"Preview it: ipfsmem folder attach {typed} --dry-run. Link it: ipfsmem folder attach {typed} --yes",
        )


def ask_before_making(memory_dir: str | None) -> None:
    """Ask a person to confirm that the files of a folder become memories of a new vault. Raises UsageError without a terminal
    for a folder in a git repository, and for a folder that cannot be linked."""
    if memory_dir is None:
        return
    from ipfsmem.files.attaching import examine_place
    from ipfsmem.files.working_copies import preview_of

    preview = preview_of(examine_place(memory_dir, begun=False))
    if not preview.taken:
        return
    if secret_input.can_ask():
        click.echo("\n".join(_preview_lines(preview)[:-1]), err=True)
        confirm("Link this folder?", "nothing was created", default=not preview.repository)
    elif preview.repository:
        raise UsageError(
            f"{_in_repository(preview)}, so nothing was changed",
            hint=f"Create the vault without --memory-dir. Then preview the folder: ipfsmem folder attach {shlex.quote(preview.path)} --dry-run",
        )


def _in_repository(preview: FolderPreview) -> str:
    files = count(len(preview.taken), "file")
    return f"{preview.path} is in the git repository {preview.repository}: {files} would become memories"


def _preview_lines(preview: FolderPreview) -> list[str]:
    whose = f" in scope {clean(preview.scope)}" if preview.scope else ""
    lines = [f"{clean(preview.path)}:"]
    if preview.repository:
        lines.append(f"  in the git repository {clean(preview.repository)}")
    lines.append(f"  files that become memories{whose}: {len(preview.taken)}")
    lines += [f"    {clean(name)}" for name in preview.taken[:_NAMED]]
    if len(preview.taken) > _NAMED:
        lines.append(f"    and {len(preview.taken) - _NAMED} more")
    if preview.left_alone:
        lines.append(f"  files that are skipped: {len(preview.left_alone)}")
        lines += [f"    {clean(text)}" for text in preview.left_alone]
    if preview.unread:
        lines.append(f"  {_unread_line(preview)}")
    lines.append(f"  memories written here as files: {preview.written}")
    return lines


def _unread_line(preview: FolderPreview) -> str:
    more = len(preview.unread) - _NAMED
    names = ", ".join(clean(name) for name in preview.unread[:_NAMED]) + (
        f" and {more} more" if more > 0 else ""
    )
    return f"not read, as only .md files of the folder itself are: {names}"
