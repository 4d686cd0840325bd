"""`ipfsmem disconnect NAME`: remove the entries of `connect` from a program's settings, and nothing else."""

from __future__ import annotations

import click

from ipfsmem.cli.connect_cmd import carry_out, print_notes, surroundings
from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.project_commands import disconnect_projects, refuse_wrong_projects, say_what_stays


@cli_command("disconnect")
@click.argument("program", metavar="NAME", callback=not_empty)
@click.option("--dry-run", is_flag=True, help="Show the changes without writing them.")
@click.option("--replace", is_flag=True, help="Remove the entry even if it was edited since.")
@click.option(
    "--project", callback=not_empty, metavar="DIR", help="Only unlink this project's memory folder."
)
@click.option("--all", "everything", is_flag=True, help="Only unlink the memory folders of all projects.")
def command(
    context: CommandContext,
    program: str,
    dry_run: bool,
    replace: bool,
    project: str | None,
    everything: bool,
) -> None:
    """Remove from a program's settings what `connect` added. A file without other changes is restored
    byte for byte; in other files, only the entries of ipfsmem are removed. The command needs no vault
    and no network.
    """
    from ipfsmem.agents.connecting import plan_disconnect
    from ipfsmem.agents.programs import program_named

    refuse_wrong_projects(program, project, everything)
    if project is not None or everything:
        disconnect_projects(context, folder=project, dry_run=dry_run)
        return
    target = program_named(program)
    plan = plan_disconnect(context.home, surroundings(), target, replace=replace)
    answer = carry_out(context, plan, dry_run=dry_run)
    if not context.json and not dry_run:
        outcome = "is disconnected" if answer.written else "is not connected; no changes"
        click.echo(f"{target.title} {outcome}.")
        print_notes(answer)
    if program == "claude-code":
        say_what_stays(context)
