"""`ipfsmem list`: every memory on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, is_terminal, moment, style, table
from ipfsmem.errors import UsageError
from ipfsmem.operations.list import MemoryPage, list_
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.memory import Memory
    from ipfsmem.operations.hidden import HiddenTexts


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> MemoryPage | HiddenTexts:
    if not arguments["hidden_here"]:
        page: MemoryPage = call(list_, context, memory, arguments)
        arguments["any"] = bool(page.total or call(list_, context, memory, {"limit": 1}))
        return page
    if context.stacked or any(arguments[name] is not None for name in list_.names if name in arguments):
        raise UsageError("--hidden lists all hidden memories of one scope, and excludes the other options")
    from ipfsmem.operations.hidden import list_ as list_hidden  # few lists need it

    texts: HiddenTexts = call(list_hidden, context, memory, {})
    return texts


def _show(context: CommandContext, page: MemoryPage | HiddenTexts, arguments: Arguments) -> None:
    if not isinstance(page, MemoryPage):
        _print_hidden(page)
        return
    kind, tag = arguments["type"], arguments["tag"]
    chosen = "".join((f" of type {kind}" if kind else "", f" with the tag {tag}" if tag else ""))
    print_list(context, page, nothing=f"There is no memory{clean(chosen)}." if arguments["any"] else "")
    if page.next is not None:
        click.echo(
            style(f"{count(page.total, 'memory')} in total; more: --cursor {page.next}", dim=True), err=True
        )


def _print_hidden(texts: HiddenTexts) -> None:
    table(
        ("key", "hidden", "why"),
        [(one.key, moment(one.at), one.why) for one in texts],
        styles=("bold", "dim", ""),
        shrink=(2,),
        nothing="No hidden memories.",
    )
    if texts and is_terminal():
        click.echo(advice("Show one again: ipfsmem hide --back KEY"), err=True)


def print_list(context: CommandContext, page: MemoryPage, *, ours: bool = True, nothing: str = "") -> None:
    """Print memories as a table. `ours`: they are of a vault of this device, so hints name commands; `nothing`: the message for
    a person if none matches."""
    if not page and is_terminal():
        none = advice("No memories yet. Write one: ipfsmem write KEY --body TEXT") if ours else "No memories."
        click.echo(nothing or none, err=True)
        return
    rows: list[tuple[str, ...]] = []
    with_scope = bool(context.stacked) or len({item.scope for item in page}) > 1
    for item in page:
        marks = "!" * bool(item.conflicts) + "m" * item.merged + "?" * (not item.fetched)
        rows.append(
            (
                item.key,
                item.file.type,
                item.file.updated[:10],
                marks,
                item.file.name,
                item.file.description,
                *([item.scope] if with_scope else []),
            )
        )
    table(
        ("key", "type", "updated", "", "name", "description", *(["scope"] if with_scope else [])),
        rows,
        styles=("bold", "cyan", "dim", "yellow", "", "", *(["magenta"] if with_scope else [])),
        shrink=(4, 5),
    )
    if is_terminal():
        marked = sum(bool(item.conflicts) for item in page)
        tail = f", {marked} with conflicts" if marked else ""
        if marked and ours:
            tail += advice(" (ipfsmem conflicts)")
        click.echo(style(count(len(page), "memory") + tail, dim=True), err=True)


command = operation_command(
    "list",
    list_,
    _show,
    run=_run,
    options=[
        click.Option(
            ["--hidden", "hidden_here"],
            is_flag=True,
            help="List the memories that are hidden on this device, and why.",
        )
    ],
    notes="Marks: ! has conflicts, m merged from several devices, ? not downloaded to this device. If output is not a terminal: tab-separated, "
    "no headings. With several scopes, the last column is the scope.",
)
