"""Options of several commands, checks of their values, and commands that refuse a repeated option."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import Any, Final

import click

from ipfsmem.errors import UsageError

#: Options by their command and former name, and the present name of each.
RENAMED_OPTIONS: Final = {
    ("approve", "--copy"): "--alternative",
    ("context", "--anew"): "--reset",
    ("member revoke", "--nothing-stands"): "--cascade",
    ("read", "--conflict"): "--alternative",
    ("resolve", "--take"): "--alternative",
    ("scope into", "--stay"): "--remove",
}
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def not_empty(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Return the path or name unchanged. Raises click's error for an empty one: it comes from an unset variable, and would mean
    the current folder, or another vault."""
    if path is not None and not path.strip():
        raise click.BadParameter("must not be empty", ctx, param)
    return path


def none_empty(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same for a repeatable option."""
    for one in values:
        not_empty(ctx, param, one)
    return values


def moment_in_words(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Return a day or moment in words unchanged. Raises click's error for any other text."""
    from ipfsmem.wording import moment_of

    try:
        if text is not None:
            moment_of(text, 0)  # the form is the same at any time
    except UsageError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return text


def duration(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the seconds of `30s`, `5m`, `12h`, `1d` or a plain number; at least one."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})([smhd]?)", text.strip(), re.ASCII)
    if match is None or not int(match[1]):
        raise click.BadParameter(f"invalid duration {text!r} (examples: 30s, 5m, 12h, 1d)", ctx, param)
    return float(int(match[1]) * _UNITS[match[2]])


class WholeNumber(click.types.IntParamType):
    """An integer in a range; the error names the range."""

    name = "whole number"

    def __init__(self, least: int, most: int | None = None) -> None:
        self._least, self._most = least, most
        self.range = "" if most is None else f"{least}-{most:,}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Raises click's error for any other value."""
        least, most = self._least, self._most
        bounds = f"{least} or more" if most is None else f"{least}-{most}"
        try:
            number = int(value)
        except (ValueError, TypeError):
            self.fail(f"must be a whole number, {bounds} (got {value!r})", param, ctx)
        if number < least or (most is not None and number > most):
            self.fail(f"must be {bounds} (got {number})", param, ctx)
        return number


class Number(click.types.FloatParamType):
    """A number in a range; the error names the range."""

    name = "number"

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most
        self.range = f"{least:,}{' to ' if least < 0 else '-'}{most:,}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises click's error for any other value."""
        try:
            number = float(value)
        except (ValueError, TypeError):
            number = float("nan")
        if not self._least <= number <= self._most:
            self.fail(
                f"must be a number from {self._least:,} to {self._most:,} (got {value!r})",
                param,
                ctx,
            )
        return number


class RangedOption(click.Option):
    """An option whose help has the range of its number."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Do as click does, and add the range."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.type, WholeNumber | Number) and self.type.range:
            extra["range"] = f"range: {self.type.range}"
        return extra


class Subcommands(click.Group):
    """A group of subcommands that refuses an unknown name as the top level does."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Do as click does, but name the command that was probably meant."""
        refuse_unknown_command(ctx, args, self.commands)
        return super().resolve_command(ctx, args)


class UnknownCommandError(click.UsageError):
    """An unknown command. `instead`: the command that does this, "" if unknown."""

    def __init__(self, name: str, advice: str, ctx: click.Context, instead: str = "") -> None:
        super().__init__(f"unknown command {name!r}{advice}", ctx)
        self.instead = instead


def refuse_unknown_command(
    ctx: click.Context,
    args: list[str],
    names: Collection[str],
    instead: Mapping[str, str] | None = None,
    *,
    otherwise: str = "",
) -> None:
    """Raise UnknownCommandError for a name that is not one of `names`, with the command that was probably meant. `instead`:
    other names, of one or two words, and the commands that do the same. `otherwise`: the command for a name that resembles
    none of `names`."""
    if not args or args[0] in names or args[0].startswith("-"):
        return
    for called in (" ".join(args[:2]), args[0]):
        if instead and called in instead:
            raise UnknownCommandError(called, "", ctx, f"ipfsmem {instead[called]}")
    from difflib import get_close_matches

    near = get_close_matches(args[0], names, n=1)
    advice = f"; did you mean {near[0]!r}?" if near else ""
    raise UnknownCommandError(args[0], advice, ctx, "" if near else otherwise)


class NoRepeatedOptions(click.Command):
    """A command that refuses a repeated option, unless it is repeatable: click silently uses the last."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Do as click does. Raises click's error for a repeated option, one with its opposite, or one that was renamed."""
        try:
            if not ctx.resilient_parsing:
                _refuse_negative_values(self, ctx, args)
                refuse_repeated_options(self, ctx, args)
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            now = RENAMED_OPTIONS.get((ctx.command_path.partition(" ")[2], error.option_name))
            if now is None:
                raise
            was = error.option_name
            raise click.NoSuchOption(was, f"No such option {was!r}: it is now {now!r}.", ctx=ctx) from None

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, then the examples."""
        from ipfsmem.cli.examples import EXAMPLES

        super().format_help_text(ctx, formatter)
        if examples := EXAMPLES.get(ctx.command_path.partition(" ")[2]):
            with formatter.section("Examples"):
                formatter.write("".join(f"  {example}\n" for example in examples))


def _refuse_negative_values(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Raise click's error for a negative value of an option with an optional value, which click reads as an unknown option."""
    optional = {
        name: param
        for param in command.params
        if isinstance(param, click.Option) and not param.is_flag and isinstance(param.flag_value, str)
        for name in param.opts
    }
    for arg, after in pairwise([*args, ""]):
        name, _, value = arg.partition("=")
        if (option := optional.get(name)) is not None and re.match(r"-\d", value or after):
            option.process_value(ctx, value or after)


def refuse_repeated_options(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Raise click's error for a repeated value, or choice of two. A repeated plain flag has no further effect."""
    _, _, order = command.make_parser(ctx).parse_args(list(args))
    seen = set()
    for param in order:
        if not isinstance(param, click.Option) or param.multiple or param.count:
            continue
        if param.is_flag and not param.secondary_opts:
            continue
        if param in seen:
            names = "/".join((*param.opts[-1:], *param.secondary_opts))
            raise click.UsageError(f"{names} is given twice", ctx)
        seen.add(param)


def provider_option(
    purpose: str, *, of_vault: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --provider, passed on as a tuple of specs. `of_vault`: without it, the vault's providers are used."""
    variable = "IPFSMEM_PROVIDER, if the vault has no provider" if of_vault else "IPFSMEM_PROVIDER"
    return click.option(
        "--provider",
        multiple=True,
        metavar="SPEC",
        help=f"{purpose}: a folder, or a kind with its address ({variable}); repeatable.",
    )


def valid_label(ctx: click.Context, param: click.Parameter, label: str | None) -> str | None:
    """Return a valid label. Raises click's error before any other work."""
    from ipfsmem.errors import FormatError
    from ipfsmem.ring.statements import check_label

    if label is not None:
        try:
            check_label(label, "a label")
        except FormatError as error:
            raise click.BadParameter(str(error), ctx, param) from None
    return label


#: --label, for commands that create a device.
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace an existing file.")
label_option = click.option(
    "--label", callback=valid_label, help="Label of this device (default: the host name)."
)

#: --root, for commands that restore a vault.
root_option = click.option(
    "--root",
    metavar="CID",
    help="Version from a recovery sheet (`ipfsmem key sheet`), if nothing newer can be found.",
)


def retention_options(newest: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --keep-roots and --keep-days for commands about old versions; `newest`: help of the first.

    The defaults repeat those of sync/retention.py, so that the help needs no import; a test compares them.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        options = (
            ("--keep-roots", 30, newest),
            ("--keep-days", 90, "Keep one version a week of each device for N days."),
        )
        for name, default, text in reversed(options):
            function = click.option(
                name, type=WholeNumber(1), default=default, show_default=True, metavar="N", help=text
            )(function)
        return function

    return add
