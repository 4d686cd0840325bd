"""goose (command line and desktop): extensions in `config.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings
from ipfsmem.agents.yaml_edits import YamlEntry
from ipfsmem.config import expanded

#: Keys that goose writes into an extension when its settings are changed there.
_PROGRAM_KEYS: Final = (
    "enabled",
    "description",
    "envs",
    "env_keys",
    "timeout",
    "cwd",
    "bundled",
    "available_tools",
)


def _folder(around: Surroundings) -> Path:
    root = around.environment.get("GOOSE_PATH_ROOT")
    if root:
        return expanded(root) / "config"
    if around.system == "win32":
        return around.application_data() / "Block" / "goose" / "config"
    return around.settings() / "goose"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    command, *arguments = launch.server()
    value = {
        "type": "stdio",
        "name": NAME,
        "description": "Memory that other agents and machines share",
        "enabled": True,
        "cmd": command,
        "args": arguments,
        "timeout": 300,
    }
    entry = YamlEntry(path=("extensions", NAME), value=value, program_keys=_PROGRAM_KEYS)
    return (ConfigFile(path=_folder(around) / "config.yaml", wanted=(entry,)),)


PROGRAM: Final = Program(
    name="goose",
    title="goose",
    command="goose",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Running sessions use it after a restart.",),
)
