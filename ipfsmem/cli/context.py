"""What every command shares: its options, the memory that it is about, and whether a program reads its answer.

`cli_command` makes a command with the shared options and hands it a `CommandContext`, which opens memories and closes them.
What a command does with a memory stands in its own module.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.app import USEFUL_WITHOUT_OUTPUT, output_closed_error, output_is_closed
from ipfsmem.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    import msgspec

    from ipfsmem.memory import Memory
    from ipfsmem.vault.opening import Unlock
    from ipfsmem.wallet.root_keys import RootKeys


_SHARED = {"namespace", "home", "as_json", "passphrase_fd", "scope", "stacked"}


class CommandContext:
    """One call of a command."""

    def __init__(
        self, namespace: str | None, home: str | None, as_json: bool, passphrase_fd: int | None
    ) -> None:
        self._namespace = namespace
        self._home = home
        self.json = as_json
        self._passphrase_fd = passphrase_fd
        self._scope: str | None = None
        self._must_exist = False
        #: The scopes that are read as one, before what is everybody's; empty when one scope is read.
        self.stacked: tuple[str, ...] = ()
        #: Where what is written for the scope of this call goes, when that turned out to be another one: a sentence.
        self.scope_notice = ""
        #: What syncs of this call left out for want of room.
        self.left_out: list[str] = []

    @functools.cached_property
    def namespace(self) -> str:
        """The name of the memory: flag, environment, settings file, `default`."""
        from ipfsmem import config

        return self._namespace or config.settings().namespace or config.DEFAULT_NAMESPACE

    @property
    def namespace_named(self) -> bool:
        """Whether this call named a memory."""
        return self._namespace is not None

    @functools.cached_property
    def home(self) -> Path:
        """Where memories are on this device."""
        from ipfsmem import config

        return config.home(self._home)

    @property
    def folder(self) -> Path:
        """The folder of this memory."""
        from ipfsmem import config

        return config.namespace_folder(self.home, self.namespace)

    def passphrase_given(self) -> str | None:
        """The passphrase of this device's keys when a descriptor or IPFSMEM_PASSPHRASE has it."""
        from ipfsmem.cli import secret_input

        return secret_input.given(self._passphrase_fd, "IPFSMEM_PASSPHRASE")

    def passphrase(self) -> str | None:
        """The passphrase that the keys on this device need, asked for if it must be; None when they need none."""
        from ipfsmem.cli import secret_input
        from ipfsmem.device.atomic_files import read_file
        from ipfsmem.device.identity import KEY_FILE
        from ipfsmem.seal.secret_file import MAX_FILE, is_protected

        found = self.passphrase_given()
        if found is not None:
            return found
        keys = read_file(self.folder / KEY_FILE, MAX_FILE)
        if keys is None or not is_protected(keys):
            return None
        return secret_input.ask(f"passphrase of the memory {self.namespace}")

    @contextlib.contextmanager
    def memory(
        self, *, provider: tuple[str, ...] = (), unlock: Unlock | RootKeys | None = None
    ) -> Iterator[Memory]:
        """The memory on this device, open. Raises NotFoundError when there is none."""
        from ipfsmem.memory import Memory

        memory = Memory.load(
            self.namespace,
            home=self.home,
            provider=provider or None,
            unlock=unlock,
            passphrase=self.passphrase(),
        )
        try:
            if self._must_exist:
                for name in (self._scope, *self.stacked):
                    _require_scope(memory, name or "", live=bool(self.stacked))
            self.scope_notice = _scope_notice(memory, self._scope) if self._scope else ""
            yield memory.scope(self._scope) if self._scope is not None else memory
        finally:
            self.note_left_out(memory)
            memory.close()

    def note_left_out(self, memory: Memory) -> None:
        """Note what this call's syncs of a memory left out: whatever else it did, it ends with that."""
        self.left_out += memory.replica.left_out

    def choose_scope(self, scope: str | None, *, must_exist: bool) -> None:
        """The scope that this call is about: the flag ("" says the nameless one), else IPFSMEM_SCOPE, else none is chosen."""
        self._scope = scope if scope is not None else os.environ.get("IPFSMEM_SCOPE") or None
        self._must_exist = must_exist

    @property
    def scope(self) -> str | None:
        """The scope that was chosen, None when none was."""
        return self._scope

    def print_where_scope_went(self) -> None:
        """Say it, where a person or an agent reads what was done for that scope."""
        if self.scope_notice and not self.json:
            click.echo(f"note: {self.scope_notice}", err=True)

    def emit(self, value: msgspec.Struct | Sequence[msgspec.Struct] | Sequence[str]) -> None:
        """Print an answer for a program: what Python returns, and no shape that a command makes itself."""
        from ipfsmem.cli.printing import to_json

        click.echo(to_json(value))

    def emit_open(self, value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Print what has no fixed fields: events of the timeline, whose data is their writer's, and what a file says."""
        from ipfsmem.cli.printing import to_json

        click.echo(to_json(value))


class NoRepeatedOptions(click.Command):
    """A command that refuses an option given twice, unless it may be given several times: click takes the last in silence."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it. Raises click's error for an option that stands twice, or beside its opposite."""
        if not ctx.resilient_parsing:
            refuse_repeated_options(self, ctx, args)
        return super().parse_args(ctx, args)


def refuse_repeated_options(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Raises click's error when a value, or a choice of two, is said twice. The same plain flag twice is the same flag."""
    _, _, order = command.make_parser(ctx).parse_args(list(args))
    seen = set()
    for param in order:
        if not isinstance(param, click.Option) or param.multiple or param.count:
            continue
        if param.is_flag and not param.secondary_opts:
            continue
        if param in seen:
            names = "/".join((*param.opts[-1:], *param.secondary_opts))
            raise click.UsageError(f"{names} is given twice, and only one can count", ctx)
        seen.add(param)


def cli_command(
    name: str,
    *,
    secrets: bool = True,
    scoped: bool = False,
    shows: bool = False,
    stacks: bool = False,
    **settings: Any,
) -> Callable[[Callable[..., None]], click.Command]:
    """A command that takes a `CommandContext` first and has --namespace, --home, --json and --passphrase-fd.

    `secrets` off leaves the passphrase out, for commands that open no memory. `scoped` adds --scope, and `CommandContext.memory` is
    that scope; one that only `shows` what is in it refuses a scope that is none, which would look like an empty one. `stacks`
    adds --stack, for `CommandContext.stacked`.
    """

    def make(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        @click.pass_context
        def run(ctx: click.Context, /, **given: Any) -> None:
            if (
                output_is_closed()
                and ctx.command_path.partition(" ")[2].replace(" ", "_") not in USEFUL_WITHOUT_OUTPUT
            ):
                raise output_closed_error(ctx.command_path)
            above = _outer(ctx)
            for shared in ("namespace", "home", "as_json"):
                above[shared] = given.pop(shared) or above.get(shared)
            context = CommandContext(
                above["namespace"], above["home"], bool(above["as_json"]), given.pop("passphrase_fd", None)
            )
            if scoped:
                above["scope"] = scope = given.pop("scope")
                context.stacked = given.pop("stacked", ())
                if scope is not None and context.stacked:
                    raise UsageError("--scope reads one scope, --stack several: give one of both")
                # A stack is read through the whole memory: it names its scopes itself.
                context.choose_scope(
                    "" if context.stacked else scope, must_exist=shows or bool(context.stacked)
                )
            try:
                function(context, **given)
            except click.exceptions.Exit as ended:
                if ended.exit_code or not context.left_out:
                    raise
            if context.left_out:
                from ipfsmem.sync.report import CROWDED

                raise IncompleteError("; ".join(context.left_out), hint=CROWDED)

        shared = [
            click.option("-n", "--namespace", callback=not_empty, metavar="NAME", help="Which memory."),
            click.option(
                "--home", callback=not_empty, metavar="DIR", help="Where memories are kept on this device."
            ),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        ]
        if secrets:
            shared.append(
                click.option(
                    "--passphrase-fd",
                    type=WholeNumber(0),
                    metavar="N",
                    help="Read the passphrase of this device's keys from file descriptor N.",
                )
            )
        if scoped:
            shared.append(
                click.option(
                    "--scope", metavar="NAME", help="Which scope (IPFSMEM_SCOPE; default: the nameless one)."
                )
            )
        if stacks:
            shared.append(
                click.option(
                    "--stack",
                    "stacked",
                    multiple=True,
                    metavar="NAME",
                    help="Read this scope, then what is everybody's (the nameless one). Several times: in this order.",
                )
            )
        wrapped: Callable[..., None] = run
        for option in reversed(shared):
            wrapped = option(wrapped)
        # click lists the last option added first: the shared ones belong at the end of the help.
        parameters: list[click.Parameter] = getattr(wrapped, "__click_params__", [])
        parameters[:] = [p for p in parameters if p.name in _SHARED] + [
            p for p in parameters if p.name not in _SHARED
        ]
        from ipfsmem.cli.app import SHORT

        settings.setdefault("short_help", SHORT.get(name, ""))
        return click.command(name, NoRepeatedOptions, **settings)(wrapped)

    return make


def _require_scope(memory: Memory, name: str, *, live: bool) -> None:
    """Refuse a scope that is none, and where it must be `live` one that is forgotten."""
    from ipfsmem.bundle.keys import check_scope
    from ipfsmem.errors import NotFoundError

    if not name:
        return
    one = memory.scopes.get(check_scope(name))
    if one is None:
        raise NotFoundError(f"there is no scope {name}", hint="List them with: ipfsmem scope list")
    if live and one.forgotten:
        raise NotFoundError(
            f"the scope {name} is forgotten", hint=f"Bring it back with: ipfsmem scope restore {name}"
        )


def _outer(ctx: click.Context) -> dict[str, Any]:
    obj = ctx.find_root().obj
    return obj if isinstance(obj, dict) else {}


class WholeNumber(click.IntRange):
    """A whole number within bounds, refused in words that say them."""

    def __init__(self, least: int, most: int | None = None) -> None:
        super().__init__(least, most)
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Raises click's error for anything else."""
        least, most = self._least, self._most
        bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
        try:
            number = int(value)
        except (ValueError, TypeError):
            self.fail(f"{value!r} is no whole number; it takes one {bounds}.", param, ctx)
        if number < least or (most is not None and number > most):
            self.fail(f"{number} will not do; it takes a whole number {bounds}.", param, ctx)
        return number


def provider_option(purpose: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """--provider, handed on as a tuple of specs."""
    return click.option(
        "--provider",
        multiple=True,
        metavar="SPEC",
        help=f"{purpose}: a folder, or a provider (IPFSMEM_PROVIDER). May be given several times.",
    )


def valid_label(ctx: click.Context, param: click.Parameter, label: str | None) -> str | None:
    """A label that a device can have, before anything is made or asked."""
    from ipfsmem.errors import FormatError
    from ipfsmem.ring.statements import check_label

    if label is not None:
        try:
            check_label(label, "a label")
        except FormatError as error:
            raise click.BadParameter(str(error), ctx, param) from None
    return label


#: --label, for commands that make a device.
label_option = click.option(
    "--label", callback=valid_label, help="What other devices call this one (default: the host's name)."
)

#: --root, for commands that bring a memory back.
root_option = click.option(
    "--root",
    metavar="CID",
    help="A version of it that was written down (ipfsmem keys sheet), where nothing else leads there any more.",
)


def public_options(function: Callable[..., None]) -> Callable[..., None]:
    """--yes-public and --allow, for commands that publish."""
    function = click.option(
        "--allow",
        multiple=True,
        metavar="KEY",
        help="Publish this memory though it looks as if it held a secret (or timeline/DAY).",
    )(function)
    return click.option(
        "--yes-public", is_flag=True, help="Mode ipfs: yes, everyone may read what is published, for good."
    )(function)


def _scope_notice(memory: Memory, name: str) -> str:
    """Where to look, when a scope turned out to be another one: who writes for it and reads it alone finds nothing."""
    from ipfsmem.bundle.keys import is_scope

    one = memory.scopes.get(name) if is_scope(name) else None
    onward = one.card.into if one is not None and one.card is not None and not one.forgotten else None
    other = memory.scopes.get(onward) if onward else None
    if other is None or other.forgotten:
        return ""
    return f"The scope {name} is {onward} now: what is written for it goes there, and --scope {onward} shows both."


def agrees_to_publish(memory: Memory, yes: bool) -> bool:
    """Whether the user agrees that a plain memory becomes public: said by flag, or asked for once on a terminal."""
    from ipfsmem.cli import secret_input

    if yes or not memory.mode.public or memory.replica.config.public or not secret_input.can_ask():
        return yes
    click.echo(
        f"The memory {memory.namespace} is in mode ipfs. Everything in it will be published in the clear: every memory,\n"
        "its name, and the whole timeline. Anyone can read it, copies stay for good, and nothing can take them back.",
        err=True,
    )
    return bool(click.confirm("Publish it for everyone?", default=False, err=True))


def not_empty(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """A path or name that somebody gave: an empty one, from a variable that is not set, would be the folder that one stands in,
    or another memory than the one that was meant."""
    if path is not None and not path.strip():
        raise click.BadParameter("it is empty", ctx, param)
    return path


def read_text(path: str, what: str) -> bytes:
    """The bytes of a file the user named, `-` for standard input. Raises StorageError, NotFoundError, LimitError."""
    import sys

    from ipfsmem.bundle.memory_file import MAX_FILE
    from ipfsmem.device.atomic_files import storage_errors
    from ipfsmem.errors import LimitError, NotFoundError

    if path == "-":
        data = sys.stdin.buffer.read(MAX_FILE + 1)
    else:
        where = Path(path)
        if not where.exists():
            raise NotFoundError(f"there is no file {path}")
        if where.is_dir():
            raise UsageError(f"{path} is a folder, not a file")
        with storage_errors(where, "read"), where.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise LimitError(f"{what} is longer than {MAX_FILE:,} bytes", hint="Split it into two memories.")
    return data


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """`name=value` texts as a mapping. Raises UsageError."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
        if found.setdefault(name, value) != value:
            raise UsageError(f"{option} says {name} twice: {found[name]!r} and {value!r}")
    return found


def retention_options(newest: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """--keep-roots and --keep-days, as every command about old roots has them; `newest` is the help of the first.

    The defaults are those of sync/retention.py, said again so that the help needs no import; a test compares them.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        options = (("--keep-roots", 30, newest), ("--keep-days", 90, "One a week of each device for N days."))
        for name, default, text in reversed(options):
            function = click.option(
                name, type=WholeNumber(1), default=default, show_default=True, metavar="N", help=text
            )(function)
        return function

    return add
