"""`ipfsmem conflicts`: texts that were written at the same time and could not be merged. All of them are kept."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import click

from ipfsmem.cli.here import Here, ours
from ipfsmem.cli.printing import clean, clean_lines, is_terminal, style
from ipfsmem.errors import NotFoundError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


@ours("conflicts")
@click.argument("key", required=False)
def command(here: Here, key: str | None) -> None:
    """List memories with a conflict; with KEY show what differs.

    Settle one with `ipfsmem resolve KEY`, or write the memory again after reading both.
    """
    with here.memory() as memory:
        found = [item for item in memory.conflicts() if key is None or item[0] == key]
        labels = {person.id: person.label for person in memory.members()}
        shown = [_look(memory, name, files, forgotten, labels) for name, files, forgotten in found]
        late = [value for value in memory.late_values() if key is None or value.place == key]
    if key is not None and not found and not late:
        raise NotFoundError(f"{key} has no conflict", hint="List all: ipfsmem conflicts.")
    if here.json:
        here.emit([*shown, *({"key": v.place, "revoked": v.member, "dot": v.dot} for v in late)])
        return
    if not found and not late and is_terminal():
        click.echo("No conflicts.", err=True)
    for item in shown:
        _print(item, whole=key is not None)
    for value in late:
        said = f"written by {value.member} after it was revoked; to approve it, write the memory again"
        click.echo(f"{style(clean(value.place), bold=True)}  {said}")


def _look(
    memory: Memory, key: str, files: tuple[str, ...], forgotten: bool, labels: dict[str, str]
) -> dict[str, Any]:
    reading = memory.read(key)
    copies = []
    for file in files:
        try:
            copy = memory.read_conflict(key, file)
        except NotFoundError:
            copies.append({"file": file, "device": "", "text": None})
            continue
        device = labels.get(copy.device) or copy.device
        copies.append({"file": file, "device": device, "text": copy.data.decode("utf-8", "replace")})
    return {
        "key": key,
        "forgotten": forgotten,
        "device": (labels.get(reading.device) or reading.device) if reading else "",
        "text": reading.data.decode("utf-8", "replace") if reading else None,
        "copies": copies,
    }


def _print(item: dict[str, Any], *, whole: bool) -> None:
    key = item["key"]
    if item["forgotten"]:
        state = "forgotten, with words that were written meanwhile"
    else:
        state = f"shown is what {item['device']} wrote"
    click.echo(f"{style(clean(key), bold=True)}  {clean(state)}")
    for copy in item["copies"]:
        by = f"by {copy['device']}" if copy["text"] is not None else "not fetched yet (ipfsmem sync)"
        click.echo(f"  {copy['file']}  {clean(by)}")
        if whole and copy["text"] is not None:
            before, after = (item["text"] or "").splitlines(), copy["text"].splitlines()
            for line in [*difflib.unified_diff(before, after, n=1, lineterm="")][2:]:
                colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
                click.echo("    " + style(clean_lines(line), fg=colour))
    if whole:
        first = item["copies"][0]["file"] if item["copies"] else "FILE"
        click.echo(
            style(f"  Settle it: ipfsmem resolve {key} --keep, or --take {first}, or --file PATH", dim=True)
        )
