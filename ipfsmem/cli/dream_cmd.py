"""`ipfsmem dream`: a look through all memories that tidies up, shows what it would do before, and takes it back after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.dream_duplicates import command as duplicates_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, facts, moment, style, table
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.cli.vault_diff_cmd import print_difference
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.dreams import Proposed
    from ipfsmem.memories.dreams import Outcome, Undoing
    from ipfsmem.parts.dreams import DreamRun

#: What is said of each kind of finding.
_KINDS = {
    "broken-link": "has a broken link",
    "stale-line": "a line of its index has a broken link",
    "alike": "similar",
    "contradiction": "may contradict",
    "faded": "has faded",
}
#: Findings of which each is shown, and how many of a kind stand in full.
_SHOWN = 20


class _RunsByDefault(Subcommands):
    """A group of which one command is meant when none is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (
            args[0] in self.commands or not args[0].startswith("-") or args[0] in ("-h", "--help")
        )
        return super().parse_args(ctx, args if named else ["run", *args])


@click.group("dream", _RunsByDefault, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Tidy up the memories. `ipfsmem dream` alone is `ipfsmem dream run`.

    A dream merges duplicates, removes texts that state their own expiry, and updates links to moved
    texts. Changes that need a person's judgement are only listed. No sentence is lost, no model is
    asked, and `ipfsmem dream undo` undoes it.
    """


@cli_command("run", scoped=True, shows=True, short_help="Tidy up the memories")
@click.option("--dry-run", is_flag=True, help="Only propose changes: see `dream show` and `dream apply`.")
@click.option(
    "--model",
    is_flag=True,
    help="Let the model in the settings propose changes; it receives your texts.",
)
@click.option(
    "--if-due", is_flag=True, help="Every scope, and only if a dream is due according to `dream status`."
)
def run_command(context: CommandContext, dry_run: bool, model: bool, if_due: bool) -> None:
    """Tidy up the memories of one scope, and list the changes and the proposals for you."""
    if (dry_run or model) and if_due:
        raise UsageError("--if-due excludes --dry-run and --model, which only propose")
    from ipfsmem.parts.dreams import DreamRun

    with context.memory() as memory:
        waits_for = memory.dreams.waits_for() if if_due else ""
        if model:
            import asyncio

            done = [DreamRun(proposed=asyncio.run(memory.dreams.ask()))]
        elif if_due:
            done = memory.dreams.run_due()
        else:
            done = [DreamRun(proposed=memory.dreams.propose()) if dry_run else memory.dreams.run()]
        told = when_others_learn(memory.mode)
    if context.json:
        context.emit(done)
    else:
        _print_runs(done, told, f"No dream: {waits_for or 'another one was just done'}." if if_due else "")
    for one in done:
        if one.outcome is not None:
            _refuse_skipped(one.outcome)


def _print_runs(done: list[DreamRun], told: str, none: str) -> None:
    """What dreams came to. `none`: what is said where it was not time for one; "" where one was asked for in any case."""
    if none and not done:
        click.echo(none)
    for one in done:
        if one.outcome is None:
            _print_proposed(one.proposed)
            _print_found(one.proposed)
        elif one.outcome.id or not none:
            _print_outcome(one.outcome, told)
            _print_found(one.proposed)
    if none and done and not any(one.outcome is not None and one.outcome.id for one in done):
        click.echo("Nothing was changed.")


@cli_command("show", scoped=True, shows=True, short_help="Show the proposed changes")
def show_command(context: CommandContext) -> None:
    """Show the changes that the last `dream --dry-run` proposed, with their differences."""
    with context.memory() as memory:
        found = memory.dreams.proposed()
        if found is None:
            raise NotFoundError(
                "no proposed changes",
                hint="Propose some: ipfsmem dream run --dry-run",
            )
        here = {one.key: memory.read(one.key, counts=False) for step in found.steps for one in step.changes}
    if context.json:
        context.emit(found)
        return
    for step in found.steps:
        click.echo(style(clean(step.why), bold=True))
        for change in step.changes:
            reading = here[change.key]
            before = reading.text.splitlines() if reading is not None else []
            click.echo(f"  {change.key}" + ("" if change.text is not None else " is deleted"))
            print_difference(before, (change.text or "").splitlines(), indent=4)
    _print_sum(found)
    _print_found(found)


@cli_command("apply", scoped=True, shows=True, short_help="Apply the proposed changes")
@click.argument("proposal", required=False, metavar="[PROPOSAL]")
def apply_command(context: CommandContext, proposal: str | None) -> None:
    """Apply the changes that the last `dream --dry-run` proposed, if it is PROPOSAL. A proposal of a model
    must be named. Memories that changed since are left as they are.
    """
    from ipfsmem.memories.dreams import RULES

    with context.memory() as memory:
        made = memory.dreams.proposed()
        if proposal is None and made is not None and made.by != RULES:
            raise UsageError(
                f"{clean(made.by)} proposed this, so name the proposal",
                hint="See: ipfsmem dream show, which prints the command.",
            )
        outcome = memory.dreams.apply(proposal)
        told = when_others_learn(memory.mode)
    if context.json:
        context.emit(outcome)
    else:
        _print_outcome(outcome, told)
    _refuse_skipped(outcome)


def _refuse_skipped(outcome: Outcome) -> None:
    """Raises IncompleteError when something was not done."""
    if outcome.skipped:
        raise IncompleteError(
            f"{count(len(outcome.skipped), 'step')} not done, as somebody changed what they go by",
            hint="Propose again: ipfsmem dream run --dry-run",
        )


@cli_command("undo", scoped=True, shows=True, short_help="Undo a dream")
@click.argument("dream", required=False, metavar="[DREAM]")
def undo_command(context: CommandContext, dream: str | None) -> None:
    """Undo the last dream on this device, or the named one. Memories that changed since are left as they
    are.
    """
    with context.memory() as memory:
        undone = memory.dreams.undo(dream)
        told = when_others_learn(memory.mode)
    if context.json:
        context.emit(undone)
    else:
        back = count(len(undone.back), "memory", "memories")
        click.echo(f"The dream {undone.id} is undone: {back} as before{told}.")
    _refuse_left(undone)


def _refuse_left(undone: Undoing) -> None:
    left = [
        *(f"{key} was written since" for key in undone.changed),
        *(f"the earlier text of {key} is no longer kept" for key in undone.lost),
    ]
    if left:
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        raise IncompleteError(
            f"not undone: {'; '.join(left[:5])}{more}",
            hint="List the revisions of a memory: ipfsmem history KEY.",
        )


@cli_command("list", scoped=True, shows=True, short_help="List the dreams that can be undone here")
def list_command(context: CommandContext) -> None:
    """List the last dreams on this device: time, method and changes."""
    from ipfsmem.parts.dreams import DreamLine

    with context.memory() as memory:
        lines = [DreamLine.of(one) for one in memory.dreams.list()]
    if context.json:
        context.emit(lines)
        return
    table(
        ("dream", "when", "by", "written", "removed"),
        [(one.id, moment(one.at), clean(one.by), str(one.written), str(one.removed)) for one in lines],
        styles=("bold", "dim"),
        nothing="No dream changed anything here.",
    )


@cli_command(
    "status", scoped=True, shows=True, short_help="Show whether a dream runs, and when the next is due"
)
def status_command(context: CommandContext) -> None:
    """Show whether automatic dreams are on, when the next is due, how the last one ended, and the proposed
    changes.
    """
    with context.memory() as memory:
        found = memory.dreams.status()
    if context.json:
        context.emit(found)
        return
    facts(
        [
            ("by itself", "yes" if found.enabled and found.chosen else "no"),
            (
                "next",
                f"not yet: {found.waits_for}"
                if found.waits_for
                else "with the next `ipfsmem dream run --if-due`",
            ),
            ("under way", (found.phase or "begun") if found.under_way else ""),
            ("last", moment(found.worked) if found.worked else "never"),
            ("failed", f"{moment(found.failed)} ({found.failure})" if found.failed else ""),
            ("proposed", f"{count(found.changes, 'change')} ({found.proposed})" if found.proposed else ""),
            ("to undo", count(found.kept, "dream") if found.kept else ""),
        ]
    )


@cli_command("on", short_help="Turn on automatic dreams for this vault")
def on_command(context: CommandContext) -> None:
    """Turn on automatic dreams for this vault on this device, if the settings allow them."""
    _switch(context, True)


@cli_command("off", short_help="Turn off automatic dreams for this vault")
def off_command(context: CommandContext) -> None:
    """Turn off automatic dreams for this vault on this device."""
    _switch(context, False)


def _switch(context: CommandContext, on: bool) -> None:
    with context.memory() as memory:
        memory.dreams.switch(on)
        found = memory.dreams.status()
    if context.json:
        context.emit(found)
        return
    click.echo(f"Automatic dreams for this vault: {'yes' if found.chosen and found.enabled else 'no'}.")
    if on and not found.enabled:
        raise IncompleteError(
            "dreams are off in the settings",
            hint="Allow it: ipfsmem config set dream.enabled true",
        )


@cli_command("abort", short_help="Abort a running dream")
def abort_command(context: CommandContext) -> None:
    """Abort a running dream before it changes anything."""
    with context.memory() as memory:
        if not memory.dreams.abort():
            raise NotFoundError("no dream is running")
        found = memory.dreams.status()
    if context.json:
        context.emit(found)
    else:
        click.echo("The dream stops before its next phase.")


def _print_proposed(found: Proposed) -> None:
    for step in found.steps[:_SHOWN]:
        click.echo(f"  {clean(step.why)}")
    if len(found.steps) > _SHOWN:
        click.echo(f"  and {count(len(found.steps) - _SHOWN, 'step')} more")
    _print_sum(found)


def _print_sum(found: Proposed) -> None:
    looked = f"Looked at {count(found.looked_at, 'memory', 'memories')}."
    changes = sum(len(step.changes) for step in found.steps)
    if not changes:
        click.echo(f"{looked} Nothing to tidy up.")
        return
    left = f", {found.left:,} more are left for the next" if found.left else ""
    click.echo(
        advice(f"{looked} Proposed: {count(changes, 'change')}{left}. Apply: ipfsmem dream apply {found.id}")
    )


def _print_outcome(outcome: Outcome, told: str) -> None:
    if not outcome.id:
        click.echo("Nothing was changed.")
    else:
        did = [
            f"{what} {count(len(keys), 'memory')}"
            for what, keys in (("took away", outcome.removed), ("changed", outcome.written))
            if keys
        ]
        click.echo(advice(f"The dream {outcome.id} {' and '.join(did)}{told}. Undo: ipfsmem dream undo"))
    for why in outcome.skipped:
        click.echo(f"  not done, it changed meanwhile: {clean(why)}")
    for why in outcome.waiting:
        click.echo(f"  waits for you: {clean(why)}")
    if outcome.waiting:
        click.echo(advice("Look: ipfsmem dream show. Apply: ipfsmem dream apply"))


def _print_found(found: Proposed) -> None:
    """What a person has to judge."""
    if not found.found:
        return
    click.echo(f"For you to review: {len(found.found):,}")
    table(
        ("memory", "what", "other", "detail"),
        [(one.key, _KINDS[one.kind], one.other, clean(one.detail)) for one in found.found[:_SHOWN]],
        styles=("bold", "", "bold", "dim"),
    )
    if len(found.found) > _SHOWN:
        click.echo(f"and {len(found.found) - _SHOWN:,} more: ipfsmem dream show --json")


for _command in (
    run_command,
    show_command,
    apply_command,
    undo_command,
    list_command,
    status_command,
    on_command,
    off_command,
    abort_command,
    duplicates_command,
):
    command.add_command(_command)
