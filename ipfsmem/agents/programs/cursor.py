"""Cursor (the editor and its command line): servers in `mcp.json`, hooks in `hooks.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, hook_entries, stdio

_NAME: Final = "cursor"
#: Timeouts in seconds. No hook before a prompt: its output does not reach the model.
_EVENTS: Final = {
    "sessionStart": ("session-start", 10),
    "stop": ("stop", 10),
    "sessionEnd": ("session-end", 10),
}
_SEED: Final = '{\n  "version": 1\n}\n'


def _folder(around: Surroundings) -> Path:
    return around.user / ".cursor"


def _hook(command: str, timeout: int) -> Any:
    return {"command": command, "timeout": timeout}


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = ConfigEntry(path=("mcpServers", NAME), value={"type": "stdio", **stdio(launch)})
    return (
        ConfigFile(path=_folder(around) / "mcp.json", wanted=(server,)),
        ConfigFile(
            path=_folder(around) / "hooks.json",
            wanted=hook_entries(launch, _NAME, _EVENTS, _hook),
            seed=_SEED,
        ),
    )


PROGRAM: Final = Program(
    name=_NAME,
    title="Cursor",
    command="cursor",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=(
        "Restart Cursor, then enable the server under Customize, MCPs.",
        "Cursor's editor reportedly does not pass the output of a session-start hook to the model; the server works anyway.",
    ),
)
