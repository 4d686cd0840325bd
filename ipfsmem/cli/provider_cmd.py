"""`ipfsmem provider`: where encrypted blocks are stored."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import click

from ipfsmem.cli import secret_input
from ipfsmem.cli.consent import agrees_to_publish, confirm, public_option, warn_of, warned_of, with_warning
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, moment, seconds, short, style, table
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.errors import ConfigError, MissingError, ProviderError, ProviderUnavailable, UsageError
from ipfsmem.operations.provider_moves import Followed, follow
from ipfsmem.operations.providers import (
    ProviderAdded,
    ProviderList,
    ProviderNames,
    ProvidersChecked,
    ProviderTried,
    add,
    check,
    list_,
    remove,
    test,
)
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ipfsmem.memory import Memory
    from ipfsmem.sync.presence import Presence

_PRESENCE = {
    "ok": ("✓", "green"),
    "waiting": ("–", "yellow"),
    "unchecked": ("–", "yellow"),
    "missing": ("✗", "red"),
    "stopped": ("✗", "red"),
}
_MARK = {"ok": ("✓", "green"), "cannot": ("–", "yellow"), "failed": ("✗", "red")}


@click.group("provider", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Providers: where encrypted blocks are stored. A provider is a folder, or a kind with its address,
    like pinata or kubo:URL.

    To switch providers: `ipfsmem vault move`.
    """


def _show_list(context: CommandContext, providers: ProviderList, arguments: Arguments) -> None:
    table(
        ("kind", "provider", "can", "last version", "when"),
        [
            (
                one.kind,
                one.spec,
                clean(one.problem) or one.can,
                short(one.root) if one.root else "nothing yet",
                moment(one.at),
            )
            for one in providers
        ],
        styles=("cyan", "bold", "dim"),
    )


list_command = operation_command("list", list_, _show_list, reads=False)


def _show_added(context: CommandContext, names: ProviderAdded, arguments: Arguments) -> None:
    from ipfsmem.provider.contract import lasting_spec, shown_spec

    click.echo(f"Providers: {', '.join(map(clean, names))}")
    added = clean(shown_spec(lasting_spec(arguments["spec"])))
    click.echo(f"{added} was not contacted. To publish there: {advice('ipfsmem sync')}")


def _show_removed(context: CommandContext, names: ProviderNames, arguments: Arguments) -> None:
    from ipfsmem.provider.contract import lasting_spec, shown_spec

    click.echo(f"Removed: {clean(shown_spec(lasting_spec(arguments['spec'])))}. Its data stays there.")
    click.echo(f"Providers: {', '.join(map(clean, names)) or 'none, so this device publishes nowhere'}")


def _warn(context: CommandContext, arguments: Arguments) -> None:
    warn_of(arguments, "spec")


def _add(context: CommandContext, memory: Memory, arguments: Arguments) -> ProviderAdded:
    result: ProviderAdded = call(add, context, memory, arguments)
    return with_warning(result, arguments)


add_command = operation_command("add", add, _show_added, ask=_warn, run=_add)
remove_command = operation_command("remove", remove, _show_removed)


def _warn_of_tested(context: CommandContext, arguments: Arguments) -> None:
    warn_of(arguments, "provider")


def _test(context: CommandContext, memory: Memory, arguments: Arguments) -> ProviderTried:
    trial: ProviderTried = call(test, context, memory, arguments)
    return with_warning(trial, arguments)


def _without_vault(context: CommandContext, arguments: Arguments) -> Memory:
    from ipfsmem.memory import Memory

    return Memory.load(mode="none", home=context.home)


def _show_tried(context: CommandContext, trial: ProviderTried, arguments: Arguments) -> None:
    width = max((len(step.what) for step in trial), default=0)
    for step in trial:
        mark, colour = _MARK[step.outcome]
        text = clean(step.text) or ("not offered" if step.outcome == "cannot" else "")
        time = style(seconds(step.seconds).rjust(7), dim=True)
        click.echo(f"{style(mark, fg=colour, bold=True)} {clean(step.what).ljust(width)} {time}  {text}")
    hint = next((step.hint for step in trial if step.outcome == "failed" and step.hint), "")
    if hint == ProviderUnavailable.hint:  # no vault was sent, and there may be none
        hint = "Check the address, or try again later."
    hint = hint.replace("Sync again", "Try again")
    if hint:
        click.echo(advice(hint), err=True)


