"""The work of `ipfsmem write`, without its options: `cli/direct.py` runs it without click."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, Steps, call
from ipfsmem.cli.printing import echo, is_terminal, size
from ipfsmem.cli.values import pairs, read_text
from ipfsmem.errors import UsageError
from ipfsmem.operations.write import write

if TYPE_CHECKING:
    from ipfsmem.memories.memory_records import MemoryRecord
    from ipfsmem.memory import Memory


def _ask(context: CommandContext, arguments: Arguments) -> None:
    """Check the options and read the text before the memory is opened."""
    from ipfsmem.memories.write_request import WriteRequest, scope_of_type

    body, file, source = arguments["body"], arguments["file"], arguments["source"]
    _check_places(body, file, source)
    if arguments["by_type"] and arguments["type"] is None:
        raise UsageError("--by-type requires --type")
    arguments["there"] = (
        scope_of_type(arguments["type"], context.scope or "") if arguments["by_type"] else None
    )
    values = {
        name: arguments[name] for name in ("name", "description", "type", "whole", "empty_ok", "if_match")
    }
    request = WriteRequest(
        **values,
        tags=arguments["tags"] or (),
        fields=pairs(arguments["fields"], "--set"),
        must_be_new=arguments["new"],
    )
    # Before a person types a text at the terminal, not afterwards.
    request.check_without_text(has_text=any(place is not None for place in (body, file, source)))
    request = msgspec.structs.replace(request, text=_text(body, file or source))
    request.check()
    arguments["request"] = request


def _check_places(body: str | None, file: str | None, source: str | None) -> None:
    """Raise UsageError if the text is given more than once."""
    if source not in (None, "-"):
        raise UsageError(
            f"unexpected {source!r}", hint="Give the text with --body or --file, or - for standard input."
        )
    if sum(place is not None for place in (body, file, source)) > 1:
        raise UsageError("--body, --file and - exclude each other")


def _text(body: str | None, path: str | None) -> bytes | None:
    """Return the text of --body, or of a file or standard input (`-`); None without one."""
    if body is not None:
        return body.encode("utf-8", "surrogateescape")
    return None if path is None else read_text(path, "the text")


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> MemoryRecord:
    request, there = arguments["request"], arguments["there"]
    values: Arguments = {"key": arguments["key"], "if_match": request.expected}
    if request.file is not None:
        values["text"] = request.file
    else:
        values |= {name: getattr(request, name) for name in ("body", "name", "description", "type", "fields")}
        values["tags"] = request.tags or None
    written: MemoryRecord = call(write, context, memory if there is None else memory.scope(there), values)
    return written


def _show(context: CommandContext, written: MemoryRecord, arguments: Arguments) -> None:
    if is_terminal():  # a person needs no hash, a program nothing else
        echo(f"{written.key} is written: {size(len(written.data))}, on this disk")
    else:
        echo(written.sha256)


STEPS = Steps(write, _show, run=_run, ask=_ask)
