"""Qwen Code: servers and hooks in one `settings.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import Entry
from ipfsmem.agents.programs.program import (
    NAME,
    ConfigFile,
    Program,
    Surroundings,
    group_of_one,
    hook_entries,
    stdio,
)

_NAME: Final = "qwen-code"
#: Time-outs in milliseconds.
_EVENTS: Final = {
    "SessionStart": ("session-start", 10_000),
    "UserPromptSubmit": ("prompt", 10_000),
    "Stop": ("stop", 10_000),
    "SessionEnd": ("session-end", 10_000),
}


def _folder(around: Surroundings) -> Path:
    return around.user / ".qwen"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    server = Entry(path=("mcpServers", NAME), value=stdio(launch))
    hooks = hook_entries(launch, _NAME, _EVENTS, group_of_one)
    return (ConfigFile(path=_folder(around) / "settings.json", wanted=(server, *hooks)),)


PROGRAM: Final = Program(
    name=_NAME,
    title="Qwen Code",
    command="qwen",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Running sessions use it after a restart.",),
)
