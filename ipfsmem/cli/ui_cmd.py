"""`ipfsmem ui`: the vault as a page in the browser, served by this machine to this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber, none_empty, not_empty
from ipfsmem.cli.printing import clean
from ipfsmem.errors import PassphraseError, StorageError, UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.api.page import PageFiles
    from ipfsmem.api.served import ServedMemory
    from ipfsmem.api.who import AccessControl


@cli_command("ui")
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    metavar="N",
    default=8790,
    show_default=True,
    help="Port; 0 picks a free one.",
)
@click.option(
    "--also", multiple=True, callback=none_empty, metavar="NAME", help="Also show this vault; repeatable."
)
@click.option("--no-open", is_flag=True, help="Print the link without opening a browser.")
@click.option("--no-sync", is_flag=True, help="Sync only on request.")
@click.option("--read-only", is_flag=True, help="Allow no changes.")
@click.option(
    "--static",
    "folder",
    callback=not_empty,
    metavar="FOLDER",
    help="Write a page that needs no server to a new folder, for any static host.",
)
@click.option(
    "--place",
    "places",
    multiple=True,
    callback=none_empty,
    metavar="SPEC",
    help="With --static: provider that the page reads: peer:, webdav:, gateway: or routing:, and a URL.",
)
def command(
    context: CommandContext,
    port: int,
    also: tuple[str, ...],
    no_open: bool,
    no_sync: bool,
    read_only: bool,
    folder: str | None,
    places: tuple[str, ...],
) -> None:
    """Open the vault as a page in your browser, until Ctrl-C. With --static, write a page that opens vaults
    in the browser itself, with a wallet, the recovery phrase or a passkey.

    The page is served by this machine and loads nothing from elsewhere. Its link contains a code that
    works once, within two minutes; on a terminal, Enter prints a new one.

    Changes by other programs appear within a second. An encrypted vault is synced while the page is
    open (--no-sync: only on request); a public one is published only on request.
    """
    if places and folder is None:
        raise UsageError("--place requires --static")
    if folder is not None:
        _write_static(context, folder, places)
        return
    from ipfsmem.api.page import PageFiles
    from ipfsmem.cli.api_server import served_memories
    from ipfsmem.files.built_page import not_built_error

    files = PageFiles.built()
    if files is None:
        raise not_built_error()
    with served_memories(context, also) as served:
        try:
            served[0].holder.memory()
        except PassphraseError as error:
            click.echo(f"the vault is locked: {error}", err=True)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends this command normally
            asyncio.run(_serve(context, served, files, port, read_only, not no_open, not no_sync))


def _write_static(context: CommandContext, folder: str, places: tuple[str, ...]) -> None:
    from ipfsmem.config import expanded
    from ipfsmem.files.static_page import PUBLIC_PLACES, write_static_page

    path = expanded(folder)
    written = write_static_page(path, places or PUBLIC_PLACES)
    if context.json:
        from ipfsmem.results import FileWritten

        context.emit(FileWritten(path=str(path), files=written))
    else:
        click.echo(f"{clean(str(path))}: {count(written, 'file')}; serve them over https or from localhost")


async def _serve(
    context: CommandContext,
    served: list[ServedMemory],
    files: PageFiles,
    port: int,
    read_only: bool,
    browser: bool,
    in_sync: bool,
) -> None:
    from ipfsmem.api.who import AccessControl
    from ipfsmem.cli.api_server import run
    from ipfsmem.config import vault_folder

    doors = AccessControl({one.vault_name: one for one in served})

    def say(url: str) -> None:
        link = _link(doors, url)
        if context.json:
            from msgspec.json import encode

            from ipfsmem.results import ServingPage

            click.echo(encode(ServingPage(url=url, link=link)))
        else:
            click.echo(f"open the vault with this link, which works once: {link}")
        if browser:
            from ipfsmem.api.who import CODE_LIFE

            with contextlib.suppress(StorageError):  # the link is printed
                way_in = ways.enter_context(link_in_a_file(folder, link))
                asyncio.get_running_loop().call_later(CODE_LIFE, _remove, way_in)
                open_in_browser(way_in)

    folder = vault_folder(context.home, served[0].vault_name)
    with contextlib.ExitStack() as ways:
        await run(
            served,
            doors,
            say,
            port=port,
            read_only=read_only,
            files=files,
            sync=in_sync,
            beside=lambda url: _new_links(doors, url),
        )


@contextlib.contextmanager
def link_in_a_file(folder: Path, link: str) -> Iterator[Path]:
    """Yield a page in `folder`, readable by this user only, that leads to `link`; deleted at the end. A browser's arguments are
    readable by every user of the machine, and the link's code must not be. Raises StorageError."""
    from html import escape

    from ipfsmem.device.atomic_files import write_atomic

    path = folder / f"open-{os.getpid()}.html"
    to = escape(link)
    page = f"""<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={to}">
<title>ipfsmem</title><p><a href="{to}">Open the vault</a></p>
"""
    write_atomic(path, page.encode(), durable=False)
    try:
        yield path
    finally:
        _remove(path)


def open_in_browser(path: Path) -> None:
    """Open a file in the user's browser, if there is one."""
    import webbrowser

    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(path.absolute().as_uri())


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _link(doors: AccessControl, url: str) -> str:
    return f"{url}/#code={doors.new_code()}"


@contextlib.asynccontextmanager
async def _new_links(doors: AccessControl, url: str) -> AsyncIterator[None]:
    """Print a new link whenever a person at a terminal presses Enter, during the block."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        if sys.stdin.readline():
            click.echo(_link(doors, url))
        else:
            loop.remove_reader(sys.stdin)  # the terminal is gone

    with contextlib.suppress(NotImplementedError):  # on Windows, a new link needs a new run
        loop.add_reader(sys.stdin, pressed)
    click.echo("Press Enter for a new link, Ctrl-C to stop.")
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_reader(sys.stdin)
