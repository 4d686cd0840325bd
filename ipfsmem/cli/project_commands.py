"""`ipfsmem connect claude-code --project DIR` and the like: show, connect and disconnect the projects of this vault.

`agents/adoption.py` does the work; here it is shown and confirmed first.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.printing import clean, style
from ipfsmem.errors import IncompleteError, IpfsmemError, UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipfsmem.agents.adoption import AdoptionPlan, NotPlanned
    from ipfsmem.agents.claude_folders import ClaudeHome
    from ipfsmem.device.project_folders import ProjectFolder
    from ipfsmem.memory import Memory
    from ipfsmem.results import ProjectFacts, ProjectLeft, ProjectsConnected


def refuse_wrong_projects(
    program: str | None, folder: str | None, everything: bool, *, about_one: bool = False
) -> None:
    """Raise UsageError for options on projects that do not apply. `about_one`: an option for one project only was given."""
    if about_one and folder is None:
        raise UsageError("--scope and --new require --project", hint="Add --project DIR.")
    if folder is None and not everything:
        return
    if folder is not None and everything:
        raise UsageError("--project and --all exclude each other")
    if program is None or (everything and program != "claude-code"):
        raise UsageError(
            "--all is for claude-code only",
            hint="Connect one project: ipfsmem connect codex --project DIR. All of Claude Code: ipfsmem connect claude-code --all",
        )


def connect_projects(
    context: CommandContext,
    *,
    folder: str | None,
    scope: str | None,
    new: bool,
    dry_run: bool,
    yes: bool,
    follow: bool = False,
    first: Callable[[], None],
) -> None:
    """Adopt the memory folder of one project, or, after listing them, of all that Claude Code knows. `folder` None: all;
    `follow`: also future ones; `first`: called before the first change."""
    from ipfsmem.agents.adoption import plan_all, plan_project
    from ipfsmem.agents.claude_folders import ClaudeHome
    from ipfsmem.device.project_folders import follow_program

    with context.memory() as memory:
        claude = ClaudeHome.of(os.environ)
        unplanned: list[NotPlanned] = []
        if folder is not None:
            plans = [plan_project(memory, claude, folder, scope=scope, new=new)]
        else:
            plans, unplanned = plan_all(memory, claude)
        if not context.json:
            _show(plans, unplanned)
        failed: list[ProjectLeft] = []
        if not dry_run and any(not plan.done and (folder is None or plan.named_in) for plan in plans):
            _agree(plans, yes)
        first()
        if not dry_run:
            failed = _carry_out(memory, plans)
            if follow:
                follow_program(memory.replica, "claude-code", follow=True)
        answer = _answer(plans, unplanned, failed, dry_run=dry_run)
        remarks = [] if dry_run else [*_remarks(memory, plans), *_left_beside(memory, claude, plans)]
        published = memory.mode.published
    if context.json:
        context.emit(answer)
    elif dry_run:
        click.echo("Nothing was changed.")
    else:
        _say_connected(plans, failed)
        if follow:
            click.echo("Future projects are connected at their first session.")
    if not context.json and published and any(not one.error for one in unplanned):
        click.echo(advice("To get memories of another machine first: ipfsmem sync."))
    for text in () if context.json else remarks:
        click.echo(style("note: ", fg="yellow") + advice(text))
    wrong = [one for one in answer.left if one.error]
    if wrong and not dry_run:
        raise IncompleteError(
            f"{count(len(wrong), 'project')} could not be connected: {wrong[0].folder}: {wrong[0].error}",
            hint="Connect each separately: ipfsmem connect claude-code --project DIR",
        )


def bind_project(
    context: CommandContext,
    *,
    folder: str,
    scope: str | None,
    new: bool,
    dry_run: bool,
    first: Callable[[], None],
) -> None:
    """Connect a folder to a scope, for a program without memories of its own there. As `connect_projects`."""
    from ipfsmem.agents.projects import bind, choose_scope, find_connected
    from ipfsmem.files.projects import project_at
    from ipfsmem.results import ProjectFacts, ProjectsConnected

    with context.memory() as memory:
        project = project_at(folder)
        choice = choose_scope(memory, project, scope=scope, new=new)
        _, row = find_connected(memory, project.folder)
        is_connected = row is not None and (row.path, row.scope) == (str(project.folder), choice.scope)
        label = clean(str(project.folder))
        if not context.json:
            click.echo(style(label, bold=True))
            kind = "the new scope" if choice.new else "the scope"
            click.echo(
                f"  {kind} {choice.scope} ({clean(choice.why)}){': already connected' if is_connected else ''}"
            )
        first()
        if not dry_run and not is_connected:
            bind(memory, project, choice)
    if context.json:
        facts = ProjectFacts(
            folder=str(project.folder),
            memory_folder="",
            scope=choice.scope,
            new_scope=choice.new,
            why=choice.why,
            files=0,
            connected_before=is_connected,
        )
        context.emit(ProjectsConnected(projects=[facts], left=[], dry_run=dry_run))
    elif dry_run:
        click.echo("Nothing was changed.")
    else:
        click.echo(f"{label} {'was already connected' if is_connected else 'is connected now'}.")


def disconnect_projects(context: CommandContext, *, folder: str | None, dry_run: bool) -> None:
    """Unlink the memory folder of one project, or of all. `folder` None: all."""
    from ipfsmem.agents.adoption import connected_project, let_go
    from ipfsmem.device.project_folders import connected_folders, follow_program
    from ipfsmem.results import ProjectsDisconnected

    with context.memory() as memory:
        rows = (
            [connected_project(memory, folder)] if folder is not None else connected_folders(memory.replica)
        )
        if folder is None and not dry_run:
            follow_program(memory.replica, "claude-code", follow=False)
        stuck: list[tuple[ProjectFolder, IpfsmemError]] = []
        for row in rows:
            try:
                if not dry_run:
                    let_go(memory, row)
            except IpfsmemError as error:
                if folder is not None:
                    raise
                stuck.append((row, error))
                continue
            if not context.json:
                would = "would be disconnected" if dry_run else "is disconnected"
                stay = f"; the files in {clean(_adopted(row.adopted))} stay" if row.adopted else ""
                click.echo(f"{clean(row.path)} {would}{stay}.")
    if context.json:
        gone = [row.path for row in rows if row not in [one for one, _ in stuck]]
        context.emit(ProjectsDisconnected(folders=gone, dry_run=dry_run))
    elif dry_run:
        click.echo("Nothing was changed.")
    elif not rows:
        click.echo("No connected projects.")
    if stuck:
        row, first = stuck[0]
        raise IncompleteError(
            f"{count(len(stuck), 'project')} could not be disconnected: {row.path}: {first}", hint=first.hint
        )


def say_what_stays(context: CommandContext) -> None:
    """Print that the folders of projects stay linked without the entry in Claude Code's settings. Prompts for no passphrase."""
    from ipfsmem.device.project_folders import connected_folders
    from ipfsmem.errors import NotFoundError
    from ipfsmem.memory import Memory

    if context.json:
        return
    how = "Unlink them: ipfsmem disconnect claude-code --all"
    try:
        with Memory.load(context.vault_name, home=context.home) as memory:
            stay = sum(bool(row.adopted) for row in connected_folders(memory.replica))
    except NotFoundError:
        return
    except IpfsmemError:
        click.echo(advice(f"The memory folders of connected projects, if any, stay linked. {how}"))
        return
    if stay:
        click.echo(advice(f"The memory folders of {count(stay, 'project')} stay linked. {how}"))


