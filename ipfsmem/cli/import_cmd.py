"""`ipfsmem import PATH`: import an export, or a folder of memory files of others."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, cast

import click

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, call, operation_command
from ipfsmem.cli.hint_commands import advice
from ipfsmem.cli.options import not_empty
from ipfsmem.cli.printing import clean, style
from ipfsmem.config import expanded
from ipfsmem.errors import UsageError
from ipfsmem.operations.bundles.imports import import_, import_from
from ipfsmem.wording import count

if TYPE_CHECKING:
    from ipfsmem.exchange.importing import Taken
    from ipfsmem.memories.importing import ImportContents, Imported
    from ipfsmem.memory import Memory


_NOTES: Final = """\
PATH is a folder, zip or CAR of memory files, an export (memory/0.1), or one file; - reads an
export from standard input. Omitted texts are named, and the exit code is then 7 unless --partial is
given.

If a scope of the name exists here, use --map, or --from-backup: then everything is read, checked and
listed first, and imported completely or, without --partial, not at all.

With --from NAME, PATH is the data or export of another program: claude-code, chatgpt, mem0, okf and
others. A record that was imported once is not imported again, even if it was edited or forgotten
here since, unless --strategy replace is given. Facts extracted from conversations are pending until
`ipfsmem approve`."""


def _ask(context: CommandContext, arguments: Arguments) -> None:
    """Read what to import from the path or standard input. Raises UsageError, LimitError."""
    from ipfsmem.errors import LimitError
    from ipfsmem.memories.importing import MAX_BLOB

    if arguments["program"] is not None and (arguments["prune"] or arguments["same"]):
        raise UsageError("--prune and --from-backup are for exports of ipfsmem, and exclude --from")
    arguments["maps"] = _mapped(arguments["maps"])
    arguments["whole"] = arguments["same"] and not arguments["partial"]
    arguments["source"] = expanded(arguments["path"])
    if arguments["path"] == "-":
        arguments["source"] = sys.stdin.buffer.read(MAX_BLOB + 1)
        if len(arguments["source"]) > MAX_BLOB:
            raise LimitError(f"standard input is longer than {MAX_BLOB:,} bytes")


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> Imported | Taken:
    from msgspec import structs

    made: Imported | Taken = call(
        import_ if arguments["program"] is None else import_from, context, memory, arguments
    )
    # As the command exits with it.
    return structs.replace(made, exit_code=0) if arguments["partial"] else made


def _show(_: CommandContext, done: Imported | Taken, arguments: Arguments) -> None:
    if arguments["program"] is not None:
        _say_taken(cast("Taken", done), arguments["foreign"])
    else:
        _say(cast("Imported", done), told=arguments["same"] or arguments["dry_run"])


def _end(_: CommandContext, done: Imported | Taken, arguments: Arguments) -> None:
    if not arguments["partial"]:
        done.raise_if_incomplete()


command = operation_command(
    "import",
    import_,
    _show,
    run=_run,
    ask=_ask,
    end=_end,
    options=[
        click.Argument(["path"], required=True, callback=not_empty),
        click.Option(
            ["--from", "program"],
            metavar="NAME",
            callback=not_empty,
            help="The program that wrote PATH; an unknown name lists the supported programs.",
        ),
        click.Option(
            ["--partial"],
            is_flag=True,
            help="Exit with 0 although texts were omitted; they are still named.",
        ),
        click.Option(
            ["--map", "maps"],
            multiple=True,
            metavar="THEIRS=OURS",
            help="Import the scope THEIRS into the scope OURS; an empty name is the default scope. Repeatable.",
        ),
    ],
    notes=_NOTES,
)


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
