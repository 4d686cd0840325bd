"""`ipfsmem connect NAME`: add an entry to the settings of an agent's program, after showing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, clean_lines, is_terminal, moment, style, table
from ipfsmem.cli.project_commands import bind_project, connect_projects, refuse_wrong_projects

if TYPE_CHECKING:
    from ipfsmem.agents.connecting import ConnectionPlan
    from ipfsmem.agents.programs.program import Program, Surroundings
    from ipfsmem.results import Connected, ProgramState


@cli_command("connect")
@click.argument("program", metavar="NAME", required=False, callback=not_empty)
@click.option(
    "--list",
    "as_list",
    is_flag=True,
    help="List the supported programs, and which are installed and connected.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes without writing them.")
@click.option("--print", "as_text", is_flag=True, help="Print the settings to add by hand.")
@click.option("--replace", is_flag=True, help="Replace an entry of the same name that someone else wrote.")
@click.option(
    "--project",
    callback=not_empty,
    metavar="DIR",
    help="Project folder; for Claude Code, also link its memory folder.",
)
@click.option("--all", "everything", is_flag=True, help="All projects that Claude Code currently knows.")
@click.option("--follow", is_flag=True, help="With --all: also connect future projects, each to a new scope.")
@click.option("--scope", callback=not_empty, metavar="NAME", help="Scope of the project.")
@click.option("--new", is_flag=True, help="Create a new scope for this project.")
@click.option("--yes", is_flag=True, help="Do not ask before connecting projects.")
def command(
    context: CommandContext,
    program: str | None,
    as_list: bool,
    dry_run: bool,
    as_text: bool,
    replace: bool,
    project: str | None,
    everything: bool,
    follow: bool,
    scope: str | None,
    new: bool,
    yes: bool,
) -> None:
    """Connect an agent's program to this vault. --list shows the supported programs.

    `connect` adds an entry for the MCP server, and hooks if the program has them, to the program's own
    settings. It prints the difference before it writes. `ipfsmem disconnect NAME` removes exactly these
    changes.

    With --project DIR, agents that work in DIR get the memories of one scope, which is shown before
    anything is written. For Claude Code, also with --all, the project's memory folder becomes a linked
    folder of that scope. Hooks never connect a project on their own.
    """
    from ipfsmem.errors import UsageError

    if follow and not everything:
        raise UsageError(
            "--follow requires --all", hint="Add --all: ipfsmem connect claude-code --all --follow"
        )
    refuse_wrong_projects(program, project, everything, about_one=scope is not None or new)
    if as_list:
        if program is not None:
            raise UsageError("--list lists all programs and accepts no name")
        _list(context)
        return
    if program is None:
        raise UsageError("no program is named", hint="List the supported programs: ipfsmem connect --list.")
    from ipfsmem.agents.command_line import launch
    from ipfsmem.agents.connecting import plan_connect, snippets
    from ipfsmem.agents.programs import program_named

    target = program_named(program)
    context.refuse_missing_memory()
    words = launch(context.vault_name, context.home)
    if as_text:
        texts = snippets(surroundings(), target, words)
        if context.json:
            context.emit(texts)
        for text in () if context.json else texts:
            click.echo(f"{style(clean(text.path), bold=True)}\n{clean_lines(text.text)}", nl=False)
        return
    import time

    plan = plan_connect(
        context.home, surroundings(), target, words, now=time.time_ns() // 1_000_000, replace=replace
    )
    if project is not None or everything:

        def enter() -> None:
            if context.json:
                if not dry_run:
                    plan.carry_out()
                return
            answer = carry_out(context, plan, dry_run=dry_run, say_nothing_written=False)
            if not dry_run:
                _say_done(context, target, answer)

        if project is not None and target.name != "claude-code":
            bind_project(context, folder=project, scope=scope, new=new, dry_run=dry_run, first=enter)
            return
        connect_projects(
            context,
            folder=project,
            scope=scope,
            new=new,
            dry_run=dry_run,
            yes=yes,
            follow=follow,
            first=enter,
        )
        return
    answer = carry_out(context, plan, dry_run=dry_run)
    if not context.json and not dry_run:
        _say_done(context, target, answer)


def _say_done(context: CommandContext, program: Program, answer: Connected) -> None:
    from ipfsmem.vault.unlocking import needs_passphrase

    outcome = "is connected now" if answer.written else "is already connected; no changes"
    click.echo(f"{program.title} {outcome}.")
    print_notes(answer)
    if needs_passphrase(context.folder):
        locked = advice("It gets no memories while this vault is locked: ipfsmem unlock")
        click.echo(style("note: ", fg="yellow") + locked)


def print_notes(answer: Connected) -> None:
    """Print the notes on the written settings."""
    for note in answer.notes if answer.written else ():
        click.echo(style("note: ", fg="yellow") + advice(note))


def carry_out(
    context: CommandContext, plan: ConnectionPlan, *, dry_run: bool, say_nothing_written: bool = True
) -> Connected:
    """Show the difference, then write it, unless it is a dry run. With --json the answer is printed at the end.
    `say_nothing_written`: a dry run ends with a line that says so, unless it shows more than these settings."""
    answer = plan.answer(written=plan.changes and not dry_run)
    if not context.json:
        for file in answer.files:
            click.echo("\n".join(map(_coloured, clean_lines(file.difference).split("\n"))))
        if dry_run and say_nothing_written:
            click.echo("Nothing was written." if answer.files else "No changes.")
    if not dry_run:
        plan.carry_out()
    if context.json:
        context.emit(answer)
    return answer


def surroundings() -> Surroundings:
    """Return this user's environment."""
    import os
    import sys

    from ipfsmem.agents.programs.program import Surroundings
    from ipfsmem.config import user_home

    return Surroundings(user=user_home(), environment=os.environ, system=sys.platform)


def _list(context: CommandContext) -> None:
    from ipfsmem.agents.connecting import states

    programs = states(context.home, surroundings())
    if context.json:
        context.emit(programs)
        return
    table(
        ("program", "here", "connected", "since", "problem"),
        [
            (one.program, "yes" if one.here else "no", _state(one), moment(one.since), _to_know(one))
            for one in programs
        ],
        styles=("bold", "", "cyan", "dim"),
    )


def _state(one: ProgramState) -> str:
    return "yes" if one.connected else "no" if one.since is None else "in part"


def _to_know(one: ProgramState) -> str:
    if one.problem:
        return one.problem
    return f"changed or deleted since: {', '.join(one.changed)}" if one.changed else ""


def _coloured(line: str) -> str:
    if not is_terminal() or line.startswith(("+++", "---")):
        return line
    return style(line, fg="green") if line[:1] == "+" else style(line, fg="red") if line[:1] == "-" else line
