"""`ipfsmem mcp`: the memory as tools, resources and prompts for programs that speak MCP."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import secrets
from typing import TYPE_CHECKING

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber
from ipfsmem.errors import PassphraseError, UsageError

if TYPE_CHECKING:
    from ipfsmem.compat.programs import Program
    from ipfsmem.memory import Memory


@cli_command("mcp", scoped=True)
@click.option(
    "--http", "where", metavar="HOST:PORT", help="Over HTTP on this machine instead; port 0 takes a free one."
)
@click.option(
    "--token-fd", type=WholeNumber(0), metavar="N", help="With --http: the token, from file descriptor N."
)
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option("--sync", "in_sync", is_flag=True, help="Keep the memory in sync while it runs.")
@click.option(
    "--tool",
    "names",
    multiple=True,
    metavar="NAME",
    help="Offer this tool, or a set: everyday, peers, graph, life. Several times: several.",
)
@click.option(
    "--as",
    "program",
    type=click.Choice(["initrunner", "initrunner-typed"]),
    help="Offer another program's tools instead: its names, arguments, defaults and texts.",
)
@click.option(
    "--by-type",
    is_flag=True,
    help="What remember writes without a scope goes to everybody's when it is of type user or feedback, else to --scope.",
)
def command(
    context: CommandContext,
    where: str | None,
    token_fd: int | None,
    read_only: bool,
    in_sync: bool,
    names: tuple[str, ...],
    program: Program | None,
    by_type: bool,
) -> None:
    """Serve the memory to a program that speaks MCP, until it closes its end.

    Programs start this themselves and talk to it over standard input and output. With --http it listens on this machine only, and
    answers who sends the token: IPFSMEM_MCP_TOKEN, --token-fd, or one made now and printed once. With --scope calls that name no
    scope mean that one. A locked memory is no error: each tool says what to do until somebody unlocks it.
    """
    from ipfsmem.mcp.extra import need_extra

    address = None if where is None else _address(where)
    if token_fd is not None and where is None:
        raise UsageError("--token-fd gives the token of --http, which was not asked for")
    if program is not None and (names or by_type):
        raise UsageError(f"--as {program} offers the tools of {program}: leave --tool and --by-type out")
    need_extra()
    from ipfsmem.holding import Holder
    from ipfsmem.mcp.running import run
    from ipfsmem.mcp.server import MemoryServer

    passphrase = context.passphrase_from_fd_or_environment()

    def opened() -> Memory:
        from ipfsmem.memory import Memory

        return Memory.load(context.namespace, home=context.home, passphrase=passphrase)

    holder = Holder(opened)
    try:
        served = MemoryServer(
            holder,
            scope=context.scope,
            read_only=read_only,
            names=names or None,
            program=program or "",
            by_type=by_type,
        )
        if address is None:
            from ipfsmem.mcp.stdio import serve_stdio

            transport = functools.partial(serve_stdio, served)
        else:
            from ipfsmem.mcp.web import bind, serve_http, url_of

            given = secret_input.server_token(
                token_fd, "IPFSMEM_MCP_TOKEN", hint="Or have one made: leave it out."
            )
            token = given or secrets.token_urlsafe(24)
            listening = bind(*address)
            transport = functools.partial(serve_http, served, listening, token)
        try:
            holder.memory()
        except PassphraseError as error:
            click.echo(f"the memory is locked: {error}", err=True)
        if address is not None:
            _say(context, url_of(listening), None if given else token)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(run(served, transport, sync=in_sync))
    finally:
        holder.close()


def _address(where: str) -> tuple[str, int]:
    host, colon, port = where.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"{where!r} is no HOST:PORT", hint="For instance --http 127.0.0.1:8788.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _say(context: CommandContext, url: str, token: str | None) -> None:
    from msgspec import UNSET

    from ipfsmem.results import ServingMemory

    if context.json:
        context.emit(ServingMemory(url=url, token=UNSET if token is None else token))
        return
    click.echo(f"serving MCP at {url}, for who sends the token")
    if token is not None:
        click.echo(f"the token, shown this once: {token}")
