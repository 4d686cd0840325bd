"""opencode: servers in `opencode.json` or `opencode.jsonc`, in the format of version 1, which version 2 reads, too."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Final

from ipfsmem.agents import json_edits
from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings
from ipfsmem.device import config_files
from ipfsmem.errors import IpfsmemError

_SEED: Final = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'


def _folder(around: Surroundings) -> Path:
    return around.settings() / "opencode"


def _settings(around: Surroundings) -> Path:
    """Return the path of the file in use: `opencode.jsonc` if it exists."""
    with_comments = _folder(around) / "opencode.jsonc"
    return with_comments if with_comments.exists() else _folder(around) / "opencode.json"


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    path = _settings(around)
    value: dict[str, Any] = {"type": "local", "command": [*launch.server()]}
    entry = ConfigEntry(path=("mcp", NAME), value={**value, "enabled": True})
    if _is_of_version_2(path):
        entry = ConfigEntry(path=("mcp", "servers", NAME), value=value)
    return (ConfigFile(path=path, wanted=(entry,), seed=_SEED),)


def _is_of_version_2(path: Path) -> bool:
    """Tell whether the file has servers below `mcp.servers`. With a `type` that is a server of this name."""
    servers: Any = None
    with contextlib.suppress(IpfsmemError, UnicodeDecodeError):  # reported when it is edited
        data = config_files.read(path).data
        servers = json_edits.find((data or b"").decode("utf-8-sig"), ("mcp", "servers"))
    return isinstance(servers, dict) and "type" not in servers


PROGRAM: Final = Program(
    name="opencode",
    title="opencode",
    command="opencode",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Running sessions use it after a restart.",),
)
