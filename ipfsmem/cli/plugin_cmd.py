"""`ipfsmem plugin`: memory plugins of other programs, queried in addition to this vault."""

from __future__ import annotations

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import Subcommands
from ipfsmem.cli.printing import clean, clean_lines, table


@click.group("plugin", Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Plugins: memories of other programs that are queried for context, and that receive the turns of
    conversations.

    An installed plugin does nothing until the settings file names it under [plugins]. Each runs in a
    process of its own.
    """


@cli_command("list", short_help="List plugins")
def list_command(context: CommandContext) -> None:
    """List the plugins that are installed or enabled: name, state, package, and why one cannot run."""
    with context.memory() as memory:
        plugins = memory.plugins.list()
    if context.json:
        context.emit(plugins)
        return
    table(
        ("plugin", "", "package", "cannot run"),
        [(clean(one.name), "on" if one.on else "off", clean(one.package), one.problem) for one in plugins],
        styles=("bold", "", "dim", ""),
        nothing="No plugin is installed.",
    )


@cli_command("test", short_help="Test a plugin")
@click.argument("name")
@click.option("--query", default="test", show_default=True, metavar="WORDS", help="Query.")
def test_command(context: CommandContext, name: str, query: str) -> None:
    """Query the enabled plugin NAME as for a model, and print its answer. Its errors are shown only here
    and in the log.
    """
    with context.memory() as memory:
        answer = memory.plugins.test(name, query)
    if context.json:
        context.emit(answer)
        return
    for label, text in (("at the start", answer.prompt_block), ("for the question", answer.prefetch)):
        click.echo(f"{label}: {clean_lines(text)}" if text else f"{label}: nothing")


command.add_command(list_command)
command.add_command(test_command)
