"""`ipfsmem serve api`: serve the unlocked vault over HTTP, for programs on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING

import click

from ipfsmem.bundle.keys import check_scope
from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber, none_empty
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.api.served import ServedMemory


@cli_command("api")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on."
)
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    metavar="N",
    default=8789,
    show_default=True,
    help="Port; 0 picks a free one.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    callback=none_empty,
    metavar="HOST",
    help="Host name under which other machines may connect.",
)
@click.option(
    "--also", multiple=True, callback=none_empty, metavar="NAME", help="Also serve this vault; repeatable."
)
@click.option("--token-fd", type=WholeNumber(0), metavar="N", help="Read the token from file descriptor N.")
@click.option("--sync", "in_sync", is_flag=True, help="Sync the vault while the server runs.")
@click.option("--read-only", is_flag=True, help="Allow no changes.")
@click.option(
    "--as",
    "program",
    type=click.Choice(["librefang", "agh"]),
    help="Also serve the memory routes of another program.",
)
@click.option("--workspace", default="", metavar="SCOPE", help="Scope of the workspace, with --as agh.")
def command(
    context: CommandContext,
    host: str,
    port: int,
    names: tuple[str, ...],
    also: tuple[str, ...],
    token_fd: int | None,
    in_sync: bool,
    read_only: bool,
    program: str | None,
    workspace: str,
) -> None:
    """Serve the unlocked vault to programs on this machine over HTTP, until Ctrl-C.

    Programs need a token: create one with `ipfsmem token new`, for some scopes or for reading only, or
    set IPFSMEM_API_TOKEN or --token-fd. Otherwise the server prints a new token with full access once.

    `ipfsmem serve peer` is a different server: it stores encrypted blocks for your other devices.
    """
    from ipfsmem.cli.api_server import refuse_unnamed, served_memories

    if workspace and program != "agh":
        raise UsageError("--workspace requires --as agh")
    if workspace:
        check_scope(workspace)
    if in_sync and read_only:
        raise UsageError("--read-only and --sync exclude each other")
    token = secret_input.server_token(token_fd, "IPFSMEM_API_TOKEN", hint="Or leave it out to create one.")
    refuse_unnamed(host, names)
    with served_memories(context, also) as served:
        for one in served:
            one.holder.memory()
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends this command normally
            asyncio.run(
                _serve(
                    context, served, host, port, names, token, read_only, in_sync, program or "", workspace
                )
            )


async def _serve(
    context: CommandContext,
    served: list[ServedMemory],
    host: str,
    port: int,
    names: tuple[str, ...],
    fixed_token: str | None,
    read_only: bool,
    in_sync: bool,
    program: str,
    workspace: str,
) -> None:
    from msgspec import UNSET
    from msgspec.json import encode

    from ipfsmem.api.calls import Caller
    from ipfsmem.api.who import AccessControl
    from ipfsmem.cli.api_server import run, say_what_is_exposed
    from ipfsmem.results import ServingMemory

    doors = AccessControl({one.vault_name: one for one in served}, names=names)
    new_token = None if fixed_token or any(one.tokens for one in served) else secrets.token_urlsafe(24)
    if token := fixed_token or new_token:
        doors.accept_token(token, Caller("admin"))

    def say(url: str) -> None:
        if context.json:
            click.echo(encode(ServingMemory(url=url, token=new_token or UNSET)))
        else:
            click.echo(f"serving the unlocked vault at {url}/v1; {'the' if token else 'a'} token is required")
            if new_token:
                click.echo(f"token, shown once: {new_token}")
        if names:
            say_what_is_exposed(host, served)

    await run(
        served,
        doors,
        say,
        host=host,
        port=port,
        public=bool(names),
        read_only=read_only,
        sync=in_sync,
        program=program,
        workspace=workspace,
    )
