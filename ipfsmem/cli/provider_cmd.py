"""`ipfsmem provider`: where encrypted blocks are stored."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.consent import agrees_to_publish, confirm, public_options, warn_of
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Asked, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import Meter, clean, moment, seconds, short, style, table
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.errors import MissingError, ProviderError, ProviderUnavailable, UsageError
from ipfsmem.operations.providers import (
    ProviderList,
    ProviderNames,
    ProvidersChecked,
    add,
    check,
    list_,
    remove,
)
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def _show_list(context: CommandContext, found: ProviderList, asked: Asked) -> None:
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
            for one in found
        ],
        styles=("cyan", "bold", "dim"),
    )


list_command = operation_command("list", list_, _show_list, reads=False)


def _show_places(context: CommandContext, found: ProviderNames, asked: Asked) -> None:
    print_places(found)


def _warn(context: CommandContext, asked: Asked) -> None:
    warn_of([asked["spec"]])


add_command = operation_command("add", add, _show_places, ask=_warn)
remove_command = operation_command("remove", remove, _show_places)


@cli_command("test", short_help="Test a provider")
@click.argument("spec")
def test_command(context: CommandContext, spec: str) -> None:
    """Test SPEC with real calls: upload, listing, reading back, names, unpinning. It needs no vault and
    uploads no memories.

    The exit code is that of the error if a declared capability fails.
    """
    from ipfsmem.memory import Memory
    from ipfsmem.provider.probe import OVERALL

    warn_of([spec])
    with Memory.load(mode="none", home=context.home) as memory:
        steps = asyncio.run(memory.providers.test(spec))
    failed = [step for step in steps if step.outcome == "failed" and step.what != OVERALL]
    if context.json:
        from ipfsmem.results import ProviderTried

        context.emit(ProviderTried(provider=spec, steps=steps, failed=len(failed)))
    else:
        width = max((len(step.what) for step in steps), default=0)
        for step in steps:
            mark, colour = _MARK[step.outcome]
            text = clean(step.text) or ("not offered" if step.outcome == "cannot" else "")
            time = style(seconds(step.seconds).rjust(7), dim=True)
            click.echo(f"{style(mark, fg=colour, bold=True)} {clean(step.what).ljust(width)} {time}  {text}")
        hint = next((step.hint for step in failed if step.hint), "")
        if hint == ProviderUnavailable.hint:  # no vault was sent, and there may be none
            hint = "Check the address, or try again later."
        hint = hint.replace("Sync again", "Try again")
        if hint:
            click.echo(advice(hint), err=True)
    if failed:
        click.get_current_context().exit(ProviderError.exit_code)


@cli_command("policy", short_help="Print the least-rights policy of a bucket")
@click.argument("spec")
def policy_command(context: CommandContext, spec: str) -> None:
    """Print the policy of AWS IAM that a key for the bucket SPEC requires: list, read, put and delete objects
    under its prefix. It needs no vault and no credentials.
    """
    from ipfsmem.memory import Memory

    with Memory.load(mode="none", home=context.home) as memory:
        found = memory.providers.policy(spec)
    if context.json:
        context.emit_open(found)
    else:
        click.echo(json.dumps(found, indent=2))


def _show_checked(context: CommandContext, found: ProvidersChecked, asked: Asked) -> None:
    for one in found:
        _print_presence(one)
    if found.missing:
        click.echo(advice(_next_step(asked["repair"])), err=True)


def _end_of_check(context: CommandContext, found: ProvidersChecked, asked: Asked) -> None:
    if found.missing:
        click.get_current_context().exit(MissingError.exit_code)
    found.raise_if_unknown()


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
    known = f"{one.read:,} of {count(one.total, 'block')} checked" if one.read else ""
    again = f"{count(one.sent, 'block')} uploaded again" if one.sent else ""
    rest = "; ".join(part for part in (known, again, clean(one.text)) if part)
    click.echo(f"{style(mark, fg=colour, bold=True)} {clean(one.provider)}  {rest}")
    for cid in one.examples:
        click.echo(style(f"    missing {clean(cid)}", dim=True))


def _next_step(repaired: bool) -> str:
    if not repaired:
        return "Upload the missing blocks: ipfsmem provider check --repair"
    return "This device does not have the missing blocks: run the command on another one."


@cli_command("follow", short_help="Follow another device to its new provider")
@click.argument("spec", required=False)
@click.option("--decline", is_flag=True, help="Keep publishing here, and do not ask about this move again.")
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@public_options
def follow_command(
    context: CommandContext,
    spec: str | None,
    decline: bool,
    yes: bool,
    yes_public: bool,
    allow: tuple[str, ...],
) -> None:
    """Publish at the providers to which another device moved this vault, and leave those that it left.

    SPEC is the provider's name on this machine, if it differs. It must already have this vault.
    """
    from ipfsmem.cli import secret_input

    if decline and spec is not None:
        raise UsageError("--decline excludes SPEC")
    warn_of([spec] if spec is not None else [])
    with context.memory() as memory:
        move = memory.providers.moved()
        if decline:
            memory.providers.decline()
        else:
            if move is not None and not yes and not context.json and secret_input.can_ask():
                click.echo(f"Moved on {move.at[:10]} by {clean(move.by)}: to {clean(move.to)}.", err=True)
                question = f"Publish at {clean(spec or move.to)} from now on?"
                confirm(question, "not moved", default=True)
            public_ok = agrees_to_publish(memory, yes_public)
            with Meter(silent=context.json) as meter:
                report = asyncio.run(
                    memory.providers.follow(spec, public_ok=public_ok, allow=allow, progress=meter)
                )
            if not context.json:
                print_report(report)
        found = memory.status().providers
    if context.json:
        context.emit(ProviderNames(providers=tuple(found)))
    else:
        print_places(found)


def print_places(found: Iterable[str]) -> None:
    """Print the providers of this vault."""
    click.echo(f"Publishes at: {', '.join(map(clean, found)) or 'nowhere'}")


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
