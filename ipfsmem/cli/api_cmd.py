"""`ipfsmem api`: the unlocked memory over HTTP, for programs on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import WholeNumber

if TYPE_CHECKING:
    from ipfsmem.holding import Holder


@cli_command("api")
@click.option(
    "--port", type=WholeNumber(0, 65535), metavar="N", default=8789, show_default=True, help="0: a free one."
)
@click.option("--token-fd", type=WholeNumber(0), metavar="N", help="The token, from file descriptor N.")
@click.option("--read-only", is_flag=True, help="Answer only what changes nothing.")
def command(context: CommandContext, port: int, token_fd: int | None, read_only: bool) -> None:
    """Serve the unlocked memory to programs on this machine over HTTP, until Ctrl-C.

    It listens on 127.0.0.1 only and answers who sends the token: IPFSMEM_API_TOKEN, --token-fd, or one made now and printed
    once. Whoever has it reads every memory in the clear, and changes them unless --read-only. It is another thing than `ipfsmem
    serve`, which gives encrypted blocks to your other devices.
    """
    given = secret_input.server_token(token_fd, "IPFSMEM_API_TOKEN", hint="Or have one made: leave it out.")
    passphrase = context.passphrase_from_fd_or_environment()
    from ipfsmem.holding import Holder
    from ipfsmem.memory import Memory

    holder = Holder(lambda: Memory.load(context.namespace, home=context.home, passphrase=passphrase))
    try:
        holder.memory()
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how this command ends
            asyncio.run(_serve(context, holder, port, given, read_only))
    finally:
        holder.close()


async def _serve(
    context: CommandContext, holder: Holder, port: int, given: str | None, read_only: bool
) -> None:
    from msgspec import UNSET
    from msgspec.json import encode

    from ipfsmem.api.serving import Api
    from ipfsmem.ending_signals import ending_signals
    from ipfsmem.http.running import running
    from ipfsmem.results import ServingMemory

    token = given or secrets.token_urlsafe(24)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C comes as KeyboardInterrupt
        for number in ending_signals():
            loop.add_signal_handler(number, ended.set)
    async with running(Api(holder, token, read_only=read_only).app(), port=port) as url:
        if context.json:
            click.echo(encode(ServingMemory(url=url, token=UNSET if given else token)))
        else:
            click.echo(f"serving the unlocked memory at {url}/v1, for who sends the token")
            if not given:
                click.echo(f"the token, shown this once: {token}")
        await ended.wait()
