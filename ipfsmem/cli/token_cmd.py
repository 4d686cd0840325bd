"""`ipfsmem token`: access tokens of this vault's HTTP API, with their rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands, none_empty, not_empty
from ipfsmem.cli.printing import clean, moment, table
from ipfsmem.errors import UsageError

if TYPE_CHECKING:
    from ipfsmem.operation import Right


@click.group("token", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Access tokens of the HTTP API of this vault (`ipfsmem serve api`, `ipfsmem ui`).

    A token is shown once; only its hash is stored. Running servers reject a revoked token within a
    second.
    """


@cli_command("new", short_help="Create a token and print it once")
@click.option("--name", default="", help="Name of the token, for the list.")
@click.option(
    "--right",
    type=click.Choice(["read", "write", "admin"]),
    default="read",
    show_default=True,
    help="read; write: also write, forget and sync; admin: also import, approve and forget scopes.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    callback=none_empty,
    metavar="NAME",
    help="Limit the token to this scope; repeatable.",
)
@click.option("--everybody", is_flag=True, help="With --scope: also the default scope.")
def new_command(
    context: CommandContext, name: str, right: Right, scopes: tuple[str, ...], everybody: bool
) -> None:
    """Create a token for this vault, for all scopes unless some are named.

    A token for a scope reads only that scope. If the scope includes others, or for `context`, which
    includes the default scope, the token must be for those as well.
    """
    if everybody and not scopes:
        raise UsageError("--everybody requires --scope: a token without a scope covers all")
    from ipfsmem.api.tokens import make_token

    chosen = tuple(dict.fromkeys([*scopes, *([""] if everybody else [])])) if scopes else None
    with context.memory() as memory:
        result = make_token(memory.replica, context.folder, name=name, right=right, scopes=chosen)
        memory.operations.add("tokens new", result.token.id)
    if context.json:
        from msgspec.json import encode

        click.echo(encode(result))
        return
    click.echo(result.secret)
    click.echo(
        f"Shown once. Whoever has it can {_may(right)} {_scopes_text(chosen)}. Revoke it: ipfsmem token revoke {result.token.id}",
        err=True,
    )


@cli_command("list", short_help="List tokens, without their secrets")
def list_command(context: CommandContext) -> None:
    """List the tokens of this vault: id, right, scopes, time of creation and name."""
    from ipfsmem.api.tokens import tokens_of

    with context.memory() as memory:
        tokens = tokens_of(memory.replica, context.folder)
    if context.json:
        context.emit(tokens)
        return
    table(
        ("id", "right", "scopes", "made", "name"),
        [(one.id, one.right, _scopes_text(one.scopes), moment(one.made), clean(one.name)) for one in tokens],
        styles=("bold", "cyan", "", "dim", ""),
        nothing=advice("No tokens. Create one: ipfsmem token new"),
    )


@cli_command("revoke", secrets=False, short_help="Revoke a token")
@click.argument("token", metavar="ID", callback=not_empty)
def revoke_command(context: CommandContext, token: str) -> None:
    """Revoke a token by its id, without a passphrase. Running servers reject it within a second."""
    from ipfsmem.api.tokens import TokenRevoked, revoke_token
    from ipfsmem.device.replica import require_config

    require_config(context.folder)
    revoke_token(context.folder, token)
    if context.json:
        context.emit(TokenRevoked(id=token))
    else:
        click.echo(f"The token {clean(token)} is revoked.")


def _may(right: Right) -> str:
    return {"read": "read", "write": "read and change", "admin": "read, change and import"}[right]


def _scopes_text(scopes: tuple[str, ...] | None) -> str:
    if scopes is None:
        return "everything"
    return ", ".join(scope or "the default scope" for scope in scopes) or "nothing"


for made in (new_command, list_command, revoke_command):
    command.add_command(made)