def _adopted(adopted: dict[str, str]) -> str:
    return ", ".join(adopted.values()) or "its folder"


def _show(plans: list[AdoptionPlan], unplanned: list[NotPlanned]) -> None:
    for plan in plans:
        click.echo(f"{style(clean(str(plan.project.folder)), bold=True)}")
        kind = "the new scope" if plan.choice.new else "the scope"
        click.echo(f"  {kind} {plan.choice.scope} ({clean(plan.choice.why)})")
        moved = f", named in {clean(str(plan.named_in))}" if plan.named_in is not None else ""
        state = ": already connected" if plan.done else ""
        click.echo(f"  {clean(str(plan.folder))}, {count(plan.files, 'file')}{moved}{state}")
    for one in unplanned:
        why = clean(one.error) if one.error else "no memories yet"
        click.echo(f"{clean(str(one.folder))}: skipped, {why}")
    if not plans and not unplanned:
        click.echo("Claude Code knows no project on this device.")


def _say_connected(plans: list[AdoptionPlan], failed: list[ProjectLeft]) -> None:
    gone = {one.folder for one in failed}
    for plan in plans:
        if (folder := str(plan.project.folder)) not in gone:
            state = "was already connected" if plan.done else "is connected now"
            click.echo(f"{clean(folder)} {state}.")