def _end_of_test(context: CommandContext, trial: ProviderTried, arguments: Arguments) -> None:
    if trial.failed:
        click.get_current_context().exit(ProviderError.exit_code)


test_command = operation_command(
    "test",
    test,
    _show_tried,
    ask=_warn_of_tested,
    run=_test,
    end=_end_of_test,
    opens=_without_vault,
    reads=False,
    notes="It needs no vault. The exit code is that of the error if a declared capability fails.",
)


@cli_command("policy", short_help="Print the least-rights policy of a bucket")
@click.argument("spec")
def policy_command(context: CommandContext, spec: str) -> None:
    """Print the policy of AWS IAM that a key for the bucket SPEC requires: list, read, put and delete objects
    under its prefix. It needs no vault and no credentials.
    """
    from ipfsmem.memory import Memory

    with Memory.load(mode="none", home=context.home) as memory:
        policy = memory.providers.policy(spec)
    if context.json:
        context.emit_open(policy)
    else:
        click.echo(json.dumps(policy, indent=2))


def _show_checked(context: CommandContext, checks: ProvidersChecked, arguments: Arguments) -> None:
    for one in checks:
        _print_presence(one)
    if checks.missing:
        click.echo(advice(_next_step(arguments["repair"])), err=True)


def _end_of_check(context: CommandContext, checks: ProvidersChecked, arguments: Arguments) -> None:
    if checks.missing:
        click.get_current_context().exit(MissingError.exit_code)
    checks.raise_if_unknown()


check_command = operation_command(
    "check",
    check,
    _show_checked,
    end=_end_of_check,
    reads=False,
    notes="`sync` checks a part each time. The exit code is 44 if something is still missing, and 7 if a provider could not be "
    "checked or does not serve everything yet.",
)


def _print_presence(one: Presence) -> None:
    mark, colour = _PRESENCE[one.state]
    progress = f"{one.read:,} of {count(one.total, 'block')} checked" if one.read else ""
    again = f"{count(one.sent, 'block')} uploaded again" if one.sent else ""
    rest = "; ".join(part for part in (progress, again, clean(one.text)) if part)
    click.echo(f"{style(mark, fg=colour, bold=True)} {clean(one.provider)}  {rest}")
    for cid in one.examples:
        click.echo(style(f"    missing {clean(cid)}", dim=True))


def _next_step(repaired: bool) -> str:
    if not repaired:
        return "Upload the missing blocks: ipfsmem provider check --repair"
    return "This device does not have the missing blocks: run the command on another one."


def _refuse_mixed(context: CommandContext, arguments: Arguments) -> None:
    if arguments["decline"] and arguments["spec"] is not None:
        raise UsageError("--decline excludes SPEC")
    if arguments["spec"] is not None:
        warn_of(arguments, "spec")


def _follow(context: CommandContext, memory: Memory, arguments: Arguments) -> Followed:
    if not arguments["decline"]:
        move = memory.providers.moved()
        if move is not None and arguments["spec"] is None:
            with contextlib.suppress(ConfigError):  # the operation raises it, with the next step
                warned_of([move.to])
        if move is not None and not arguments["yes"] and not context.json and secret_input.can_ask():
            click.echo(f"Moved on {move.at[:10]} by {clean(move.by)}: to {clean(move.to)}.", err=True)
            question = f"Publish at {clean(arguments['spec'] or move.to)} from now on?"
            confirm(question, "not moved", default=True)
        arguments["public_ok"] = agrees_to_publish(memory, arguments["yes_public"])
    result: Followed = call(follow, context, memory, arguments)
    return with_warning(result, arguments)


def _show_followed(context: CommandContext, result: Followed, arguments: Arguments) -> None:
    if result.report is not None:
        print_report(result.report)
    print_places(result.providers)


follow_command = operation_command(
    "follow",
    follow,
    _show_followed,
    ask=_refuse_mixed,
    run=_follow,
    options=(click.Option(("--yes",), is_flag=True, help="Do not ask on a terminal."),),
    shared=(public_option,),
)


def print_places(providers: Iterable[str]) -> None:
    """Print the providers of this vault."""
    click.echo(f"Publishes at: {', '.join(map(clean, providers)) or 'nowhere'}")


for sub in (
    list_command,
    add_command,
    remove_command,
    test_command,
    policy_command,
    check_command,
    follow_command,
):
    command.add_command(sub)
