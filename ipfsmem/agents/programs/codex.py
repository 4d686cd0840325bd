"""Codex (the command line, the IDE extension and the desktop program share it): servers in `config.toml`, hooks in `hooks.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.block_edits import text_value
from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import Table
from ipfsmem.agents.programs.program import (
    NAME,
    ConfigFile,
    Program,
    Surroundings,
    group_of_one,
    hook_entries,
)

_NAME: Final = "codex"
#: Timeouts in seconds; Codex allows three at the end of a session, and warns at each start about more.
_EVENTS: Final = {
    "SessionStart": ("session-start", 10),
    "UserPromptSubmit": ("prompt", 10),
    "Stop": ("stop", 10),
    "SessionEnd": ("session-end", 3),
}
#: Variables that name the settings and the unlocked keys; a server gets only a few others (HOME, PATH, USER and the like).
_VARIABLES: Final = (
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "IPFSMEM_CONFIG",
)
#: Keys that Codex writes into the table of a server: an "always allow", and a disabled server.
_PROGRAM_KEYS: Final = ("tools", "enabled", "default_tools_approval_mode")


def _folder(around: Surroundings) -> Path:
    return around.folder_of("CODEX_HOME", around.user / ".codex")


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    command, *arguments = launch.server()
    body = "\n".join(
        (
            f"[mcp_servers.{NAME}]",
            f"command = {text_value(command)}",
            f"args = [{', '.join(map(text_value, arguments))}]",
            f"env_vars = [{', '.join(map(text_value, _VARIABLES))}]",
        )
    )
    return (
        ConfigFile(
            path=_folder(around) / "config.toml",
            wanted=(Table(table=("mcp_servers", NAME), body=body, program_keys=_PROGRAM_KEYS),),
        ),
        ConfigFile(
            path=_folder(around) / "hooks.json", wanted=hook_entries(launch, _NAME, _EVENTS, group_of_one)
        ),
    )


PROGRAM: Final = Program(
    name=_NAME,
    title="Codex",
    command="codex",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=(
        "Codex runs a new hook only after a review: type /hooks in Codex, and trust those of ipfsmem.",
        "Running sessions use it after a restart.",
    ),
)