def _agree(plans: list[AdoptionPlan], yes: bool) -> None:
    from ipfsmem.cli import secret_input
    from ipfsmem.cli.consent import confirm

    if yes:
        return
    number = sum(not plan.done for plan in plans)
    if not secret_input.can_ask():
        mentions = "".join(
            f", in {plan.folder}, which {plan.named_in} names" for plan in plans if plan.named_in
        )
        raise UsageError(f"this connects {count(number, 'project')}{mentions}", hint="Confirm: --yes")
    confirm(f"Connect {'these' if number > 1 else 'this'} {count(number, 'project')}?", "not connected")


def _carry_out(memory: Memory, plans: list[AdoptionPlan]) -> list[ProjectLeft]:
    from ipfsmem.agents.adoption import carry_out
    from ipfsmem.results import ProjectLeft

    failed: list[ProjectLeft] = []
    for plan in plans:
        if plan.done:
            continue
        try:
            carry_out(memory, plan)
        except IpfsmemError as error:
            if len(plans) == 1:
                raise
            failed.append(ProjectLeft(folder=str(plan.project.folder), error=str(error), hint=error.hint))
    return failed


def _answer(
    plans: list[AdoptionPlan], unplanned: list[NotPlanned], failed: list[ProjectLeft], *, dry_run: bool
) -> ProjectsConnected:
    from ipfsmem.results import ProjectLeft, ProjectsConnected

    gone = {one.folder for one in failed}
    return ProjectsConnected(
        projects=[_facts(plan) for plan in plans if str(plan.project.folder) not in gone],
        left=[
            *(ProjectLeft(folder=str(one.folder), error=one.error, hint=one.hint) for one in unplanned),
            *failed,
        ],
        dry_run=dry_run,
    )


def _facts(plan: AdoptionPlan) -> ProjectFacts:
    from ipfsmem.results import ProjectFacts

    return ProjectFacts(
        folder=str(plan.project.folder),
        memory_folder=str(plan.folder),
        scope=plan.choice.scope,
        new_scope=plan.choice.new,
        why=plan.choice.why,
        files=plan.files,
        connected_before=plan.done,
    )


def _left_beside(memory: Memory, claude: ClaudeHome, plans: list[AdoptionPlan]) -> list[str]:
    from ipfsmem.agents.adoption import unlinked_worktree_folders

    attached = {one.path for one in memory.folders.list()}
    return [
        f"what Claude Code keeps for another working tree is not imported: ipfsmem folder attach {shlex.quote(str(place))} --scope {scope}"
        for place, scope in unlinked_worktree_folders(claude, plans)
        if str(place) not in attached
    ]


def _remarks(memory: Memory, plans: list[AdoptionPlan]) -> list[str]:
    paths = {str(plan.folder) for plan in plans}
    return [text for one in memory.folders.list() if one.path in paths for text in one.remarks]
