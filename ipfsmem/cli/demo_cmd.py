"""`ipfsmem demo`: run the demonstration, and print each step with the result of its checks."""

from __future__ import annotations

import logging
import shlex
import shutil
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, is_terminal, seconds, style
from ipfsmem.config import expanded
from ipfsmem.errors import UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.demo import DemoStep

#: Columns before the text of a step; with its text a row of the sample fits in 80.
_LEFT = 36


@cli_command("demo", secrets=False)
@click.option(
    "--from",
    "source",
    metavar="PATH",
    help="Your own texts: an export file (memory/0.1) or a folder of memory files.",
)
@click.option("--keep", is_flag=True, help="Keep both devices and the provider's folder.")
@click.option(
    "--dir",
    "folder",
    callback=not_empty,
    metavar="DIR",
    help="Use this new folder (with --keep) instead of a temporary one.",
)
def command(context: CommandContext, source: str | None, keep: bool, folder: str | None) -> None:
    """Run a demo: sync a vault to a second device that has only the wallet.

    In a temporary folder, device A creates a wallet and a vault, imports a sample (or your texts,
    --from), and syncs through a folder. Device B starts from the wallet alone. Both write concurrently,
    a byte is flipped at the provider, and both end with the same version.

    The run verifies each claim: the exit code is 0 only if all hold.
    """
    from ipfsmem.bundle.blob import read_blob
    from ipfsmem.demo import Demo
    from ipfsmem.memories.importing import read_path

    if folder is not None and not keep:
        raise UsageError("--dir requires --keep")
    blob = (
        read_path(Path(source))[""].blob
        if source is not None
        else read_blob((files("ipfsmem") / "data" / "sample.json").read_bytes())
    )
    # The demonstration damages its own provider and reports that; warnings would repeat it.
    logging.getLogger("ipfsmem").addHandler(logging.NullHandler())
    place = _folder(folder)
    started = time.perf_counter()
    steps: list[DemoStep] = []
    try:
        demo = Demo(place, blob, source=Path(source).name if source is not None else "the sample")
        for number, step in enumerate(demo.steps(), 1):
            steps.append(step)
            if not context.json:
                _show(number, step)
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
    claims = [claim for step in steps for claim in step.claims]
    all_held = all(claim.held for claim in claims)
    if context.json:
        from ipfsmem.demo import DemoResult

        context.emit(DemoResult.of(steps, demo.roots, str(place) if keep else None))
    else:
        _end(demo.roots, len(claims), sum(not claim.held for claim in claims), time.perf_counter() - started)
        if keep:
            _say_where_it_stays(place)
    if not all_held:
        click.get_current_context().exit(1)


def _folder(chosen: str | None) -> Path:
    if chosen is None:
        return Path(tempfile.mkdtemp(prefix="ipfsmem-demo-"))
    from ipfsmem.device.atomic_files import make_directory, storage_errors

    place = expanded(chosen).absolute()
    with storage_errors(place, "look into"):
        if place.exists() and any(place.iterdir()):
            raise UsageError(f"{place} is not empty", hint="Name a folder that does not exist yet.")
    make_directory(place)
    return place


def _show(number: int, step: DemoStep) -> None:
    """Print a line per step, with its failed claims below; wrapped within its column in a narrow window."""
    mark = style("✓", fg="green", bold=True) if step.held else style("✗", fg="red", bold=True)
    time_ = seconds(step.seconds).rjust(7)
    lines = [clean(step.text)]
    if is_terminal():
        import textwrap

        lines = textwrap.wrap(lines[0], max(30, shutil.get_terminal_size().columns - _LEFT)) or [""]
    click.echo(
        f"{number:>2} {mark} {style(step.title.ljust(21), bold=True)} {style(time_, dim=True)}  {lines[0]}"
    )
    for line in lines[1:]:
        click.echo(" " * _LEFT + line)
    for claim in step.claims:
        if not claim.held:
            click.echo(style(f"     ✗ failed: {clean(claim.text)}", fg="red"))


def _end(roots: dict[str, str | None], claims: int, broken: int, took: float) -> None:
    click.echo("")
    equal = roots["A"] is not None and roots["A"] == roots["B"]
    for device, root in roots.items():
        click.echo(
            f"   {device} has  {root or 'nothing'}{style('  the same', fg='green') if equal and device == 'B' else ''}"
        )
    click.echo("")
    if broken:
        click.echo(
            style(f"{count(broken, 'claim')} of {claims} failed.", fg="red", bold=True) + f" {seconds(took)}"
        )
    else:
        click.echo(style(f"All {claims} claims held.", fg="green", bold=True) + f" {seconds(took)}")


def _say_where_it_stays(place: Path) -> None:
    from ipfsmem.demo import PASSPHRASE, VAULT_NAME

    click.echo(f"\nKept in {place}. Look around with, for instance:")
    click.echo(
        f"   IPFSMEM_PASSPHRASE={PASSPHRASE} ipfsmem list --home {shlex.quote(f'{place}/b')} --vault {VAULT_NAME}"
    )
