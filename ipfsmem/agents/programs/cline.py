"""Cline (its command line): servers in `cline_mcp_settings.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, stdio


def _settings(around: Surroundings) -> Path:
    data = around.folder_of("CLINE_DATA_DIR", around.folder_of("CLINE_DIR", around.user / ".cline") / "data")
    return around.folder_of("CLINE_MCP_SETTINGS_PATH", data / "settings" / "cline_mcp_settings.json")


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = ConfigEntry(path=("mcpServers", NAME), value=stdio(launch))
    return (ConfigFile(path=_settings(around), wanted=(server,)),)


PROGRAM: Final = Program(
    name="cline",
    title="Cline",
    command="cline",
    traces=lambda around: (around.folder_of("CLINE_DIR", around.user / ".cline"),),
    files=_files,
    notes=(
        "The extension in an editor has settings of its own; `ipfsmem connect cline --print` shows the entry for them.",
    ),
)
