"""Shared code of `ipfsmem serve api` and `ipfsmem ui`: the open memories, and a server that runs until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from ipfsmem.api.page import PageFiles
    from ipfsmem.api.served import ServedMemory
    from ipfsmem.api.who import AccessControl
    from ipfsmem.memory import Memory


@contextlib.contextmanager
def served_memories(context: CommandContext, also: tuple[str, ...] = ()) -> Iterator[list[ServedMemory]]:
    """Yield the memory of a command, and further ones by name, each possibly locked. Raises NotFoundError, UsageError."""
    from ipfsmem import config
    from ipfsmem.api.served import ServedMemory
    from ipfsmem.device.replica import require_config
    from ipfsmem.holding import Holder

    passphrase = context.passphrase_from_fd_or_environment()
    names = [context.vault_name, *also]
    if len(set(names)) < len(names):
        raise UsageError("each vault can be served once")
    if also and passphrase is not None:
        raise UsageError(
            "--passphrase-fd and IPFSMEM_PASSPHRASE are for one vault, and several are served",
            hint="Unlock each vault first: ipfsmem unlock --vault NAME. Then unset IPFSMEM_PASSPHRASE.",
        )

    def opened(name: str) -> Memory:
        from ipfsmem.memory import Memory

        return Memory.load(name, home=context.home, passphrase=passphrase)

    served = []
    for name in names:
        folder = config.vault_folder(context.home, name)
        require_config(folder)
        served.append(ServedMemory(name, Holder(functools.partial(opened, name)), folder))
    try:
        yield served
    finally:
        for one in served:
            one.close()


def refuse_unnamed(host: str, names: tuple[str, ...]) -> None:
    """Raise ConfigError for an address that other machines can reach, without --name."""
    from ipfsmem.loopback import is_loopback

    if not names and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines, which requires --name",
            hint=f"Allow them with the host name that they use: --host {host} --name HOST. Or stay on 127.0.0.1.",
        )


async def run(
    served: list[ServedMemory],
    doors: AccessControl,
    say: Callable[[str], None],
    *,
    host: str = "127.0.0.1",
    port: int,
    public: bool = False,
    read_only: bool = False,
    files: PageFiles | None = None,
    sync: bool = False,
    program: str = "",
    workspace: str = "",
    beside: Callable[[str], contextlib.AbstractAsyncContextManager[None]] | None = None,
) -> None:
    """Serve until a signal ends it, and keep the memories in `sync`. `say` gets the URL; `beside` runs meanwhile; `program` and
    `workspace` as for `Api`."""
    from ipfsmem.api.serving import Api
    from ipfsmem.ending_signals import ending_signals
    from ipfsmem.http.running import running

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C comes as KeyboardInterrupt
        for number in ending_signals():
            loop.add_signal_handler(number, ended.set)
    app = Api(
        served,
        doors,
        read_only=read_only,
        files=files,
        hint_for=_hint_for(),
        sync=sync,
        program=program,
        workspace=workspace,
    ).app()
    async with running(app, host, port, public=public) as url:
        say(url)
        async with beside(url) if beside is not None else contextlib.nullcontext():
            await ended.wait()


def _hint_for() -> Callable[[str, str, str], str]:
    """Return a function that completes the commands of a hint with the memory and the scope of a request."""
    root = click.get_current_context().find_root()
    home = root.obj.get("home") if isinstance(root.obj, Mapping) else None

    def hint_for(hint: str, vault_name: str, scope: str) -> str:
        from ipfsmem.cli.hint_commands import with_call_options

        options = {"vault_name": vault_name, "home": home, "scope": scope or None}
        return with_call_options(hint, options, root.command)

    return hint_for


def say_what_is_exposed(host: str, served: list[ServedMemory]) -> None:
    """Warn a person who gives other machines access."""
    names = ", ".join(one.vault_name for one in served)
    click.echo(
        f"Other machines can reach this server at {host}: whoever has a token can read and change {names}. It has no TLS, so anyone "
        "who sees the traffic sees texts and tokens: put a TLS proxy in front of it.",
        err=True,
    )
