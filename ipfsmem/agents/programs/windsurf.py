"""Windsurf: servers in `mcp_config.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, stdio


def _folder(around: Surroundings) -> Path:
    return around.user / ".codeium" / "windsurf"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = ConfigEntry(path=("mcpServers", NAME), value=stdio(launch))
    return (ConfigFile(path=_folder(around) / "mcp_config.json", wanted=(server,)),)


PROGRAM: Final = Program(
    name="windsurf",
    title="Windsurf",
    command="windsurf",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Press Refresh in the MCP panel of Cascade, or start Windsurf again.",),
)
