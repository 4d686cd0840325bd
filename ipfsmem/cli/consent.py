"""Questions to a person on a terminal before a command deletes, connects, links or publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.printing import clean, style
from ipfsmem.errors import DeclinedError

if TYPE_CHECKING:
    from msgspec import Struct

    from ipfsmem.memory import Memory

T = TypeVar("T", bound="Struct")


def confirm(question: str, declined: str, *, default: bool = False) -> None:
    """Ask a yes-or-no question. Raises DeclinedError with the message `declined` if the answer is no."""
    if not click.confirm(question, default=default, err=True):
        raise DeclinedError(f"{declined}; nothing was changed")


def warned_of(specs: Iterable[str]) -> tuple[str, ...]:
    """Print the risks of storing a vault at these providers, and return their specs with remotes of git as addresses. Raises
    ConfigError for an unusable spec."""
    return tuple(_warned(spec)[0] for spec in tuple(specs))


def _warned(spec: str) -> tuple[str, str]:
    """Print the risks of one provider; return its spec, and the risks."""
    from ipfsmem.provider.contract import lasting_spec, spec_warning

    if text := spec_warning(spec):
        click.echo(style("warning: ", fg="yellow") + clean(text), err=True)
    return lasting_spec(spec) if spec.startswith("git:") else spec, text


def warn_of(arguments: dict[str, Any], name: str) -> None:
    """Do `warned_of` for the provider in an argument, for `with_warning`."""
    arguments[name], arguments["warned"] = _warned(arguments[name])


def with_warning(result: T, arguments: Mapping[str, Any]) -> T:
    """Return an answer with the warning that was printed: the name of a remote is an address by now, which tells less."""
    from msgspec.structs import replace

    return replace(result, warning=arguments["warned"]) if arguments.get("warned") else result


#: Add --yes-public, for operations with `allow`.
public_option = click.option(
    "--yes-public",
    is_flag=True,
    help="Mode ipfs: confirm that everyone can read published data, permanently.",
)


def agrees_to_publish(memory: Memory, yes: bool) -> bool:
    """Tell whether the user consents to publish a plain memory: by flag, or by an answer on a terminal."""
    if yes or not memory.mode.public or memory.replica.config.public or not secret_input.can_ask():
        return yes
    click.echo(
        f"The vault {memory.vault} is in mode ipfs. Everything in it will be published unencrypted: every memory,\n"
        "its name, and the whole timeline. Anyone can read it, copies are permanent, and publishing cannot be undone.",
        err=True,
    )
    return bool(click.confirm("Publish it to everyone?", default=False, err=True))
