"""The programs that `connect` supports, one module each: paths of their settings, and the form of an entry.

docs/reference/agents.md gives source and date of each statement. A module only declares; `connecting.py` applies it.
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

#: Programs by name, in the order of `connect --list`.
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
    """Return the program of that name. Raises UsageError that names the supported ones."""
    try:
        return PROGRAMS[name]
    except KeyError:
        raise UsageError(
            f"unsupported program {name!r}",
            hint=f"Supported: {', '.join(PROGRAMS)}.",
        ) from None
