"""Derive the command of a declared operation: arguments, options, help and JSON. Its output for people is written by hand."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.errors import IpfsmemError, NotFoundError
from ipfsmem.operation import is_absent

if TYPE_CHECKING:
    import click

    from ipfsmem.memory import Memory
    from ipfsmem.operation import Operation, Parameter
    from ipfsmem.sync.progress import Progress

Arguments = dict[str, Any]
T = TypeVar("T")


class Steps(msgspec.Struct, frozen=True):
    """The work of a command, without its options: the parameters of `operation_command` with these names describe the fields."""

    op: Operation[..., Any]
    show: Callable[[CommandContext, Any, Arguments], None]
    run: Callable[[CommandContext, Memory, Arguments], Any] | None = None
    absent: Callable[[CommandContext, Arguments], IpfsmemError] | None = None
    ask: Callable[[CommandContext, Arguments], None] | None = None
    printed: Callable[[CommandContext, Memory, Any, Arguments], None] | None = None
    end: Callable[[CommandContext, Any, Arguments], None] | None = None
    opens: Callable[[CommandContext, Arguments], AbstractContextManager[Memory]] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether it runs without a vault."""
        return self.op.declared.about == "user"

    def work(self, context: CommandContext, arguments: Arguments) -> None:
        """Run the operation, and print its result. Raises the errors of the operation, and NotFoundError without a result."""
        if self.ask is not None:
            self.ask(context, arguments)
        with self._opened(context, arguments) as memory:
            result = (self.run or functools.partial(call, self.op))(context, memory, arguments)
            if self.printed is not None:
                _print(self.op, context, result, arguments, self.show)
                self.printed(context, memory, result, arguments)
        absent = self.op.declared.absent
        if absent and is_absent(result):  # raised here, so that troubles of the memory are told first
            raise (
                self.absent(context, arguments) if self.absent else NotFoundError(absent.format(**arguments))
            )
        if self.printed is None:
            _print(self.op, context, result, arguments, self.show)
        if not self.is_alone:
            context.print_where_scope_went()
        if self.end is not None:
            self.end(context, result, arguments)

    def _opened(self, context: CommandContext, arguments: Arguments) -> AbstractContextManager[Any]:
        if self.opens is not None:
            return self.opens(context, arguments)
        return contextlib.nullcontext() if self.is_alone else context.memory()


def operation_command(
    name: str,
    op: Operation[..., Any],
    show: Callable[[CommandContext, Any, Arguments], None],
    *,
    run: Callable[[CommandContext, Memory, Arguments], Any] | None = None,
    absent: Callable[[CommandContext, Arguments], IpfsmemError] | None = None,
    ask: Callable[[CommandContext, Arguments], None] | None = None,
    printed: Callable[[CommandContext, Memory, Any, Arguments], None] | None = None,
    end: Callable[[CommandContext, Any, Arguments], None] | None = None,
    opens: Callable[[CommandContext, Arguments], AbstractContextManager[Memory]] | None = None,
    options: Sequence[click.Parameter] = (),
    shared: Sequence[Callable[[Callable[..., None]], Callable[..., None]]] = (),
    notes: str = "",
    shows: bool | None = None,
    reads: bool | None = None,
) -> click.Command:
    """A command. `show` prints the result for people; it receives the result and the arguments. `run`: calls the operation, if that takes
    more than one call. `ask`: reads further arguments, such as standard input, before the memory is
    opened. `absent`: raised if the result is None. `printed`: called after the output, while the memory is open. `end`: called after the output, also with --json, to print to
    standard error or to raise. `opens`: opens the memory, if arguments choose how. `options`: options that exist on the command line only, such as those of
    its output. `shared`: decorators that add options of several commands, such as those of a wallet. `notes`: the end of its help, about its output. `shows`: whether an unknown scope is refused before the call, and `reads`:
    whether it works on a full or read-only disk; None: if the operation reads."""
    declared = op.declared
    parameters = op.parameters("cli")
    steps = Steps(op, show, run, absent, ask, printed, end, opens)

    def work(context: CommandContext, **values: Any) -> None:
        steps.work(context, values | {one.name: _argument_of(one, values[one.name]) for one in parameters})

    for one in reversed(shared):
        work = one(work)
    command = cli_command(
        name,
        secrets=not steps.is_alone,
        scoped=op.is_scoped,
        shows=(declared.right == "read" if shows is None else shows) and op.is_scoped,
        stacks=declared.about == "stack",
        reads=declared.right == "read" if reads is None else reads,
        help=f"{_help(op)}\n\n{notes}",
        short_help=declared.summary,
    )(work)
    command.params = [*map(_parameter, parameters), *options, *command.params]
    return command


