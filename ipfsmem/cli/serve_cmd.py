"""`ipfsmem serve`: this machine as a provider for your other devices, over a folder of sealed blocks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ipfsmem.cli.here import Here, ours
from ipfsmem.errors import NotFoundError, UsageError

#: Shortest token that is not guessed by trying.
MIN_TOKEN = 16


@ours("serve", secrets=False)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Listen there.")
@click.option("--port", type=click.IntRange(0, 65535), default=8787, show_default=True, help="0: a free one.")
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="A name others ask by; lets other machines in."
)
@click.option("--token", envvar="IPFSMEM_SERVE_TOKEN", metavar="TEXT", help="Who sends this may write.")
@click.option("--create", is_flag=True, help="Make the folder when it is not there.")
def command(
    here: Here, folder: Path, host: str, port: int, names: tuple[str, ...], token: str | None, create: bool
) -> None:
    """Serve FOLDER to your other devices as the provider `peer:http://HOST:PORT`, until Ctrl-C.

    To everybody else it is a trustless gateway. What is served are sealed blocks, pins and signed names; no key is
    here. Reading needs no token, for CIDs cannot be guessed; without a token nobody may write.
    """
    if token is not None and len(token) < MIN_TOKEN:
        raise UsageError(
            f"a token has at least {MIN_TOKEN} characters", hint="Make one with: openssl rand -hex 16"
        )
    if not create and not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}", hint="Make it with --create.")
    try:
        asyncio.run(_serve(here, folder, host, port, names, token or "", create))
    except KeyboardInterrupt:
        # Ctrl-C is how this command ends.
        return


async def _serve(
    here: Here, folder: Path, host: str, port: int, names: tuple[str, ...], token: str, create: bool
) -> None:
    from msgspec.json import encode

    from ipfsmem.http.blocks import app
    from ipfsmem.http.guard import LOCAL_HOSTS
    from ipfsmem.http.running import running
    from ipfsmem.sync.provider import open_provider

    store = open_provider(f"directory:{folder}", {"create": create})
    server = app(store, token=token, hosts=LOCAL_HOSTS | frozenset(names))
    async with running(server, host, port, public=bool(names)) as url:
        if here.json:
            click.echo(encode({"url": url, "writes": bool(token)}))
        else:
            click.echo(f"serving {folder} at {url}, {'writes with the token' if token else 'read only'}")
        await asyncio.Event().wait()
