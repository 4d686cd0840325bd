"""`ipfsmem plugin`: memories of other programs that are asked beside this one."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, clean_lines, table


@click.group("plugin", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Memories of other programs that are asked beside this one, when a model is given context or a turn of a conversation is saved.

    One that is installed does nothing before the settings file names it below [plugins]. Each runs in a process of its own.
    """


@cli_command("list", short_help="Those that are installed or switched on.")
def list_command(context: CommandContext) -> None:
    """List the plugins that are installed or switched on: name, on or off, package, and why one cannot run."""
    with context.memory() as memory:
        found = memory.plugins.list()
    if context.json:
        context.emit(found)
        return
    table(
        ("plugin", "", "package", "cannot run"),
        [(clean(one.name), "on" if one.on else "off", clean(one.package), one.problem) for one in found],
        styles=("bold", "", "dim", ""),
        nothing="No plugin is installed.",
    )


@cli_command("test", short_help="What one gives, and what it does wrong.")
@click.argument("name")
@click.option(
    "--query", default="test", show_default=True, metavar="WORDS", help="The question that it is asked."
)
def test_command(context: CommandContext, name: str, query: str) -> None:
    """Ask the plugin NAME, which is switched on, as it is asked for a model, and print what it gives. What it does wrong is said here
    and nowhere else but in the log."""
    with context.memory() as memory:
        found = memory.plugins.test(name, query)
    if context.json:
        context.emit(found)
        return
    for what, text in (("at the start", found.prompt_block), ("for the question", found.prefetch)):
        click.echo(f"{what}: {clean_lines(text)}" if text else f"{what}: nothing")


command.add_command(list_command)
command.add_command(test_command)
