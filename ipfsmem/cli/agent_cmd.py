"""`ipfsmem agent`: agent keys, strings that open a vault in a container."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.member_commands import exit_as
from ipfsmem.cli.options import Subcommands, not_empty, provider_option
from ipfsmem.cli.printing import clean, moment, style, table
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.cli.wallets import as_owner, root_options
from ipfsmem.cli.words_prompt import require_output
from ipfsmem.errors import ConfigError, IncompleteError, StorageError
from ipfsmem.operations.agent_keys import AgentList, NewAgentKey, list_, new, renew, revoke

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ipfsmem.memory import Memory
    from ipfsmem.sync.report import SyncReport

#: Maximum bytes of a file with credentials.
_MOST = 64 * 1024


@click.group("agent", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Agent keys: strings that open this vault in containers, for reading.

    A container needs only the string, in the variable IPFSMEM_KEY. Whoever has it can read the whole
    vault until the key is revoked.
    """


def _opened(context: CommandContext, arguments: Arguments) -> AbstractContextManager[Memory]:
    return as_owner(context, arguments)


def _end(context: CommandContext, report: SyncReport, arguments: Arguments) -> None:
    exit_as(report)


def _read_credentials(context: CommandContext, arguments: Arguments) -> None:
    require_output("the key")
    path = arguments.pop("provider_credentials")
    if path is not None:
        arguments["credentials"] = credentials_in(Path(path))


def credentials_in(path: Path) -> dict[str, dict[str, str]]:
    """Return the credentials in a file, by kind of provider: tables as in the settings file. No error repeats its content.

    Raises StorageError, ConfigError.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST + 1)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from None
    form = ConfigError(
        f"{path} is not a file of credentials",
        hint='Write them as in the settings file: a line [providers.bucket], then lines such as aws_access_key_id = "..."',
    )
    try:
        content = tomllib.loads(data.decode()) if len(data) <= _MOST else {}
    except (ValueError, RecursionError):
        raise form from None
    tables = content.get("providers")
    if content.keys() != {"providers"} or not isinstance(tables, dict) or not tables:
        raise form
    for kind in tables.values():
        if not isinstance(kind, dict) or not all(isinstance(text, str) for text in kind.values()):
            raise form
    return tables


def _make(context: CommandContext, memory: Memory, arguments: Arguments) -> NewAgentKey:
    key: NewAgentKey = call(new, context, memory, arguments)
    return key


def _show_new(context: CommandContext, key: NewAgentKey, arguments: Arguments) -> None:
    click.echo(f"IPFSMEM_KEY={key.key}")
    click.echo(
        f"Shown once. Whoever has it can read {clean(key.opens)}, until {moment(key.expires)}.\n"
        + advice(f"Revoke it: ipfsmem agent revoke {key.name}"),
        err=True,
    )
    for text in key.warnings:
        click.echo(style("note: ", fg="yellow") + clean(text), err=True)
    if key.sync.notices:
        print_report(key.sync, err=True)  # a redirected output is the key only


def _end_new(context: CommandContext, key: NewAgentKey, arguments: Arguments) -> None:
    if key.problem:
        raise IncompleteError(
            f"the agent key is created, and may not open the vault yet: {key.problem}",
            hint=f"Publish it: ipfsmem sync. Or revoke it: ipfsmem agent revoke {key.name}",
        )
    exit_as(key.sync)


_shared = (provider_option("Provider", of_vault=True), root_options)

new_command = operation_command(
    "new",
    new,
    _show_new,
    ask=_read_credentials,
    opens=_opened,
    run=_make,
    end=_end_new,
    options=[
        click.Option(
            ["--provider-credentials"],
            callback=not_empty,
            metavar="FILE",
            help="Put the credentials in this file into the key; it is written like the settings file.",
        )
    ],
    shared=_shared,
    notes="""\
Without --provider-credentials the container needs the provider's credentials in its own environment.
Credentials in the key should allow reading only, as whoever has the key can use them.""",
)


def _show_list(context: CommandContext, agents: AgentList, arguments: Arguments) -> None:
    table(
        ("name", "role", "state", "end", "id"),
        [
            (one.name, one.role, one.state, "" if one.expires is None else moment(one.expires), one.id)
            for one in agents
        ],
        styles=("bold", "cyan", "", "", "dim"),
        nothing=advice("No agent keys. Create one: ipfsmem agent new NAME"),
    )


list_command = operation_command("list", list_, _show_list, reads=False)


def _show_renewed(context: CommandContext, report: SyncReport, arguments: Arguments) -> None:
    if not report.blocked:
        click.echo(f"Extended: {clean(arguments['name'])}. Its string stays the same.")
    print_report(report)


renew_command = operation_command("renew", renew, _show_renewed, end=_end)


def _show_report(context: CommandContext, report: SyncReport, arguments: Arguments) -> None:
    print_report(report)


revoke_command = operation_command("revoke", revoke, _show_report, opens=_opened, end=_end, shared=_shared)

for sub in (new_command, list_command, renew_command, revoke_command):
    command.add_command(sub)
