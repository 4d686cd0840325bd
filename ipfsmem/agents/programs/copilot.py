"""GitHub Copilot CLI: servers in `mcp-config.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, stdio


def _folder(around: Surroundings) -> Path:
    return around.folder_of("COPILOT_HOME", around.user / ".copilot")


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    value = {"type": "local", **stdio(launch), "tools": ["*"]}
    server = ConfigEntry(path=("mcpServers", NAME), value=value)
    return (ConfigFile(path=_folder(around) / "mcp-config.json", wanted=(server,)),)


PROGRAM: Final = Program(
    name="copilot",
    title="GitHub Copilot CLI",
    command="copilot",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Running sessions use it after a restart.",),
)
