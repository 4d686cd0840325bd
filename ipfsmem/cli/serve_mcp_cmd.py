"""`ipfsmem serve mcp`: the vault as tools, resources and prompts for programs that speak MCP."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber
from ipfsmem.errors import LockedError, PassphraseError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipfsmem.agents.background_start import Standby
    from ipfsmem.compat.programs import Program
    from ipfsmem.mcp.stdio import Pipe
    from ipfsmem.memory import Memory

#: Seconds to wait for a client's handshake before the tools are imported.
_SAYS_HELLO = 1.0


@cli_command("mcp", scoped=True)
@click.option(
    "--http", "where", metavar="HOST:PORT", help="Serve over HTTP on this machine; port 0 picks a free one."
)
@click.option(
    "--token-fd", type=WholeNumber(0), metavar="N", help="With --http: read the token from file descriptor N."
)
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option("--sync", "in_sync", is_flag=True, help="Sync the vault while the server runs.")
@click.option(
    "--tools",
    "--tool",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Tools or sets to offer, separated by commas: everyday (default), graph, sessions, facts, ..., all.",
)
@click.option("--structured", is_flag=True, help="Add structured content to answers.")
@click.option(
    "--as",
    "program",
    type=click.Choice(["initrunner", "initrunner-typed", "librefang", "infraware", "agh"]),
    help="Offer the tools of another program instead.",
)
@click.option(
    "--by-type",
    is_flag=True,
    help="For calls without a scope: remember writes the types user and feedback to the default scope, others to "
    "--scope.",
)
def command(
    context: CommandContext,
    where: str | None,
    token_fd: int | None,
    read_only: bool,
    in_sync: bool,
    names: tuple[str, ...],
    program: Program | None,
    structured: bool,
    by_type: bool,
) -> None:
    """Serve the vault over MCP until the client disconnects.

    Programs start this command themselves and use standard input and output. With --http, the server
    listens only on this machine and requires a token: IPFSMEM_MCP_TOKEN, --token-fd, or a new one,
    printed once.

    With --scope, calls without a scope use that one. While the vault is locked, each tool returns how
    to unlock it.
    """
    from ipfsmem.mcp.extra import need_extra

    address = None if where is None else _address(where)
    if token_fd is not None and where is None:
        raise UsageError("--token-fd requires --http")
    if program is not None and (names or by_type):
        raise UsageError(f"--as {program} excludes --tools and --by-type")
    need_extra()
    read_only = read_only or context.is_container
    passphrase = context.passphrase_from_fd_or_environment()
    # A signal ends it at any time, as the end of its client does.
    with contextlib.suppress(KeyboardInterrupt):
        _serve(
            context, address, passphrase, token_fd, read_only, in_sync, names, program, structured, by_type
        )


def _serve(
    context: CommandContext,
    address: tuple[str, int] | None,
    passphrase: str | None,
    token_fd: int | None,
    read_only: bool,
    in_sync: bool,
    names: tuple[str, ...],
    program: Program | None,
    structured: bool,
    by_type: bool,
) -> None:
    pipe, give_back = None, _nothing
    if address is None:
        pipe, give_back = _greet(
            context, names or None, read_only=read_only, structured=structured, prepared=program is None
        )

    from ipfsmem.holding import Holder

    def opened() -> Memory:
        from ipfsmem.memory import Memory

        home = None if context.is_container else context.home
        return Memory.load(context.vault_name, home=home, passphrase=passphrase)

    holder = Holder(opened)
    try:
        import asyncio
        import functools

        from ipfsmem.mcp.running import run
        from ipfsmem.mcp.server import MemoryServer

        served = MemoryServer(
            holder,
            scope=context.scope,
            read_only=read_only,
            names=names or None,
            program=program or "",
            by_type=by_type,
            structured=structured,
            folder=None if pipe is None else _folder(),
        )
        if pipe is not None:
            from ipfsmem.mcp.stdio import serve_stdio

            transport = functools.partial(serve_stdio, served, pipe)
        else:
            from ipfsmem.mcp.web import bind, serve_http, url_of

            assert address is not None
            fixed_token = secret_input.server_token(
                token_fd, "IPFSMEM_MCP_TOKEN", hint="Or leave it out to create one."
            )
            token = fixed_token or _new_token()
            listening = bind(*address)
            transport = functools.partial(serve_http, served, listening, token)
        try:
            holder.memory()
        except PassphraseError as error:
            click.echo(f"the vault is locked: {error}", err=True)
        except LockedError as error:  # the lock is temporary: each call reports it meanwhile
            if pipe is None:
                raise
            click.echo(str(error), err=True)
        if pipe is None:
            _say(context, url_of(listening), None if fixed_token else token)

        def stand_by() -> Standby:
            from ipfsmem.agents import background_start

            return background_start.stand_by(context.vault_name, context.home, "", passphrase)

        lasts = None if context.is_container else stand_by
        asyncio.run(run(served, transport, sync=in_sync, stand_by=lasts))
    finally:
        holder.close()
        give_back()


def _greet(
    context: CommandContext,
    names: tuple[str, ...] | None,
    *,
    read_only: bool,
    structured: bool,
    prepared: bool,
) -> tuple[Pipe, Callable[[], None]]:
    """Answer the first requests of a client before slow imports. `prepared`: the answers are known in advance. Invalid options
    are refused before any answer. Raises UsageError, KeyNameError."""
    from ipfsmem.bundle.keys import check_scope
    from ipfsmem.mcp import greetings
    from ipfsmem.mcp.stdio import Pipe, take_streams

    if context.scope:
        check_scope(context.scope)
    greeting = greetings.prepared() if prepared and _is_here(context) else None
    tools = (
        None
        if greeting is None
        else greetings.chosen(greeting, names, read_only=read_only, structured=structured)
    )
    if tools is None and names is not None:
        from ipfsmem.tools.toolset import names_of

        names_of(names)
    read, write, give_back = take_streams()
    pipe = Pipe(
        read, write, None if greeting is None or tools is None else greetings.Greetings(greeting, tools)
    )
    pipe.start()
    pipe.greeted.wait(_SAYS_HELLO)
    return pipe, give_back


def _is_here(context: CommandContext) -> bool:
    """Tell whether there is a vault to serve."""
    return context.is_container or context.folder.is_dir()


def _nothing() -> None:
    pass


def _folder() -> Any:
    """Return the working directory at the start; None if it is gone."""
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError:
        return None


def _new_token() -> str:
    import secrets

    return secrets.token_urlsafe(24)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"{text!r} is not HOST:PORT", hint="For instance --http 127.0.0.1:8788.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _say(context: CommandContext, url: str, token: str | None) -> None:
    from msgspec import UNSET

    from ipfsmem.results import ServingMemory

    if context.json:
        context.emit(ServingMemory(url=url, token=UNSET if token is None else token))
        return
    click.echo(f"serving MCP at {url}; the token is required")
    if token is not None:
        click.echo(f"token, shown once: {token}")
