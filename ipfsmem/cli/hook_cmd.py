"""`ipfsmem hook EVENT`: run by agents' programs. It always exits with 0 (by `cli/app.py`), whatever its input."""

from __future__ import annotations

import sys

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hook_call import run
from ipfsmem.locations import agent_key_text


@cli_command("hook", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("event", metavar="EVENT")
@click.option("--program", default="", metavar="NAME", help="Program that runs the hook.")
def command(context: CommandContext, event: str, program: str) -> None:
    """Run a hook of an agent's program: session-start, prompt, stop, session-end or pre-compact.

    The program's settings call it. It reads the program's payload from standard input, prints only the
    program's format, and starts a background sync. It always exits with 0 within seconds; `ipfsmem
    status` shows its failures.
    """
    if event in ("background", "vectors"):
        from ipfsmem.agents import background_sync, vectors_apart
        from ipfsmem.agents.hook_programs import MAX_INPUT

        work = background_sync.run if event == "background" else vectors_apart.run
        work(context.vault_name, context.home, sys.stdin.buffer.read(MAX_INPUT))
        return
    if agent_key_text():
        from ipfsmem.agents.container_hook import run_container_hook

        wrong = run_container_hook(event, program, stdin=sys.stdin.buffer, stdout=sys.stdout.buffer)
        if wrong:
            click.echo(f"ipfsmem: {wrong}", err=True)
        return
    passphrase = context.passphrase_from_fd_or_environment()
    wrong = run(event, program, context.vault_name, context.home, passphrase=passphrase)
    if wrong:
        click.echo(f"ipfsmem: {wrong}", err=True)
