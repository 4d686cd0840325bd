"""`ipfsmem fact`: single sentences with a category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, earlier, moment, style, table
from ipfsmem.cli.status_cmd import when_others_learn
from ipfsmem.operations.facts.add import add
from ipfsmem.operations.facts.delete import delete
from ipfsmem.operations.facts.edit import edit
from ipfsmem.operations.facts.history import EarlierFacts, history
from ipfsmem.operations.facts.list import FactPage, list_
from ipfsmem.operations.facts.restore import restore
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memories.facts import Fact, Remembered
    from ipfsmem.memory import Memory


@click.group("fact", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Facts: single sentences with a category. Each is a memory, so recall, context and sync include it.

    A new fact is compared with the existing ones: a known fact is not written twice, and a more detailed
    one replaces the old text. `fact restore` brings replaced texts back.
    """


def _show_added(context: CommandContext, result: Remembered, arguments: Arguments) -> None:
    key, was = result.fact.key, clean(result.was)
    messages = {
        "kept": f"{key} already says this.",
        "updated": f"{key} now says this, instead of: {was}",
        "added": f"{key} is added.",
    }
    click.echo(messages[result.action])
    if result.conflict:
        other = was if result.action == "added" else "its earlier text"
        click.echo(advice(f"note: it contradicts {other}. See: ipfsmem list --tag conflict"), err=True)
    if result.hidden:
        gone = count(len(result.hidden), "entry", "entries")
        click.echo(advice(f"{gone} is hidden on this device. See: ipfsmem list --hidden"), err=True)


def _show_list(context: CommandContext, page: FactPage, arguments: Arguments) -> None:
    chosen = arguments["kind"] is not None or arguments["category"] is not None
    table(
        ("key", "category", "written", "fact"),
        [
            (
                one.key,
                one.category if one.kind == "fact" else f"{one.kind}, {one.category}",
                moment(one.changed),
                f"{one.text}{'' if one.own else '  (pending)'}",
            )
            for one in page
        ],
        styles=("bold", "cyan", "dim", ""),
        shrink=(3,),
        nothing="No facts of this kind and category." if chosen else "No facts.",
    )
    if page.next is not None:
        click.echo(style(f"More: --cursor {page.next}", dim=True), err=True)


def _show_history(context: CommandContext, revisions: EarlierFacts, arguments: Arguments) -> None:
    key = arguments["key"]
    rows = ((one.key if key is None else str(one.number), one.until, one.why, one.text) for one in revisions)
    nothing = "No deleted facts." if key is None else f"{clean(key)} has no earlier text."
    earlier(rows, "key" if key is None else "number", "text", nothing)


def _run_delete(context: CommandContext, memory: Memory, arguments: Arguments) -> Fact:
    arguments["learn"] = when_others_learn(memory.mode)
    gone: Fact = call(delete, context, memory, arguments)
    return gone


def _show_deleted(context: CommandContext, gone: Fact, arguments: Arguments) -> None:
    click.echo(
        advice(f"{gone.key} is deleted here{arguments['learn']}. Restore it: ipfsmem fact restore {gone.key}")
    )


def _show_changed(context: CommandContext, fact: Fact, arguments: Arguments) -> None:
    click.echo(f"{fact.key} now says: {clean(fact.text)}")


for _command in (
    operation_command("add", add, _show_added),
    operation_command("list", list_, _show_list),
    operation_command("edit", edit, _show_changed),
    operation_command("history", history, _show_history),
    operation_command("delete", delete, _show_deleted, run=_run_delete),
    operation_command("restore", restore, _show_changed),
):
    command.add_command(_command)
