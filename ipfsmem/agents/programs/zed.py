"""Zed: servers in `settings.json`, which has comments and trailing commas by default."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, stdio


def _folder(around: Surroundings) -> Path:
    if around.system == "win32":
        return around.application_data() / "Zed"
    if around.system == "darwin":
        return around.user / ".config" / "zed"
    return around.folder_of("FLATPAK_XDG_CONFIG_HOME", around.settings()) / "zed"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = ConfigEntry(path=("context_servers", NAME), value={**stdio(launch), "env": {}})
    return (ConfigFile(path=_folder(around) / "settings.json", wanted=(server,)),)


PROGRAM: Final = Program(
    name="zed",
    title="Zed",
    command="zed",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Zed applies it immediately; Settings, AI, MCP Servers shows whether it runs.",),
)
