"""`ipfsmem serve peer`: this machine as a provider for your other devices, over a folder of encrypted blocks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from pathlib import Path

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber, not_empty
from ipfsmem.errors import NotFoundError, UsageError

#: Folder of the Pinning Service API's requests in the served folder.
PSA_FOLDER = "psa"


@cli_command("peer", secrets=False)
@click.argument("where", metavar="FOLDER", callback=not_empty)
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on."
)
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    metavar="N",
    default=8787,
    show_default=True,
    help="Port; 0 picks a free one.",
)
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="Host name under which other machines may connect."
)
@click.option(
    "--token-fd",
    type=WholeNumber(0),
    metavar="N",
    help="Read the token that allows writes from file descriptor N.",
)
@click.option("--new-token", is_flag=True, help="Create a token and print it once.")
@click.option("--create", is_flag=True, help="Create the folder if it does not exist.")
def command(
    context: CommandContext,
    where: str,
    host: str,
    port: int,
    names: tuple[str, ...],
    token_fd: int | None,
    new_token: bool,
    create: bool,
) -> None:
    """Serve FOLDER to your other devices as the provider `peer:http://HOST:PORT`, until Ctrl-C.

    The server is a trustless gateway and, for IPFS tools with the token, a pinning service under /psa.
    FOLDER contains encrypted blocks, pins and signed names, but no keys.

    Writes require a token; reads do not, because addresses cannot be guessed. Pass the token with
    --token-fd, IPFSMEM_SERVE_TOKEN or --new-token, never as an argument, which every program on this
    machine can read.
    """
    folder = Path(where)
    if new_token and token_fd is not None:
        raise UsageError("--new-token and --token-fd exclude each other")
    token = (
        secrets.token_urlsafe(24)
        if new_token
        else secret_input.server_token(token_fd, "IPFSMEM_SERVE_TOKEN", hint="Or create one: --new-token.")
    )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    if not create and not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}", hint="Create it with --create.")
    from ipfsmem.cli.api_server import refuse_unnamed

    refuse_unnamed(host, names)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends this command normally
        asyncio.run(_serve(context, folder, host, port, names, token or "", new_token, create))


async def _serve(
    context: CommandContext,
    folder: Path,
    host: str,
    port: int,
    names: tuple[str, ...],
    token: str,
    new_token: bool,
    create: bool,
) -> None:
    from msgspec import UNSET
    from msgspec.json import encode

    from ipfsmem.ending_signals import ending_signals
    from ipfsmem.http.psa_requests import PinRequests
    from ipfsmem.http.running import running
    from ipfsmem.http.serving import PSA_PATH, app
    from ipfsmem.loopback import LOCAL_HOSTS
    from ipfsmem.provider.contract import open_provider
    from ipfsmem.results import Serving

    store = open_provider(f"directory:{folder}", {"create": create})
    if token and not os.access(folder, os.W_OK):
        click.echo(f"this user cannot write to {folder}: devices can only read", err=True)
    requests = PinRequests(folder / PSA_FOLDER)
    server = app(store, token=token, hosts=LOCAL_HOSTS | frozenset(names), requests=requests)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C comes as KeyboardInterrupt
        for number in ending_signals():
            loop.add_signal_handler(number, ended.set)
    async with running(server, host, port, public=bool(names)) as url:
        pins = f"{url}{PSA_PATH}"
        if context.json:
            click.echo(
                encode(
                    Serving(
                        url=url,
                        writes=bool(token),
                        psa=pins if token else None,
                        token=token if new_token else UNSET,
                    )
                )
            )
        else:
            click.echo(f"serving {folder} at {url}, {'writes with the token' if token else 'read only'}")
            if token:
                click.echo(f"pinning service at {pins}, with the same token")
            if new_token:
                click.echo(f"token, shown once: {token}")
        await ended.wait()
    with contextlib.suppress(NotImplementedError):
        for number in ending_signals():
            # `timeout` sends its signal twice; the second would meet a half-closed loop, and be printed as an error.
            if loop.remove_signal_handler(number):
                signal.signal(number, signal.SIG_IGN)
