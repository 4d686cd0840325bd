"""`ipfsmem edit KEY`: one memory in the user's text editor."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import size
from ipfsmem.errors import IpfsmemError, NotFoundError, UsageError

if TYPE_CHECKING:
    from ipfsmem.memories.memory_records import MemoryRecord

#: On most systems, a plain text here is on no disk.
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
#: Editors with a window, whose command ends at once unless told to wait: the options for that, any of which is enough.
_WAITING = {
    **dict.fromkeys(
        (
            "antigravity", "atom", "bbedit", "clion", "code", "code-insiders", "code-oss", "codium", "cursor", "gedit", "goland",
            "idea", "kiro", "lapce", "mate", "phpstorm", "positron", "pulsar", "pycharm", "rider", "rubymine", "subl", "trae",
            "vscodium", "webstorm", "windsurf", "xed", "zed", "zeditor",
        ),
        ("--wait", "-w"),
    ),
    "gvim": ("-f", "--nofork"),
    "kate": ("--block", "-b"),
    "mvim": ("-f", "--nofork"),
    "open": ("-W", "--wait-apps"),
}  # fmt: skip


@cli_command("edit", scoped=True)
@click.argument("key")
def command(context: CommandContext, key: str) -> None:
    """Edit the memory KEY, header included, in your text editor.

    The editor is $VISUAL, else $EDITOR. It opens a temporary file, which is deleted afterwards. If the
    memory changed meanwhile, nothing is written: your text is kept in a file that the error names.
    """
    with context.memory() as memory:
        shown = memory.read(key, counts=False)
        elsewhere = memory.scopes.having(key) if shown is None and context.scope is None else []
    if shown is None:
        raise NotFoundError(
            f"there is no memory {key}",
            hint=(
                f"It is in the scope {elsewhere[0]}: ipfsmem edit {key} --scope {elsewhere[0]}"
                if elsewhere
                else "List the memories: ipfsmem list."
            ),
        )
    editor = _editor()
    with _file(shown) as path:
        text = _edited(editor, path)
        if text == shown.data:
            _say(context, shown, "is unchanged")
            return
        if not text.strip():
            raise UsageError(
                "the text is empty, so nothing was written", hint=f"Forget it with: ipfsmem forget {key}"
            )
        with context.memory() as memory:
            written = memory.write_text(key, text, if_match=shown.sha256)
    _say(context, written, f"is written: {size(len(written.data))}, on this disk")
    context.print_where_scope_went()


def _editor() -> str:
    """Return the command of the editor. Raises UsageError if none is set and there is no terminal."""
    from ipfsmem.cli.secret_input import can_ask

    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if chosen:
        return _waiting(chosen)
    if not can_ask():
        raise UsageError(
            "no editor is set, and there is no terminal",
            hint="Set EDITOR, or write the text with: ipfsmem write KEY --file PATH.",
        )
    return "notepad" if sys.platform == "win32" else "vi"


def _waiting(editor: str) -> str:
    """Return the command of an editor with its option to wait until the file is closed."""
    try:
        program, *words = shlex.split(editor, posix=sys.platform != "win32")
    except ValueError:
        return editor  # refused when it is run
    name = Path(program.strip('"')).name.lower().removesuffix(".cmd").removesuffix(".exe")
    waits = _WAITING.get(name, ())
    return editor if not waits or {*waits} & {*words} else f"{editor} {waits[0]}"


@contextlib.contextmanager
def _file(shown: MemoryRecord) -> Iterator[Path]:
    """Yield a file with a memory's text that only this user can read. It is deleted, unless an edited text was not written."""
    import shutil
    import tempfile

    place = _IN_MEMORY if _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="ipfsmem-", dir=place))
    path = folder / f"{shown.key}.md"
    try:
        path.write_bytes(shown.data)
        yield path
    except BaseException as error:
        if not _was_edited(path, shown):
            shutil.rmtree(folder, ignore_errors=True)
        elif isinstance(error, IpfsmemError):
            state = "kept in memory, until the next restart" if place else "kept"
            error.hint = f"Your text is {state}. Read {shown.key}, then write your text: ipfsmem write {shown.key} --whole --file {shlex.quote(str(path))}"
        else:
            click.echo(f"your text is kept in {path}{', until the next restart' if place else ''}", err=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _was_edited(path: Path, shown: MemoryRecord) -> bool:
    try:
        return path.read_bytes().strip() not in (b"", shown.data.strip())
    except OSError:
        return False


def _edited(editor: str, path: Path) -> bytes:
    """Return the text of the file after the editor ended. Raises UsageError if the editor failed, or deleted the file."""
    try:
        click.edit(filename=str(path), editor=editor)
        return path.read_bytes()
    except (click.ClickException, OSError) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(
            f"the editor {editor} failed, so nothing was written: {text}",
            hint="Set EDITOR to another editor.",
        ) from None


def _say(context: CommandContext, reading: MemoryRecord, text: str) -> None:
    if context.json:
        context.emit(reading)
    else:
        click.echo(f"{reading.key} {text}")
