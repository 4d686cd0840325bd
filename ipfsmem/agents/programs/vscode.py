"""Visual Studio Code: servers of the user's default profile in `mcp.json`. Its hooks are a preview, and it also runs those of
Claude Code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, stdio


def _folder(around: Surroundings) -> Path:
    return around.application_data() / "Code" / "User"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = ConfigEntry(path=("servers", NAME), value={"type": "stdio", **stdio(launch)})
    return (ConfigFile(path=_folder(around) / "mcp.json", wanted=(server,)),)


PROGRAM: Final = Program(
    name="vscode",
    title="Visual Studio Code",
    command="code",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=(
        "Only the default profile has it; other profiles and VS Code Insiders have their own settings.",
        "VS Code asks once for permission to start the server.",
    ),
)
