"""`ipfsmem provider`: where encrypted blocks are stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.consent import agrees_to_publish, confirm, public_options
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import Meter, clean, moment, seconds, short, style, table
from ipfsmem.cli.sync_cmd import print_report
from ipfsmem.errors import ProviderError, ProviderUnavailable, UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
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
    """Where encrypted blocks are stored. A provider is a folder, or a kind with what it needs, like pinata or kubo:URL.

    To go to another one: `ipfsmem vault move`.
    """


@cli_command("list", short_help="Where this memory is published.")
def list_command(context: CommandContext) -> None:
    """List the providers of this memory: what each can do, and the version that this device placed there last."""
    with context.memory() as memory:
        found = memory.providers.list()
    if context.json:
        context.emit(found)
        return
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


@cli_command("add", short_help="Publish there too.")
@click.argument("spec")
def add_command(context: CommandContext, spec: str) -> None:
    """Publish at SPEC too, from the next sync on."""
    with context.memory() as memory:
        memory.providers.add(spec)
        found = memory.status().providers
    print_places(context, found)


@cli_command("remove", short_help="Do not publish there any more.")
@click.argument("spec")
def remove_command(context: CommandContext, spec: str) -> None:
    """Do not publish at SPEC any more. What is there stays there."""
    with context.memory() as memory:
        memory.providers.remove(spec)
        found = memory.status().providers
    print_places(context, found)


@cli_command("test", short_help="Try a provider out.")
@click.argument("spec")
def test_command(context: CommandContext, spec: str) -> None:
    """Try SPEC out, really: upload, listing, reading back, names, unpinning. It takes no memory and shows it none.

    The exit code is that of a provider that failed when a promise was not kept.
    """
    from ipfsmem.memory import Memory
    from ipfsmem.provider.probe import ALTOGETHER

    with Memory.load(mode="none", home=context.home) as memory:
        steps = asyncio.run(memory.providers.test(spec))
    failed = [step for step in steps if step.outcome == "failed" and step.what != ALTOGETHER]
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
        if hint == ProviderUnavailable.hint:  # no memory was sent, and there may be none
            hint = "Check the address, or try again later."
        if hint:
            click.echo(advice(hint), err=True)
    if failed:
        click.get_current_context().exit(ProviderError.exit_code)


@cli_command("check", short_help="Is everything that lives still there?")
@click.option("--repair", is_flag=True, help="Send again what is missing there and is here.")
@click.option(
    "--full",
    is_flag=True,
    help="Read every part, instead of asking for it, and of the older versions that are kept.",
)
def check_command(context: CommandContext, repair: bool, full: bool) -> None:
    """Check at each provider that everything which a new device would need is there: every part asked for, and what the
    rest is found by read; with --full all of it read, which takes as long as fetching the memory.

    `sync` does this by itself, a part at a time. The exit code is 44 when something is missing in the end, and 7 when a
    provider could not be checked, or does not serve everything yet.
    """
    from ipfsmem.errors import MissingError

    with context.memory() as memory, Meter(silent=context.json) as meter:
        found = asyncio.run(memory.providers.check(repair=repair, full=full, progress=meter))
    from ipfsmem.results import ProvidersChecked

    checked = ProvidersChecked.of(found)
    if context.json:
        context.emit(checked)
    else:
        for one in found:
            _print_presence(one)
        if checked.missing:
            click.echo(advice(_next_step(repair)), err=True)
    if checked.missing:
        click.get_current_context().exit(MissingError.exit_code)
    checked.raise_if_unknown()


def _print_presence(one: Presence) -> None:
    mark, colour = _PRESENCE[one.state]
    known = f"{one.read:,} of {count(one.total, 'part')} looked at" if one.read else ""
    again = f"{count(one.sent, 'part')} sent again" if one.sent else ""
    rest = "; ".join(part for part in (known, again, clean(one.text)) if part)
    click.echo(f"{style(mark, fg=colour, bold=True)} {clean(one.provider)}  {rest}")
    for cid in one.examples:
        click.echo(style(f"    missing {clean(cid)}", dim=True))


def _next_step(repaired: bool) -> str:
    if not repaired:
        return "Send again what this device has of it: ipfsmem provider check --repair"
    return "This device does not have what is missing: run the same on one that does."


@cli_command("follow", short_help="Go where another device moved it.")
@click.argument("spec", required=False)
@click.option(
    "--decline", is_flag=True, help="Stay where this device publishes, and hear no more of that move."
)
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
    """Publish where another device moved this memory, and no more at the places that it left.

    SPEC is what that provider is called on this machine, where that is another name. It must show this memory already.
    """
    from ipfsmem.cli import secret_input

    if decline and spec is not None:
        raise UsageError("to decline is to go nowhere: leave SPEC out")
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
    print_places(context, found)


def print_places(context: CommandContext, found: list[str]) -> None:
    """Say where this vault publishes now."""
    if context.json:
        context.emit(found)
    else:
        click.echo(f"Publishes at: {', '.join(map(clean, found)) or 'nowhere'}")


for sub in (
    list_command,
    add_command,
    remove_command,
    test_command,
    check_command,
    follow_command,
):
    command.add_command(sub)
