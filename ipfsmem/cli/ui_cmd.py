"""`ipfsmem ui`: the memory as a page in the browser, served by this machine to this machine."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber, none_empty
from ipfsmem.errors import NotFoundError, PassphraseError

if TYPE_CHECKING:
    from ipfsmem.api.page import Files
    from ipfsmem.api.served import ServedMemory
    from ipfsmem.api.who import Doors

_BUILD: Final = "In the folder web/ of a clone: npm ci && npm run page. What pip installs has it."


@cli_command("ui")
@click.option(
    "--port", type=WholeNumber(0, 65535), metavar="N", default=8790, show_default=True, help="0: a free one."
)
@click.option("--also", multiple=True, callback=none_empty, metavar="NAMESPACE", help="Show this memory too.")
@click.option("--no-open", is_flag=True, help="Print the link, and open no browser.")
@click.option("--read-only", is_flag=True, help="Show, and change nothing.")
def command(
    context: CommandContext, port: int, also: tuple[str, ...], no_open: bool, read_only: bool
) -> None:
    """Open the memory as a page in your browser, until Ctrl-C.

    The page comes from this machine and loads nothing from elsewhere. Its link holds a code that opens it once, within two minutes; on a
    terminal, Enter prints a new one. What other programs change appears within a second.
    """
    from ipfsmem.api.page import Files
    from ipfsmem.cli.api_server import served_memories

    files = Files.built()
    if files is None:
        raise NotFoundError("the page is not built here", hint=_BUILD)
    with served_memories(context, also) as served:
        try:
            served[0].holder.memory()
        except PassphraseError as error:
            click.echo(f"the memory is locked: {error}", err=True)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how this command ends
            asyncio.run(_serve(context, served, files, port, read_only, not no_open))


async def _serve(
    context: CommandContext,
    served: list[ServedMemory],
    files: Files,
    port: int,
    read_only: bool,
    browser: bool,
) -> None:
    from ipfsmem.api.who import Doors
    from ipfsmem.cli.api_server import run

    doors = Doors({one.namespace: one for one in served})

    def say(url: str) -> None:
        link = _link(doors, url)
        if context.json:
            from msgspec.json import encode

            from ipfsmem.results import ServingPage

            click.echo(encode(ServingPage(url=url, link=link)))
        else:
            click.echo(f"the memory as a page, opened once by this link: {link}")
        if browser:
            import webbrowser

            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(link)

    await run(
        served,
        doors,
        say,
        port=port,
        read_only=read_only,
        files=files,
        beside=lambda url: _new_links(doors, url),
    )


def _link(doors: Doors, url: str) -> str:
    return f"{url}/#code={doors.new_code()}"


@contextlib.asynccontextmanager
async def _new_links(doors: Doors, url: str) -> AsyncIterator[None]:
    """While the block runs: a person at a terminal who presses Enter is given a new link."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        if sys.stdin.readline():
            click.echo(_link(doors, url))
        else:
            loop.remove_reader(sys.stdin)  # the terminal is gone

    with contextlib.suppress(NotImplementedError):  # Windows: a new link takes a new run
        loop.add_reader(sys.stdin, pressed)
    click.echo("Enter: a new link. Ctrl-C ends it.")
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_reader(sys.stdin)
