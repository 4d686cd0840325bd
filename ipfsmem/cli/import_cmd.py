"""`ipfsmem import PATH`: import an export, or a folder of memory files of others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

import click

from ipfsmem.cli.context import CommandContext, cli_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, style
from ipfsmem.config import expanded
from ipfsmem.errors import UsageError
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.exchange.importing import Taken
    from ipfsmem.memories.importing import ImportContents, Imported


@cli_command("import", scoped=True)
@click.argument("path", callback=not_empty)
@click.option(
    "--from",
    "program",
    metavar="NAME",
    callback=not_empty,
    help="The program that wrote PATH; an unknown name lists the supported programs.",
)
@click.option("--dry-run", is_flag=True, help="List what would be imported without writing it.")
@click.option(
    "--strategy",
    type=click.Choice(["merge", "replace"]),
    default="merge",
    show_default=True,
    help="merge: keep the texts here, add different ones as conflicts. replace: show the imported texts.",
)
@click.option("--prune", is_flag=True, help="With replace: forget memories that the import does not contain.")
@click.option(
    "--partial", is_flag=True, help="Exit with 0 although texts were omitted; they are still named."
)
@click.option(
    "--foreign",
    is_flag=True,
    help="The texts are someone else's: import them as pending (see `ipfsmem approve`).",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="THEIRS=OURS",
    help="Import the scope THEIRS into the scope OURS; an empty name is the default scope. Repeatable.",
)
@click.option(
    "--from-backup",
    "same",
    is_flag=True,
    help="PATH is a backup of this vault: match scopes by name, and import everything or nothing.",
)
def command(
    context: CommandContext,
    path: str,
    program: str | None,
    dry_run: bool,
    strategy: str,
    prune: bool,
    partial: bool,
    foreign: bool,
    maps: tuple[str, ...],
    same: bool,
) -> None:
    """Import PATH: a folder, zip or CAR of memory files, an export (memory/0.1), or one file; - reads an
    export from standard input.

    Nothing is lost: if a text differs from yours, both are kept, as a conflict. A repeated import
    changes nothing. Omitted texts are named, and the exit code is then 7 unless --partial is given.

    Each scope of the import becomes a new scope of its name. If a scope of that name exists, use --map,
    or --from-backup: then everything is read, checked and listed first, and imported completely or,
    without --partial, not at all. --dry-run only lists what would be imported. With --scope, an import
    without scopes goes to that one.

    With --from NAME, PATH is the data or export of another program: claude-code, chatgpt, mem0, okf and
    others. A record that was imported once is not imported again, even if it was edited or forgotten
    here since, unless --strategy replace is given. Facts extracted from conversations are pending until
    `ipfsmem approve`.
    """
    from ipfsmem.errors import LimitError
    from ipfsmem.memories.importing import MAX_BLOB

    if program is not None and (prune or same):
        raise UsageError("--prune and --from-backup are for exports of ipfsmem, and exclude --from")
    source: bytes | Path = expanded(path)
    if path == "-":
        source = sys.stdin.buffer.read(MAX_BLOB + 1)
        if len(source) > MAX_BLOB:
            raise LimitError(f"standard input is longer than {MAX_BLOB:,} bytes")
    done: Imported | Taken
    with context.memory() as memory:
        meant: Literal["merge", "replace"] = "replace" if strategy == "replace" else "merge"
        if program is not None:
            done = memory.bundles.import_from(
                program, source, strategy=meant, foreign=foreign, maps=_mapped(maps), dry_run=dry_run
            )
        else:
            done = memory.bundles.import_(
                source,
                strategy=meant,
                prune=prune,
                foreign=foreign,
                maps=_mapped(maps),
                same=same,
                whole=same and not partial,
                dry_run=dry_run,
            )
    if context.json:
        context.emit(done)
    elif program is not None:
        _say_taken(cast("Taken", done), foreign)
    else:
        _say(cast("Imported", done), told=same or dry_run)
    if not partial:
        done.raise_if_incomplete()


def _mapped(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        theirs, equals, ours = text.partition("=")
        if not equals:
            raise UsageError(
                f"--map requires THEIRS=OURS, not {text!r}", hint="For instance: --map work=work-2"
            )
        if found.setdefault(theirs, ours) != ours:
            raise UsageError(
                f"--map names two targets for {theirs or 'the default scope'}: {found[theirs]!r} and {ours!r}"
            )
    return found


#: For existing texts that were pending when they were imported.
_STILL_OTHERS: Final = "already here and pending, until you approve them (ipfsmem approve --list)"
#: Counts of records that changed nothing, or are not memories.
_NO_CHANGE: Final = ("unchanged", "still_others", "events")


def _say_found(found: ImportContents) -> None:
    """Print the content of the backup, before the result."""
    parts = [
        f"{count(found.memories, 'memory', 'memories')} in {count(found.scopes, 'scope')}",
        count(found.further, "further text") if found.further else "",
        f"{found.forgotten:,} forgotten" if found.forgotten else "",
        count(found.events, "event"),
    ]
    newest = f"; the newest is of {found.newest}" if found.newest else ""
    click.echo(f"It has {', '.join(filter(None, parts))}{newest}.")


def _say(done: Imported, *, told: bool) -> None:
    if told:
        _say_found(done.found)
    said = [
        f"{done.added:,} new",
        f"{done.replaced:,} replaced" if done.replaced else "",
        advice(f"{done.kept_beside:,} kept as conflicts (ipfsmem conflicts)") if done.kept_beside else "",
        f"{done.unchanged:,} known already" if done.unchanged else "",
        advice(f"{done.still_others:,} {_STILL_OTHERS}") if done.still_others else "",
        f"{done.still_forgotten:,} still forgotten here (--strategy replace restores them)"
        if done.still_forgotten
        else "",
        f"{done.forgotten:,} forgotten" if done.forgotten else "",
    ]
    key = f" ({done.key})" if done.key else ""
    click.echo(
        f"{'Nothing was written. These would be imported' if done.dry_run else 'Memories'}: {', '.join(filter(None, said))}{key}. Timeline: {count(done.events, 'new event')}."
    )
    if done.scopes:
        said = [
            f"{sum(n for what, n in counts.items() if what not in _NO_CHANGE):,} in {scope or 'the default scope'}"
            for scope, counts in done.scopes.items()
            if any(n for what, n in counts.items() if what not in ("unchanged", "events"))
        ]
    if done.scopes and said:
        click.echo(
            f"Of these changes {', '.join(said[:20])}{f' and {len(said) - 20} more scopes' if len(said) > 20 else ''}."
        )
    for skipped in done.skipped:
        click.echo(f"skipped: {clean(skipped)}")
    _say_left_out(done.problems)


def _say_left_out(problems: tuple[str, ...]) -> None:
    for problem in problems:
        click.echo(style("left out: ", fg="yellow") + clean(problem))


#: The results of records, in words.
_BECAME: Final = {
    "added": "new",
    "renewed": "changed there since",
    "replaced": "replaced",
    "kept_beside": "kept as conflicts (ipfsmem conflicts)",
    "unchanged": "known already",
    "still_others": _STILL_OTHERS,
    "changed_here": "imported before and changed here since, so left unchanged",
    "still_forgotten": "still forgotten here",
    "twice": "duplicates",
}
_HISTORY: Final = "Imported events are found by recall, but never included in context."
#: Maximum records of a dry run that are named.
_NAMED: Final = 20


def _say_taken(done: Taken, foreign: bool) -> None:
    """Print the result of importing another program's memory, or a preview of it."""
    said = [f"{done.counts[what]:,} {words}" for what, words in _BECAME.items() if done.counts.get(what)]
    begin = "Nothing was written. These would be imported" if done.dry_run else "Memories"
    messages = f" Sessions: {count(done.messages, 'new message')}." if done.messages else ""
    click.echo(
        f"{begin}: {advice(', '.join(said)) or 'none'}. Timeline: {count(done.events, 'new event')}.{messages}"
    )
    if done.events:
        click.echo(_HISTORY)
    if done.messages and not done.dry_run:
        click.echo(
            advice(
                f"Imported messages are pending: agents get them after you approve them (ipfsmem approve --from {done.program})"
            )
        )
    if done.candidates:
        how = "--list" if foreign else f"--from {done.program}"
        them = "it" if done.candidates == 1 else "them"
        click.echo(
            advice(
                f"{count(done.candidates, 'memory')} pending: agents get {them} after you approve (ipfsmem approve {how})"
            )
        )
    if done.scopes:
        each = [f"{number:,} in {scope or 'the default scope'}" for scope, number in done.scopes.items()]
        click.echo(f"By scope: {', '.join(each[:_NAMED])}{_more(len(each))}.")
    for why, number in done.skipped.items():
        click.echo(f"skipped: {number:,} × {clean(why)}")
    for note in done.notes[:_NAMED]:
        click.echo(f"note: {clean(note)}")
    if len(done.notes) > _NAMED:
        click.echo(f"  and {len(done.notes) - _NAMED:,} more (--json has all)")
    for record in done.records[:_NAMED]:
        whose = ", pending" if record.candidate else ""
        place = f"{record.scope}/{record.key}" if record.scope else record.key
        click.echo(f"  {clean(place)} ({record.what.replace('_', ' ')}{whose}) from {clean(record.where)}")
    if len(done.records) > _NAMED:
        click.echo(f"  and {len(done.records) - _NAMED:,} more (--json has all)")
    for secret in done.secrets[:_NAMED]:
        click.echo(style("looks like a secret: ", fg="yellow") + clean(secret))
    if len(done.secrets) > _NAMED:
        click.echo(f"  and {len(done.secrets) - _NAMED:,} more possible secrets")
    _say_left_out(done.problems)


def _more(listed: int) -> str:
    return f" and {listed - _NAMED} more" if listed > _NAMED else ""
