"""Claude Desktop: servers in `claude_desktop_config.json`. It has no hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, stdio


def _folder(around: Surroundings) -> Path:
    return around.application_data() / "Claude"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = ConfigEntry(path=("mcpServers", NAME), value=stdio(launch))
    return (ConfigFile(path=_folder(around) / "claude_desktop_config.json", wanted=(server,)),)


PROGRAM: Final = Program(
    name="claude-desktop",
    title="Claude Desktop",
    command="claude-desktop",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Quit and restart Claude Desktop; closing the window is not enough.",),
)
