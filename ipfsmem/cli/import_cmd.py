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
PATH is a folder, zip or CAR of memory files, an export (memory/0.1), or one file; - reads an export
from standard input. If texts are omitted, they are named, and the exit code is 7 unless --partial is
given.

If a scope of the same name exists here, use --map or --from-backup. --from-backup reads, checks and
lists everything first, and then imports it completely or, without --partial, not at all.

With --from NAME, PATH is the data or export of another program: claude-code, chatgpt, mem0, okf and
others. An imported record is not imported again, even if it was edited or forgotten here since, unless
--strategy replace is given.

Facts extracted from conversations are pending until `ipfsmem approve`."""


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

    result: Imported | Taken = call(
        import_ if arguments["program"] is None else import_from, context, memory, arguments
    )
    # As the command exits with it.
    return structs.replace(result, exit_code=0) if arguments["partial"] else result


def _show(_: CommandContext, result: Imported | Taken, arguments: Arguments) -> None:
    if arguments["program"] is not None:
        _say_taken(cast("Taken", result), arguments["foreign"])
    else:
        _say(cast("Imported", result), with_contents=arguments["same"] or arguments["dry_run"])


def _end(_: CommandContext, result: Imported | Taken, arguments: Arguments) -> None:
    if not arguments["partial"]:
        result.raise_if_incomplete()


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
    mapping: dict[str, str] = {}
    for text in texts:
        theirs, equals, ours = text.partition("=")
        if not equals:
            raise UsageError(
                f"--map requires THEIRS=OURS, not {text!r}", hint="For instance: --map work=work-2"
            )
        if mapping.setdefault(theirs, ours) != ours:
            raise UsageError(
                f"--map names two targets for {theirs or 'the default scope'}: {mapping[theirs]!r} and {ours!r}"
            )
    return mapping


#: For existing texts that were pending when they were imported.
_STILL_OTHERS: Final = "already here and pending, until you approve them (ipfsmem approve --list)"
#: Counts of records that changed nothing, or are not memories.
_NO_CHANGE: Final = ("unchanged", "still_others", "events")


def _say_found(contents: ImportContents) -> None:
    """Print the content of the backup, before the result."""
    parts = [
        f"{count(contents.memories, 'memory', 'memories')} in {count(contents.scopes, 'scope')}",
        count(contents.further, "further text") if contents.further else "",
        f"{contents.forgotten:,} forgotten" if contents.forgotten else "",
        count(contents.events, "event"),
    ]
    newest = f"; the newest is of {contents.newest}" if contents.newest else ""
    click.echo(f"It has {', '.join(filter(None, parts))}{newest}.")


def _say(result: Imported, *, with_contents: bool) -> None:
    if with_contents:
        _say_found(result.found)
    parts = [
        f"{result.added:,} new",
        f"{result.replaced:,} replaced" if result.replaced else "",
        advice(f"{result.kept_beside:,} kept as conflicts (ipfsmem conflicts)") if result.kept_beside else "",
        f"{result.unchanged:,} known already" if result.unchanged else "",
        advice(f"{result.still_others:,} {_STILL_OTHERS}") if result.still_others else "",
        f"{result.still_forgotten:,} still forgotten here (--strategy replace restores them)"
        if result.still_forgotten
        else "",
        f"{result.forgotten:,} forgotten" if result.forgotten else "",
    ]
    key = f" ({result.key})" if result.key else ""
    click.echo(
        f"{'Nothing was written. These would be imported' if result.dry_run else 'Memories'}: {', '.join(filter(None, parts))}{key}. Timeline: {count(result.events, 'new event')}."
    )
    if result.scopes:
        parts = [
            f"{sum(n for change, n in counts.items() if change not in _NO_CHANGE):,} in {scope or 'the default scope'}"
            for scope, counts in result.scopes.items()
            if any(n for change, n in counts.items() if change not in ("unchanged", "events"))
        ]
    if result.scopes and parts:
        click.echo(
            f"Of these changes {', '.join(parts[:20])}{f' and {len(parts) - 20} more scopes' if len(parts) > 20 else ''}."
        )
    for skipped in result.skipped:
        click.echo(f"skipped: {clean(skipped)}")
    _say_left_out(result.problems)


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


def _say_taken(result: Taken, foreign: bool) -> None:
    """Print the result of importing another program's memory, or a preview of it."""
    parts = [f"{result.counts[kind]:,} {words}" for kind, words in _BECAME.items() if result.counts.get(kind)]
    begin = "Nothing was written. These would be imported" if result.dry_run else "Memories"
    messages = f" Sessions: {count(result.messages, 'new message')}." if result.messages else ""
    click.echo(
        f"{begin}: {advice(', '.join(parts)) or 'none'}. Timeline: {count(result.events, 'new event')}.{messages}"
    )
    if result.events:
        click.echo(_HISTORY)
    if result.messages and not result.dry_run:
        click.echo(
            advice(
                f"Imported messages are pending: agents get them after you approve them (ipfsmem approve --from {result.program})"
            )
        )
    if result.candidates:
        how = "--list" if foreign else f"--from {result.program}"
        them = "it" if result.candidates == 1 else "them"
        click.echo(
            advice(
                f"{count(result.candidates, 'memory')} pending: agents get {them} after you approve (ipfsmem approve {how})"
            )
        )
    if result.scopes:
        each = [f"{number:,} in {scope or 'the default scope'}" for scope, number in result.scopes.items()]
        click.echo(f"By scope: {', '.join(each[:_NAMED])}{_more(len(each))}.")
    for why, number in result.skipped.items():
        click.echo(f"skipped: {number:,} × {clean(why)}")
    for note in result.notes[:_NAMED]:
        click.echo(f"note: {clean(note)}")
    if len(result.notes) > _NAMED:
        click.echo(f"  and {len(result.notes) - _NAMED:,} more (--json has all)")
    for record in result.records[:_NAMED]:
        whose = ", pending" if record.candidate else ""
        place = f"{record.scope}/{record.key}" if record.scope else record.key
        click.echo(f"  {clean(place)} ({record.what.replace('_', ' ')}{whose}) from {clean(record.where)}")
    if len(result.records) > _NAMED:
        click.echo(f"  and {len(result.records) - _NAMED:,} more (--json has all)")
    for secret in result.secrets[:_NAMED]:
        click.echo(style("looks like a secret: ", fg="yellow") + clean(secret))
    if len(result.secrets) > _NAMED:
        click.echo(f"  and {len(result.secrets) - _NAMED:,} more possible secrets")
    _say_left_out(result.problems)


def _more(listed: int) -> str:
    return f" and {listed - _NAMED} more" if listed > _NAMED else ""