def _print(
    op: Operation[..., Any],
    context: CommandContext,
    result: Any,
    arguments: Arguments,
    show: Callable[[CommandContext, Any, Arguments], None],
) -> None:
    if context.json:
        context.emit(op.answered(result))
    else:
        show(context, result, arguments)


def call(op: Operation[..., Any], context: CommandContext, memory: Memory, arguments: Arguments) -> Any:
    """Run an operation on the scope or scopes of a command. Arguments that it has not are those of the command line alone."""
    values = {name: arguments[name] for name in op.names if name in arguments}
    if op.declared.about == "user":
        return op.run_alone(values, "cli")
    source = memory.stack(*context.stacked) if context.stacked else memory
    if not op.is_coroutine:
        return op.run(source._view(), values, "cli")
    if "progress" not in op.names:
        return run_coroutine(context, lambda meter: op.run(source._view(), values, "cli"))
    return run_coroutine(context, lambda meter: op.run(source._view(), {**values, "progress": meter}, "cli"))


def run_coroutine(context: CommandContext, work: Callable[[Progress], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that shows its progress on a meter."""
    import asyncio

    from ipfsmem.cli.printing import Meter

    with Meter(silent=context.json) as meter:
        return asyncio.run(work(meter))


def _help(op: Operation[..., Any]) -> str:
    """Return the docstring for the command line: options in place of parameters, and no remarks on Python."""
    called = {one.name: one.called("cli") for one in op.parameters("cli")}
    text = re.sub(r" \(in Python: [^()]*\)", "", op.doc)
    text = re.sub(r"\AReturn ", "Print ", text)
    return re.sub(r"`(\w+)`", lambda match: called.get(match[1], match[0]), text)


def _argument_of(one: Parameter, value: Any) -> Any:
    """A value from click in the form that the operation accepts."""
    if one.cli.joined:
        return " ".join(value)
    if one.required:
        return value
    return one.default if value is None or (one.is_list and not value) else value


def _parameter(one: Parameter) -> click.Parameter:
    import click

    from ipfsmem.cli.options import RangedOption, moment_in_words, not_empty

    cli = one.cli
    if cli.joined:
        return click.Argument([one.name], nargs=-1, required=True, metavar=f"{cli.metavar}...")
    if one.is_argument:
        metavar = cli.metavar if one.required else f"[{cli.metavar}]"
        return click.Argument(
            [one.name],
            required=one.required,
            metavar=metavar if cli.metavar else None,
            callback=not_empty if cli.path else None,
        )
    names = [one.called("cli"), one.name]
    text = cli.help or one.description
    if one.type is bool:
        return click.Option(names, is_flag=True, help=text)
    is_shown = not one.required and one.default not in (None, "", ())
    return RangedOption(
        names,
        type=_type_of(one),
        required=one.required,
        default=one.default if is_shown else None,
        show_default=is_shown,
        multiple=one.is_list,
        metavar=cli.metavar or None,
        callback=moment_in_words if cli.moment else not_empty if cli.path else None,
        help=text,
    )


def _type_of(one: Parameter) -> click.ParamType[Any] | None:
    import click

    from ipfsmem.cli.options import Number, WholeNumber

    if words := one.cli.words or one.words:
        return click.Choice(words)
    if one.type is int:
        assert one.least is not None
        return WholeNumber(one.least, one.most)
    return Number(one.least, one.most) if one.type is float else None
