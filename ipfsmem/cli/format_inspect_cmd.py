"""`ipfsmem format inspect PATH`: the content of a file of the formats, with and without a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, clean_lines, style
from ipfsmem.cli.wallets import owner, root_options
from ipfsmem.config import expanded

if TYPE_CHECKING:
    from ipfsmem.vault.inspection import InspectionKeys


@cli_command("inspect")
@click.argument("path", callback=not_empty)
@click.option(
    "--context",
    "sealed_for",
    metavar="CTX",
    help="Context that a sealed object was sealed for: a memory's key, a segment, a prefix.",
)
@root_options
def command(context: CommandContext, path: str, sealed_for: str | None, **owner_options: Any) -> None:
    """Show the contents of PATH: a CAR, keyring.json, commit, sealed object, name record, blob, or a
    provider's folder.

    Without a key, it shows the public parts. --vault opens the rest with this device's keys; a wallet
    or the recovery phrase, with the keys that the key ring has for it.
    """
    from ipfsmem.vault.inspection import inspect

    report = inspect(expanded(path), _keys(context, sealed_for, owner_options))
    if context.json:
        context.emit_open(report)
    else:
        _show(report, 0)


def _keys(context: CommandContext, sealed_for: str | None, owner_options: dict[str, Any]) -> InspectionKeys:
    from ipfsmem.vault.inspection import InspectionKeys, keys_of

    contexts: tuple[str, ...] = (sealed_for,) if sealed_for is not None else ()
    if owner_options["wallet"].named or owner_options["words"] or owner_options["words_fd"] is not None:
        from ipfsmem.vault.owner import Unlock

        root = owner(
            owner_options["wallet"],
            owner_options["words"],
            owner_options["words_fd"],
            context.passphrase_from_fd_or_environment(),
        )
        keys = root.root(twice=False) if isinstance(root, Unlock) else root
        return InspectionKeys((keys.box_secret,), contexts=contexts)
    if not context.vault_named:
        return InspectionKeys(contexts=contexts)
    with context.memory() as memory:
        return keys_of(memory.replica, contexts)


def _show(value: Any, depth: int) -> None:
    """Print facts, one per line; lists of mappings as lines of their values."""
    pad = "  " * depth
    width = max((len(name) for name, item in value.items() if not isinstance(item, (dict, list))), default=0)
    for name, item in value.items():
        word = name.replace("_", " ")
        if isinstance(item, dict):
            click.echo(f"{pad}{style(word, bold=True)}")
            _show(item, depth + 1)
        elif isinstance(item, list):
            click.echo(f"{pad}{style(word, bold=True)} ({len(item)})")
            for one in item:
                click.echo(f"{pad}  {_line(one)}")
        elif isinstance(item, str) and "\n" in item:
            click.echo(f"{pad}{style(word, bold=True)}")
            click.echo("".join(f"{pad}  {line}\n" for line in clean_lines(item).splitlines()), nl=False)
        elif item is not None:
            click.echo(f"{pad}{style(word.ljust(width), dim=True)}  {_line(item)}")


def _line(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "  ".join(
            f"{name}={_line(item)}" for name, item in value.items() if item not in (None, "", [])
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_line, value)) + "]"
    return clean(str(value))
