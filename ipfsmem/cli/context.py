"""Shared code of all commands: options, the memory, and the output format.

`cli_command` makes a command with the shared options and passes it a `CommandContext`, which opens and closes memories. The
work of a command is in its own module.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ipfsmem.cli.printing import echo
from ipfsmem.errors import IncompleteError, NotFoundError, StorageError, UsageError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.locations import agent_key_text

if TYPE_CHECKING:
    import click
    import msgspec

    from ipfsmem.memory import Memory
    from ipfsmem.open_vault.handle import VaultHandle
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.root_keys import RootKeys

#: Names of UTC that need no time zone file.
_UTC_NAMES: Final = frozenset(["UTC", "UTC0", "GMT", "GMT0", "Etc/UTC", "Etc/GMT", "Universal", "Zulu"])
#: A zone that names its own offset, as `EST5EDT`.
_POSIX_ZONE: Final = lazy_pattern(r"(?:[A-Za-z]{3,}|<[^>]+>)[+-]?\d")
#: Hint if the passphrase of this device's keys is missing.
_LOCKED_HINT = "Unlock it: ipfsmem unlock. Or pass it in IPFSMEM_PASSPHRASE or with --passphrase-fd."
#: Next to an agent key.
_UNSET_KEY: Final = "Unset IPFSMEM_KEY to use a vault on this device."


class CommandContext:
    """One call of a command."""

    def __init__(
        self,
        vault_name: str | None,
        home: str | None,
        as_json: bool,
        passphrase_fd: int | None,
        *,
        scope: str | None = None,
        stacked: tuple[str, ...] = (),
        scope_must_exist: bool = False,
        about_texts: bool = False,
        reads: bool = False,
        ends: bool = False,
        verbose: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._vault_name = vault_name
        self._home = home
        self.json = as_json
        self._passphrase_fd = passphrase_fd
        self._entered: str | None = None
        #: The chosen scope, "" for the unnamed one, None without a choice.
        self.scope = scope
        #: The scopes read as one, before the default scope; empty if one scope is read.
        self.stacked = stacked
        self._scope_must_exist = scope_must_exist
        self.verbose = verbose
        #: The vault, home and scope that were given as options, for the commands in hints.
        self.options: Mapping[str, Any] = options or {}
        self._about_texts = about_texts
        self._reads = reads
        #: True if the process ends with this call, and background work with it.
        self._ends = ends
        #: A sentence that names the target, if the scope of this call is another one by now.
        self.scope_notice = ""
        #: Data that syncs of this call left out for lack of space.
        self.left_out: list[str] = []

    @functools.cached_property
    def vault_name(self) -> str:
        """Return the name of the vault: flag, environment, settings file, `default`."""
        from ipfsmem import config

        return self._vault_name or config.chosen_vault(None, config.settings())

    def choose(self, name: str) -> None:
        """Make this call about the vault `name`. Raises UsageError if it names another one."""
        if self._vault_name not in (None, name):
            raise UsageError(f"{name} and --vault {self._vault_name} name two vaults: pass only {name}")
        self.__dict__.pop("vault_name", None)
        self._vault_name = name

    @property
    def vault_named(self) -> bool:
        """Tell whether this call named a vault."""
        return self._vault_name is not None

    @functools.cached_property
    def home(self) -> Path:
        """Return the folder of this device's vaults. Raises UsageError next to an agent key, which never touches it."""
        if self.is_container:
            raise UsageError(
                "this command is about vaults on this device, and an agent key in IPFSMEM_KEY opens one elsewhere",
                hint=_UNSET_KEY,
            )
        from ipfsmem import config

        return config.home(self._home)

    @property
    def is_container(self) -> bool:
        """Return whether an agent key in the environment opens the vault. Raises UsageError for --home or --vault next to it."""
        if not agent_key_text():
            return False
        for option, value in (("--home", self._home), ("--vault", self._vault_name)):
            if value is not None:
                raise UsageError(
                    f"{option} and an agent key in IPFSMEM_KEY exclude each other", hint=_UNSET_KEY
                )
        return True

    @property
    def folder(self) -> Path:
        """Return the folder of this vault."""
        from ipfsmem import config

        return config.vault_folder(self.home, self.vault_name)

    def passphrase_from_fd_or_environment(self) -> str | None:
        """Return the passphrase of this device's keys from a descriptor or IPFSMEM_PASSPHRASE."""
        from ipfsmem.cli import secret_input

        return secret_input.from_fd_or_environment(self._passphrase_fd, "IPFSMEM_PASSPHRASE")

    def passphrase(self, *, itself: bool = False) -> str | None:
        """Return the passphrase of this device's keys, prompted for once if necessary; None if they need none, or are unlocked.
        `itself`: required although they are unlocked."""
        if self.is_container:
            return None
        from ipfsmem.cli import secret_input
        from ipfsmem.device.identity import passphrase_protected
        from ipfsmem.vault.unlocking import needs_passphrase

        secret = self.passphrase_from_fd_or_environment() or self._entered
        if secret is not None or not (passphrase_protected if itself else needs_passphrase)(self.folder):
            return secret
        self._entered = secret_input.ask(
            f"passphrase of the vault {self.vault_name}", otherwise=None if itself else _LOCKED_HINT
        )
        return self._entered

    @contextlib.contextmanager
    def memory(
        self,
        *,
        provider: tuple[str, ...] = (),
        unlock: Unlock | RootKeys | None = None,
        passphrase_itself: bool = False,
    ) -> Iterator[Memory]:
        """Open the memory on this device. `passphrase_itself`: unlocked keys are not enough. Raises NotFoundError if it is
        missing."""
        from ipfsmem.memory import Memory
        from ipfsmem.open_vault.audit import acting_as, collecting

        if self.is_container and (provider or unlock is not None):
            raise UsageError("an agent key in IPFSMEM_KEY opens a vault for reading only", hint=_UNSET_KEY)
        passphrase = self.passphrase(itself=passphrase_itself)
        try:
            memory = Memory.load(
                self.vault_name,
                home=None if self.is_container else self.home,
                provider=provider or None,
                unlock=unlock,
                passphrase=passphrase,
            )
        except StorageError as error:
            if not self._reads or self.is_container:
                raise
            memory = self._as_it_lies(error)
        opened = memory._view().opened
        # A typed passphrase, or one from a descriptor, is for this call: no process that outlives it gets keys by it.
        lasts = self._entered is None and self._passphrase_fd is None
        opened.vectors_apart = self._ends and self._reads and lasts and not memory.replica.read_only
        try:
            if self._scope_must_exist:
                for name in filter(None, (self.scope, *self.stacked)):
                    memory.scopes.known(name, live=bool(self.stacked))
            if self.scope:
                self.scope_notice = _scope_notice(self.scope, memory.scopes.target(self.scope))
            _note_unknown_time_zone()
            with acting_as("cli"), collecting() as better:
                yield memory.scope(self.scope) if self.scope is not None else memory
            for one in better:
                echo(f"note: {one}", err=True)
            if self._about_texts:
                self._print_troubles(opened)
        finally:
            self.note_left_out(memory)
            memory.close()
        if (kinds := opened.left_without_vectors) is not None:
            from ipfsmem.agents import vectors_apart

            vectors_apart.start(self.vault_name, self.home, kinds, passphrase)

    def _as_it_lies(self, error: StorageError) -> Memory:
        """Open it read-only after `error`, as its disk is full or read-only. Raises `error` for a damaged one, or if that
        fails, too."""
        from ipfsmem.cli.printing import clean
        from ipfsmem.device.connection import DatabaseDamagedError
        from ipfsmem.memory import Memory

        if isinstance(error, DatabaseDamagedError):
            raise error
        try:
            memory = Memory.load_damaged(self.vault_name, home=self.home, passphrase=self.passphrase())
        except StorageError:
            raise error from None
        lost = f", without {', '.join(map(clean, memory.replica.lost))}" if memory.replica.lost else ""
        echo(f"{clean(str(error))}: reading the saved state{lost}", err=True)
        return memory

    @contextlib.contextmanager
    def damaged_memory(self) -> Iterator[Memory]:
        """Yield the readable part of a memory whose database is damaged. Raises StorageError if nothing is readable."""
        from ipfsmem.memory import Memory

        memory = Memory.load_damaged(self.vault_name, home=self.home, passphrase=self.passphrase())
        try:
            yield memory.scope(self.scope) if self.scope is not None else memory
        finally:
            memory.close()

    def refuse_missing_memory(self) -> None:
        """Raise NotFoundError if this vault is not on this device. Opens nothing, and needs no passphrase."""
        from ipfsmem.device.replica import read_config

        if read_config(self.folder) is None:
            raise NotFoundError(
                f"there is no vault {self.vault_name} on this device", hint="Create one: ipfsmem init."
            )

    def note_left_out(self, memory: Memory) -> None:
        """Record data that this call's syncs of a memory left out: the command reports it at its end."""
        self.left_out += memory.replica.left_out

    def refuse_left_out(self) -> None:
        """Raise IncompleteError if a sync of this call left data out. Called after all other work."""
        if self.left_out:
            from ipfsmem.sync.report import CROWDED

            raise IncompleteError("; ".join(self.left_out), hint=CROWDED)

    def print_where_scope_went(self) -> None:
        """Print the note on a changed scope, for a person or an agent."""
        if self.scope_notice and not self.json:
            echo(f"note: {self.scope_notice}", err=True)

    def advice(self, text: str) -> str:
        """Return a text for a terminal: clean, and its commands with the vault, home and scope of this call."""
        from ipfsmem.cli.light_imports import load_click

        load_click()
        from ipfsmem.cli.app import group
        from ipfsmem.cli.hint_commands import with_call_options
        from ipfsmem.cli.printing import clean

        return with_call_options(clean(text), self.options, group)

    def _print_troubles(self, opened: VaultHandle) -> None:
        """Print why linked folders were not scanned: data read or written lacks the edits there."""
        for trouble in opened.files.troubles() if opened.files is not None else ():
            echo(f"note: {self.advice(trouble)}", err=True)

    def emit(self, value: msgspec.Struct | Sequence[msgspec.Struct] | Sequence[str]) -> None:
        """Print an answer for a program: the value that Python returns, in no other shape."""
        from ipfsmem.cli.printing import to_json

        echo(to_json(value))

    def emit_open(self, value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Print data without fixed fields, such as the content of a file."""
        from ipfsmem.cli.printing import to_json

        echo(to_json(value))


def cli_command(
    name: str,
    *,
    secrets: bool = True,
    scoped: bool = False,
    shows: bool = False,
    stacks: bool = False,
    reads: bool = False,
    **settings: Any,
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator for a command that gets a `CommandContext` first and has --vault, --home, --json and --passphrase-fd.

    `secrets` off omits the passphrase, for commands that open no memory. `scoped` adds --scope, and `CommandContext.memory` is
    that scope; one that only `shows` its content refuses an unknown scope, which would look empty. `stacks` adds --stack, for
    `CommandContext.stacked`. One that only `reads` texts also works on a full or read-only disk.
    """
    import click

    from ipfsmem.cli.app import SHORT
    from ipfsmem.cli.options import NoRepeatedOptions

    settings.setdefault("short_help", SHORT.get(name, ""))

    def make(function: Callable[..., None]) -> click.Command:
        if getattr(function, "takes_wallet", False):
            settings.setdefault("epilog", "Wallet options: `ipfsmem help wallets`")

        @functools.wraps(function)
        @click.pass_context
        def run(ctx: click.Context, /, **values: Any) -> None:
            _refuse_closed_output(ctx)
            context = _context(ctx, values, scoped=scoped, shows=shows, reads=reads)
            try:
                with _log_of(context):
                    function(context, **values)
            except click.exceptions.Exit as ended:
                if ended.exit_code or not context.left_out:
                    raise
            context.refuse_left_out()

        command = click.command(name, NoRepeatedOptions, **settings)(run)
        command.params += _shared_options(secrets=secrets, scoped=scoped, stacks=stacks)
        return command

    return make


def _log_of(context: CommandContext) -> contextlib.AbstractContextManager[None]:
    """Return the log of this call's requests, if it was requested."""
    if not context.verbose and not os.environ.get("IPFSMEM_LOG"):
        return contextlib.nullcontext()
    from ipfsmem.cli.request_log import request_log

    return request_log(context.verbose)


def _refuse_closed_output(ctx: click.Context) -> None:
    """Raise UsageError if a command is useful only by its output, which would be lost."""
    from ipfsmem.cli.app import USEFUL_WITHOUT_OUTPUT, output_closed_error, output_is_closed

    name = ctx.command_path.partition(" ")[2].replace(" ", "_")
    if output_is_closed() and name not in USEFUL_WITHOUT_OUTPUT:
        raise output_closed_error(ctx.command_path)


def _context(
    ctx: click.Context, values: dict[str, Any], *, scoped: bool, shows: bool, reads: bool
) -> CommandContext:
    """Return the context of a call; the shared options are removed from `values`. Options before the command's name are valid,
    too."""
    group = ctx.find_root().obj
    shared: dict[str, Any] = group if isinstance(group, dict) else {}
    _choose_vault(ctx, values, shared)
    for name in ("home", "as_json", "verbose"):
        shared[name] = values.pop(name) or shared.get(name)
    shared["reads"] = reads
    passphrase_fd = values.pop("passphrase_fd", None)
    stacked = values.pop("stacked", ())
    scope = None
    if scoped:
        scope = shared["scope"] = values.pop("scope")
        if scope is not None and stacked:
            raise UsageError("--scope and --stack exclude each other")
        if stacked:
            scope = ""  # a stack names its scopes, so it is read through the whole memory
        elif scope is None:
            scope = os.environ.get("IPFSMEM_SCOPE") or None
    return CommandContext(
        shared["vault_name"],
        shared["home"],
        bool(shared["as_json"]),
        passphrase_fd,
        scope=scope,
        stacked=stacked,
        scope_must_exist=shows or bool(stacked),
        about_texts=scoped,
        reads=reads,
        ends=shared.get("ends", False),
        verbose=bool(shared["verbose"]),
        options=shared,
    )


def _choose_vault(ctx: click.Context, values: dict[str, Any], shared: dict[str, Any]) -> None:
    """Set `vault_name` to the vault of a call. -n is its earlier name; --vault then named the wallet's vault, for commands with
    wallet options: with both it still does, as on printed recovery sheets."""
    vault, earlier = values.pop("vault"), values.pop("vault_name")
    if vault is None and earlier is None:
        vault, earlier = shared.get("vault"), shared.get("vault_name")
    elif earlier is None:
        earlier = shared.get("vault_name")
    if vault is not None and earlier is not None:
        if "wallet_vault" in values:
            values["wallet_vault"], vault = values["wallet_vault"] or vault, None
        elif vault != earlier:
            import click

            raise click.UsageError("--vault and --namespace name two vaults: pass only --vault", ctx)
    shared["vault_name"] = vault or earlier


def _shared_options(*, secrets: bool, scoped: bool, stacks: bool) -> list[click.Parameter]:
    """Return the options of every command, and those of its kind."""
    import click

    from ipfsmem.cli.options import WholeNumber, not_empty

    options: list[click.Parameter] = [
        click.Option(("--vault",), callback=not_empty, metavar="NAME", help="Vault to use."),
        click.Option(("-n", "--namespace", "vault_name"), callback=not_empty, metavar="NAME", hidden=True),
        click.Option(("--home",), callback=not_empty, metavar="DIR", help="Folder of this device's vaults."),
        click.Option(("--json", "as_json"), is_flag=True, help="Print JSON."),
        click.Option(("--verbose",), is_flag=True, help="Print requests to providers on standard error."),
    ]
    if secrets:
        options.append(
            click.Option(
                ("--passphrase-fd",),
                type=WholeNumber(0),
                metavar="N",
                help="Read the passphrase of this device's keys from file descriptor N.",
            )
        )
    if scoped:
        options.append(
            click.Option(
                ("--scope",), metavar="NAME", help="Scope to use (IPFSMEM_SCOPE; default: the unnamed scope)."
            )
        )
    if stacks:
        options.append(
            click.Option(
                ("--stack", "stacked"),
                multiple=True,
                metavar="NAME",
                help="Scope to read before the unnamed scope; repeatable, in order of precedence.",
            )
        )
    return options


def _scope_notice(scope: str, target: str) -> str:
    """Return a notice on a scope that is another one by now: a program that reads only the written name finds nothing."""
    if target == scope:
        return ""
    return f"The scope {scope} redirects to {target}: writes to it go to {target}, and --scope {target} shows both."


def _note_unknown_time_zone() -> None:
    """Print a note if the system does not know the time zone in `TZ`: it then silently uses UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name or name in _UTC_NAMES or time.timezone or time.daylight or _POSIX_ZONE.match(name):
        return
    if name.startswith("/"):
        is_known = Path(name).is_file()
    else:
        from ipfsmem.wording import zone_of

        try:
            is_known = bool(zone_of(name))
        except UsageError:
            is_known = False
    if not is_known:
        echo(f"note: unknown time zone in TZ: {name[:60]!a}; days and times are in UTC", err=True)
