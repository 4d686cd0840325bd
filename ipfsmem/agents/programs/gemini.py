"""Gemini CLI: servers and hooks in one `settings.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.programs.program import Program, Surroundings, settings_json

_NAME: Final = "gemini"
#: Timeouts in milliseconds.
_EVENTS: Final = {
    "SessionStart": ("session-start", 10_000),
    "BeforeAgent": ("prompt", 10_000),
    "AfterAgent": ("stop", 10_000),
    "PreCompress": ("pre-compact", 10_000),
    "SessionEnd": ("session-end", 10_000),
}


def _folder(around: Surroundings) -> Path:
    return around.folder_of("GEMINI_CLI_HOME", around.user) / ".gemini"


PROGRAM: Final = Program(
    name=_NAME,
    title="Gemini CLI",
    command="gemini",
    traces=lambda around: (_folder(around),),
    files=lambda around, launch: settings_json(_folder(around), launch, _NAME, _EVENTS),
    notes=("Running sessions use it after a restart.",),
)
