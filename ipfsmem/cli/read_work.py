"""The work of `ipfsmem read`, without its options: `cli/direct.py` runs it without click."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.cli.context import CommandContext
from ipfsmem.cli.derived import Arguments, Steps, call
from ipfsmem.cli.printing import clean_lines, echo, is_terminal, style, write_bytes
from ipfsmem.errors import NotFoundError, UsageError
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.operations.read import read

if TYPE_CHECKING:
    from ipfsmem.memory import Memory


def _run(context: CommandContext, memory: Memory, arguments: Arguments) -> MemoryRecord | None:
    if context.stacked and (arguments["alternative"] is not None or arguments["root"] is not None):
        raise UsageError("--stack excludes --alternative and --root")
    if arguments["alternative"] is not None and arguments["root"] is not None:
        raise UsageError("--alternative and --root exclude each other")
    record: MemoryRecord | None = call(read, context, memory, arguments)
    key = arguments["key"]
    if record is None and arguments["root"] is None and context.scope is None:
        record = _where_it_stands(memory, key)
    if record is None:
        arguments["near"] = _near(context, memory, key)
    return record


def _absent(context: CommandContext, arguments: Arguments) -> NotFoundError:
    return NotFoundError(
        f"there is no memory {arguments['key']}{arguments['near']}",
        hint=context.scope_notice or "List the memories: ipfsmem list.",
    )


def _show(context: CommandContext, reading: MemoryRecord, arguments: Arguments) -> None:
    print_memory(context, reading, only_body=arguments["only_body"])
    if reading.scope != (context.scope or ""):
        echo(f"from the scope {reading.scope}", err=True)


def _near(context: CommandContext, memory: Memory, key: str) -> str:
    """Return similar keys, in words; "" without any."""
    from difflib import get_close_matches

    listed = (memory.stack(*context.stacked) if context.stacked else memory).list()
    near = get_close_matches(key, [one.key for one in listed], n=3)
    return f"; perhaps {' or '.join(near)}" if near else ""


def _where_it_stands(memory: Memory, key: str) -> MemoryRecord | None:
    """Return the memory from the only scope that has the key, or None. Raises UsageError if several have it."""
    there = memory.scopes.having(key)
    if len(there) > 1:
        raise UsageError(
            f"{key} is in several scopes: {', '.join(there)}",
            hint=f"Choose one: ipfsmem read {key} --scope {there[0]}",
        )
    return memory.scope(there[0]).read(key) if there else None


def print_memory(context: CommandContext, reading: MemoryRecord, *, only_body: bool) -> None:
    """Print a memory as JSON, cleaned for a terminal, or as raw bytes."""
    key, file = reading.key, reading.file
    if context.json:
        context.emit(reading)
        return
    data = (file.body + "\n").encode() if only_body else reading.data
    if is_terminal():
        echo(clean_lines(data.decode()), nl=False)
    else:
        write_bytes(data)
    if not reading.own:
        echo(
            style("pending: ", fg="yellow") + "a text of others that you have not approved (ipfsmem approve)",
            err=True,
        )
    if reading.conflicts:
        within = f" --scope {reading.scope}" if context.stacked and reading.scope else ""
        echo(
            context.advice(f"also: {', '.join(reading.conflicts)} (ipfsmem conflicts {key}{within})"),
            err=True,
        )


STEPS = Steps(read, _show, run=_run, absent=_absent)
