"""List the programs whose memories can be imported, with the reader of each format.

A reader is imported when it is used. docs/reference/import.md cites the description of each form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Final

from ipfsmem.errors import UsageError
from ipfsmem.exchange.places import Files
from ipfsmem.exchange.records import Item

Reader = Callable[[Files], Iterator[Item]]

#: Name -> the module with its `read`, below `ipfsmem.exchange`.
PROGRAMS: Final[dict[str, str]] = {
    "agh": "readers.agh",
    "basic-memory": "readers.basic_memory",
    "chatgpt": "readers.chatgpt",
    "claude": "readers.claude_account",
    "claude-code": "readers.claude_code",
    "infraware": "readers.infraware",
    "initrunner": "readers.initrunner",
    "letta": "readers.letta",
    "librefang": "readers.librefang",
    "mcp-memory": "readers.mcp_memory",
    "mem0": "readers.mem0",
    "mif": "readers.mif",
    "okf": "okf",
    "three-ws": "readers.three_ws",
}


def reader(program: str) -> Reader:
    """Return the reader of a program's form. Raises UsageError for an unknown name."""
    if program not in PROGRAMS:
        raise UsageError(
            f"there is no reader for {program[:60]!a}",
            hint=f"There is one for: {', '.join(sorted(PROGRAMS))}.",
        )
    read: Reader = import_module(f"ipfsmem.exchange.{PROGRAMS[program]}").read
    return read
