"""`ipfsmem dream`: propose changes that clean up memories, apply them, and undo them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.dream_duplicates import command as duplicates_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, facts, moment, style, table
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.cli.vault_diff_cmd import print_difference
from ipfsmem.errors import IncompleteError, NotFoundError, UsageError
from ipfsmem.operations.dreams import (
    DreamLines,
    DreamRun,
    DreamStatus,
    abort,
    apply,
    list_,
    proposed,
    run,
    status,
    switch,
    undo,
)
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.device.dreams import Proposed
    from ipfsmem.memories.dreams import Outcome, Undoing
    from ipfsmem.memory import Memory
    from ipfsmem.operation import Operation


#: The message of each kind of finding.
_KINDS = {
    "broken-link": "has a broken link",
    "stale-line": "a line of its index has a broken link",
    "alike": "similar",
    "contradiction": "may contradict",
    "faded": "has faded",
}
#: Number of findings shown.
_SHOWN = 20


class _RunsByDefault(Subcommands):
    """A group with a default command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names_subcommand = args and (
            args[0] in self.commands or not args[0].startswith("-") or args[0] in ("-h", "--help")
        )
        return super().parse_args(ctx, args if names_subcommand else ["run", *args])


@click.group("dream", _RunsByDefault, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Dreams: automatic clean-ups of memories. `ipfsmem dream` alone runs `ipfsmem dream run`.

    A dream merges duplicates, removes texts that state their own expiry, and updates links to moved
    texts. Changes that need a person's judgement are only listed. A model is asked only with --model.
    `ipfsmem dream undo` reverts a dream.
    """


def _refuse_mixed(context: CommandContext, arguments: Arguments) -> None:
    if (arguments["dry_run"] or arguments["model"]) and arguments["if_due"]:
        raise UsageError("--if-due excludes --dry-run and --model, which only propose")
    arguments["apply"] = not (arguments["dry_run"] or arguments["model"])


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> list[DreamRun]:
    arguments["told"] = when_others_learn(memory.mode)
    if not arguments["if_due"]:
        return [call(run, context, memory, arguments)]
    waits_for = memory.dreams.status().waits_for
    arguments["none"] = f"No dream: {waits_for or 'another one just ended'}."
    return [*memory.dreams.run_due()]


def _show_runs(context: CommandContext, runs: list[DreamRun], arguments: Arguments) -> None:
    _print_runs(runs, arguments["told"], arguments.get("none", ""))


def _refuse_skipped_runs(context: CommandContext, runs: list[DreamRun], arguments: Arguments) -> None:
    for one in runs:
        if one.outcome is not None:
            _refuse_skipped(context, one.outcome, arguments)


run_command = operation_command(
    "run",
    run,
    _show_runs,
    ask=_refuse_mixed,
    run=_run,
    end=_refuse_skipped_runs,
    options=(
        click.Option(
            ("--dry-run",), is_flag=True, help="Only propose changes: see `dream show` and `dream apply`."
        ),
        click.Option(
            ("--if-due",),
            is_flag=True,
            help="Every scope, and only if a dream is due according to `dream status`.",
        ),
    ),
    shows=True,
)


def _print_runs(runs: list[DreamRun], suffix: str, none: str) -> None:
    """Print the results of dreams. `none`: the message if no dream was due; "" if one was requested."""
    if none and not runs:
        click.echo(none)
    for one in runs:
        if one.outcome is None:
            _print_proposed(one.proposed)
            _print_found(one.proposed)
        elif one.outcome.id or not none:
            _print_outcome(one.outcome, suffix)
            _print_found(one.proposed)
    if none and runs and not any(one.outcome is not None and one.outcome.id for one in runs):
        click.echo("Nothing was changed.")


def _with_texts(context: CommandContext, memory: Memory, arguments: Arguments) -> Proposed | None:
    proposal: Proposed | None = call(proposed, context, memory, arguments)
    changes = [] if proposal is None else [one for step in proposal.steps for one in step.changes]
    arguments["here"] = {one.key: memory.read(one.key, counts=False) for one in changes}
    return proposal


def _show_proposed(context: CommandContext, proposal: Proposed, arguments: Arguments) -> None:
    for step in proposal.steps:
        click.echo(style(clean(step.why), bold=True))
        for change in step.changes:
            reading = arguments["here"][change.key]
            before = reading.text.splitlines() if reading is not None else []
            click.echo(f"  {change.key}" + ("" if change.text is not None else " is deleted"))
            print_difference(before, (change.text or "").splitlines(), indent=4)
    _print_sum(proposal)
    _print_found(proposal)


def _nothing_proposed(context: CommandContext, arguments: Arguments) -> NotFoundError:
    return NotFoundError("no proposed changes", hint="Propose some: ipfsmem dream run --dry-run")


def _noting_sync(op: Operation[..., Any]) -> Callable[[CommandContext, Memory, Arguments], Any]:
    """Return a function that runs an operation and records when other devices get its result."""

    def called(context: CommandContext, memory: Memory, arguments: Arguments) -> Any:
        arguments["told"] = when_others_learn(memory.mode)
        return call(op, context, memory, arguments)

    return called


def _show_outcome(context: CommandContext, outcome: Outcome, arguments: Arguments) -> None:
    _print_outcome(outcome, arguments["told"])


def _refuse_skipped(context: CommandContext, outcome: Outcome, arguments: Arguments) -> None:
    if outcome.skipped:
        raise IncompleteError(
            f"{count(len(outcome.skipped), 'step')} skipped: the texts were changed since the proposal",
            hint="Propose again: ipfsmem dream run --dry-run",
        )


def _show_undone(context: CommandContext, undone: Undoing, arguments: Arguments) -> None:
    back = count(len(undone.back), "memory", "memories")
    click.echo(f"The dream {undone.id} is undone: {back} restored{arguments['told']}.")


def _refuse_left(context: CommandContext, undone: Undoing, arguments: Arguments) -> None:
    remaining = [
        *(f"{key} was written since" for key in undone.changed),
        *(f"the earlier text of {key} is no longer kept" for key in undone.lost),
    ]
    if remaining:
        more = f" and {len(remaining) - 5} more" if len(remaining) > 5 else ""
        raise IncompleteError(
            f"not undone: {'; '.join(remaining[:5])}{more}",
            hint="List the revisions of a memory: ipfsmem history KEY.",
        )


def _show_dreams(context: CommandContext, dreams: DreamLines, arguments: Arguments) -> None:
    table(
        ("dream", "when", "by", "written", "removed"),
        [(one.id, moment(one.at), clean(one.by), str(one.written), str(one.removed)) for one in dreams],
        styles=("bold", "dim"),
        nothing="No dream changed anything here.",
    )


def _show_status(context: CommandContext, state: DreamStatus, arguments: Arguments) -> None:
    facts(
        [
            ("automatic", "yes" if state.enabled and state.chosen else "no"),
            (
                "next",
                f"not yet: {state.waits_for}"
                if state.waits_for
                else "with the next `ipfsmem dream run --if-due`",
            ),
            ("under way", (state.phase or "begun") if state.under_way else ""),
            ("last", moment(state.worked) if state.worked else "never"),
            ("failed", f"{moment(state.failed)} ({state.failure})" if state.failed else ""),
            ("proposed", f"{count(state.changes, 'change')} ({state.proposed})" if state.proposed else ""),
            ("to undo", count(state.kept, "dream") if state.kept else ""),
        ]
    )


@cli_command("on", short_help="Turn on automatic dreams for this vault")
def on_command(context: CommandContext) -> None:
    """Turn on automatic dreams, which clean up memories, for this vault on this device.

    The setting `dream.enabled` must allow them.
    """
    _switch(context, True)


@cli_command("off", short_help="Turn off automatic dreams for this vault")
def off_command(context: CommandContext) -> None:
    """Turn off automatic dreams for this vault on this device."""
    _switch(context, False)


def _switch(context: CommandContext, on: bool) -> None:
    with context.memory() as memory:
        state: DreamStatus = call(switch, context, memory, {"chosen": on})
    if context.json:
        context.emit(state)
        return
    click.echo(f"Automatic dreams for this vault: {'yes' if state.chosen and state.enabled else 'no'}.")
    if on and not state.enabled:
        raise IncompleteError(
            "dreams are off in the settings",
            hint="Allow it: ipfsmem config set dream.enabled true",
        )


def _show_abort(context: CommandContext, state: DreamStatus, arguments: Arguments) -> None:
    click.echo("The dream stops before its next phase.")


def _print_proposed(proposal: Proposed) -> None:
    for step in proposal.steps[:_SHOWN]:
        click.echo(f"  {clean(step.why)}")
    if len(proposal.steps) > _SHOWN:
        click.echo(f"  and {count(len(proposal.steps) - _SHOWN, 'step')} more")
    _print_sum(proposal)


def _print_sum(proposal: Proposed) -> None:
    summary = f"Scanned {count(proposal.looked_at, 'memory', 'memories')}."
    changes = sum(len(step.changes) for step in proposal.steps)
    if not changes:
        click.echo(f"{summary} Nothing to clean up.")
        return
    rest = f", {proposal.left:,} more are left for the next" if proposal.left else ""
    click.echo(
        advice(
            f"{summary} Proposed: {count(changes, 'change')}{rest}. Apply: ipfsmem dream apply {proposal.id}"
        )
    )


def _print_outcome(outcome: Outcome, suffix: str) -> None:
    if not outcome.id:
        click.echo("Nothing was changed.")
    else:
        did = [
            f"{verb} {count(len(keys), 'memory')}"
            for verb, keys in (("removed", outcome.removed), ("changed", outcome.written))
            if keys
        ]
        click.echo(advice(f"The dream {outcome.id} {' and '.join(did)}{suffix}. Undo: ipfsmem dream undo"))
    for why in outcome.skipped:
        click.echo(f"    skipped, changed meanwhile: {clean(why)}")
    for why in outcome.waiting:
        click.echo(f"    needs your review: {clean(why)}")
    if outcome.waiting:
        click.echo(advice("Review: ipfsmem dream show. Apply: ipfsmem dream apply"))


def _print_found(proposal: Proposed) -> None:
    """Print the findings that a person decides on."""
    if not proposal.found:
        return
    click.echo(f"For you to review: {len(proposal.found):,}")
    table(
        ("memory", "what", "other", "detail"),
        [(one.key, _KINDS[one.kind], one.other, clean(one.detail)) for one in proposal.found[:_SHOWN]],
        styles=("bold", "", "bold", "dim"),
    )
    if len(proposal.found) > _SHOWN:
        click.echo(f"and {len(proposal.found) - _SHOWN:,} more: ipfsmem dream show --json")


for _command in (
    run_command,
    operation_command("show", proposed, _show_proposed, run=_with_texts, absent=_nothing_proposed),
    operation_command(
        "apply", apply, _show_outcome, run=_noting_sync(apply), end=_refuse_skipped, shows=True
    ),
    operation_command("undo", undo, _show_undone, run=_noting_sync(undo), end=_refuse_left, shows=True),
    operation_command("list", list_, _show_dreams),
    operation_command("status", status, _show_status),
    operation_command("abort", abort, _show_abort),
    on_command,
    off_command,
    duplicates_command,
):
    command.add_command(_command)
