"""`ipfsmem help`: all commands, the wallet options, the exit codes, or the help of one command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import click

from ipfsmem.cli.app import (
    BROKEN_PIPE,
    FIRST,
    HIDDEN,
    INSTEAD,
    INTERRUPTED,
    MORE,
    UNEXPECTED,
    group,
    write_groups,
)
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import refuse_unknown_command
from ipfsmem.errors import IpfsmemError


@cli_command("help", secrets=False)
@click.argument("topic", nargs=-1, metavar="[TOPIC]")
def command(context: CommandContext, topic: tuple[str, ...]) -> None:
    """Show help about TOPIC: a command, or all, wallets or exit-codes."""
    name = " ".join(topic)
    text = _TOPICS[name]() if name in _TOPICS else _of_command(topic)
    if context.json:
        from ipfsmem.results import HelpText

        context.emit(HelpText(topic=name, text=text))
    else:
        click.echo(text)


def _of_command(path: tuple[str, ...]) -> str:
    """Return the help of a command; of the program without one. Raises click's error for an unknown name."""
    current: click.Command = group
    ctx = click.Context(group, info_name="ipfsmem")
    for at, name in enumerate(path):
        names = [*current.list_commands(ctx)] if isinstance(current, click.Group) else []
        others = INSTEAD if not at else {}
        refuse_unknown_command(ctx, [*path[at:]], [*names, *([] if at else (*HIDDEN, *_TOPICS))], others)
        below = current.get_command(ctx, name) if isinstance(current, click.Group) else None
        if below is None:
            raise click.UsageError(f"{' '.join(path[:at])} has no command {name!r}", ctx)
        ctx = click.Context(below, info_name=name, parent=ctx)
        current = below
    return current.get_help(ctx)


def _all() -> str:
    formatter = _formatter()
    write_groups(formatter, {**FIRST, **MORE})
    formatter.write("\nHelp of a command: `ipfsmem help COMMAND`. Wallet options: `ipfsmem help wallets`.\n")
    formatter.write("Every command accepts --json, --vault, --home and --verbose.")
    return formatter.getvalue().lstrip("\n")


def _wallets() -> str:
    from ipfsmem.cli.wallets import shown_options

    formatter = _formatter()
    formatter.write(
        "Commands for the owner of a vault accept a wallet, and most also the recovery phrase: init, recover,\n"
        "sync, format inspect, and the commands of member and key. Secrets are never arguments: type them, or\n"
        "pass them in the environment or a file descriptor.\n"
    )
    with formatter.section("Options"):
        formatter.write_dl(shown_options())
    with formatter.section("Examples"):
        for example in (
            "ipfsmem init --wallet wallet.json",
            "ipfsmem init --mnemonic",
            "ipfsmem member admit --words",
        ):
            formatter.write(f"  {example}\n")
    return formatter.getvalue().rstrip("\n")


def _exit_codes() -> str:
    formatter = _formatter()
    rows = [("0", "Done")]
    rows += [
        (str(one.exit_code), (one.__doc__ or "").strip())
        for one in sorted(_kinds(IpfsmemError), key=lambda kind: kind.exit_code)
    ]
    rows += [
        (str(UNEXPECTED), "A bug in ipfsmem"),
        (str(INTERRUPTED), "Interrupted by Ctrl-C (143: SIGTERM, 129: the terminal was closed)"),
        (str(BROKEN_PIPE), "The reader of standard output closed it"),
    ]
    formatter.write_dl(rows)
    return formatter.getvalue().rstrip("\n")


def _kinds(kind: type[IpfsmemError]) -> Iterator[type[IpfsmemError]]:
    """Yield every kind of error in ipfsmem/errors.py."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == IpfsmemError.__module__:
            yield from _kinds(below)


def _formatter() -> click.HelpFormatter:
    return click.Context(group).make_formatter()


_TOPICS: Final[dict[str, Callable[[], str]]] = {
    "all": _all,
    "wallets": _wallets,
    "exit-codes": _exit_codes,
}
