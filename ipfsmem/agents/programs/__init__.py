"""The programs that `connect` knows, one a module: where their settings lie, and what an entry looks like there.

docs/AGENTS.md names the source and the date of each statement. A module only says; what is done with it is in `connecting.py`.
"""

from __future__ import annotations

from typing import Final

from ipfsmem.agents.programs import (
    claude_code,
    claude_desktop,
    cline,
    codex,
    continue_dev,
    copilot,
    cursor,
    gemini,
    goose,
    opencode,
    qwen,
    vscode,
    windsurf,
    zed,
)
from ipfsmem.agents.programs.program import Program
from ipfsmem.errors import UsageError

#: By name, in the order of `connect --list`.
PROGRAMS: Final[dict[str, Program]] = {
    one.PROGRAM.name: one.PROGRAM
    for one in (
        claude_code,
        codex,
        cursor,
        gemini,
        vscode,
        opencode,
        zed,
        qwen,
        copilot,
        cline,
        claude_desktop,
        windsurf,
        continue_dev,
        goose,
    )
}


def program_named(name: str) -> Program:
    """The program of that name. Raises UsageError, with those that there are."""
    try:
        return PROGRAMS[name]
    except KeyError:
        raise UsageError(
            f"there is no program {name!r} that could be connected",
            hint=f"These are known: {', '.join(PROGRAMS)}.",
        ) from None
