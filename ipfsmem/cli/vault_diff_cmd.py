"""`ipfsmem vault diff`: the differences of two versions, by memory and line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.printing import clean, clean_lines, style
from ipfsmem.wording import count

#: Pairs of lines that are compared at most.
_MOST_PAIRS = 4_000_000
_COLOUR = {"+": "green", "-": "red", "@": "cyan"}


@cli_command("diff", scoped=True, shows=True)
@click.argument("root_a", metavar="[BEFORE]", required=False)
@click.argument("root_b", metavar="[AFTER]", required=False)
@click.option("--names", is_flag=True, help="Only the names of changed memories.")
def command(context: CommandContext, root_a: str | None, root_b: str | None, names: bool) -> None:
    """Show the changes from BEFORE (default: the version published last) to AFTER (default: the current
    texts).

    A version is an address from `ipfsmem vault log`, or a prefix of one.
    """
    with context.memory() as memory:
        lines = memory.versions.diff(root_a, root_b)
    if context.json:
        context.emit(lines)
        return
    for line in lines:
        if names:
            click.echo(f"{line.change}\t{clean(line.key)}")
            continue
        click.echo(style(f"{line.change} {clean(line.key)}", bold=True))
        print_difference(_lines(line.before), _lines(line.after), indent=2)
    if not names:
        click.echo(
            style(f"{count(len(lines), 'memory')} changed" if lines else "Nothing changed.", dim=True),
            err=True,
        )


def print_difference(old: list[str], new: list[str], *, indent: int) -> None:
    """Print a difference of lines as they are read by people."""
    for text in differences(old, new):
        click.echo(" " * indent + style(clean_lines(text), fg=_COLOUR.get(text[:1])))


def differences(old: list[str], new: list[str], *, around: int = 2) -> Iterator[str]:
    """A unified diff, without names of files. Two texts of very many lines that all differ are shown one after the other:
    comparing each line with each would take minutes."""
    if len(old) * len(new) <= _MOST_PAIRS:
        return islice(difflib.unified_diff(old, new, n=around, lineterm=""), 2, None)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    gone, came = old[start : len(old) - end], new[start : len(new) - end]
    if len(gone) * len(came) <= _MOST_PAIRS:
        return islice(difflib.unified_diff(gone, came, n=around, lineterm=""), 2, None)
    head = f"@@ -{start + 1},{len(gone)} +{start + 1},{len(came)} @@"
    return iter([head, *("-" + x for x in gone), *("+" + x for x in came)])


def _lines(text: str | None) -> list[str]:
    return (text or "").splitlines()
