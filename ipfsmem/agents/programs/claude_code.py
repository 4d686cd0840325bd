"""Claude Code: the user's servers in `.claude.json`, hooks in `settings.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import (
    NAME,
    ConfigFile,
    Program,
    Surroundings,
    group_of_one,
    hook_entries,
    stdio,
)

_NAME: Final = "claude-code"
#: Timeouts in seconds. By default, all hooks at the end of a session share 1.5 seconds.
_EVENTS: Final = {
    "SessionStart": ("session-start", 10),
    "UserPromptSubmit": ("prompt", 10),
    "Stop": ("stop", 10),
    "SessionEnd": ("session-end", 10),
}


def folder(around: Surroundings) -> Path:
    """Return the folder of the user's files of Claude Code."""
    return around.folder_of("CLAUDE_CONFIG_DIR", around.user / ".claude")


def _state(around: Surroundings) -> Path:
    """Return the state file: next to the folder, or in a moved folder."""
    return around.folder_of("CLAUDE_CONFIG_DIR", around.user) / ".claude.json"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = ConfigEntry(path=("mcpServers", NAME), value={"type": "stdio", **stdio(launch)})
    return (
        ConfigFile(path=_state(around), wanted=(server,)),
        ConfigFile(
            path=folder(around) / "settings.json",
            wanted=hook_entries(launch, _NAME, _EVENTS, group_of_one),
        ),
    )


PROGRAM: Final = Program(
    name=_NAME,
    title="Claude Code",
    command="claude",
    traces=lambda around: (folder(around), _state(around)),
    files=_files,
    notes=("Running sessions use it after a restart.",),
)
