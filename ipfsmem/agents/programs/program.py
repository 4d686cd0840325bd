"""The description of a program: the paths of its settings on each system, and the entries to add."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipfsmem.agents.command_line import Launch, hook_mark
from ipfsmem.agents.edits import ConfigEntry, Wanted
from ipfsmem.agents.json_edits import APPEND
from ipfsmem.config import expanded

#: The name of our entry everywhere.
NAME: Final = "ipfsmem"


class Surroundings(msgspec.Struct, frozen=True):
    """The environment: the user's folder, the variables, and the system (`sys.platform`)."""

    user: Path
    environment: Mapping[str, str]
    system: str

    def folder_of(self, variable: str, usual: Path) -> Path:
        """Return the folder that a variable names, else `usual`."""
        path = self.environment.get(variable)
        return expanded(path) if path else usual

    def settings(self) -> Path:
        """Return the folder of programs' settings: XDG_CONFIG_HOME, else `.config`."""
        return self.folder_of("XDG_CONFIG_HOME", self.user / ".config")

    def application_data(self) -> Path:
        """Return the settings folder of programs with a window: on Windows and macOS the system's own."""
        if self.system == "win32":
            return self.folder_of("APPDATA", self.user / "AppData" / "Roaming")
        if self.system == "darwin":
            return self.user / "Library" / "Application Support"
        return self.settings()


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a program, and our entries in it."""

    path: Path
    wanted: tuple[Wanted, ...]
    #: The initial content of a new file.
    seed: str = ""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A supported program."""

    name: str
    title: str
    #: Its command, which shows that it is installed before it has settings.
    command: str
    #: Folders and files of which one exists after the program has run.
    traces: Callable[[Surroundings], tuple[Path, ...]]
    files: Callable[[Surroundings, Launch], tuple[ConfigFile, ...]]
    #: Notes for a person who connects it.
    notes: tuple[str, ...] = ()

    def is_here(self, around: Surroundings) -> bool:
        """Tell whether it seems to be installed."""
        if any(path.exists() for path in self.traces(around)):
            return True
        return shutil.which(self.command, path=around.environment.get("PATH")) is not None


def hook_entries(
    launch: Launch, program: str, events: Mapping[str, tuple[str, int]], item: Callable[[str, int], Any]
) -> tuple[ConfigEntry, ...]:
    """Return an item in the array of each event below `hooks`. `events`: the program's event, ours, and its timeout."""
    return tuple(
        ConfigEntry(
            path=("hooks", event, APPEND),
            value=item(launch.hook(ours, program), timeout),
            mark=hook_mark(ours, program),
        )
        for event, (ours, timeout) in events.items()
    )


def group_of_one(command: str, timeout: int) -> Any:
    """Return a group of hooks without a matcher, as in Claude Code, Codex and Gemini CLI."""
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}


def settings_json(
    folder: Path, launch: Launch, program: str, events: Mapping[str, tuple[str, int]]
) -> tuple[ConfigFile, ...]:
    """Return servers and hooks in one `settings.json`, as in Gemini CLI and its forks. `events`: as in `hook_entries`."""
    server = ConfigEntry(path=("mcpServers", NAME), value=stdio(launch))
    hooks = hook_entries(launch, program, events, group_of_one)
    return (ConfigFile(path=folder / "settings.json", wanted=(server, *hooks)),)


def stdio(launch: Launch) -> dict[str, Any]:
    """Return the entry of a server that is started as a command and uses standard streams."""
    command, *arguments = launch.server()
    return {"command": command, "args": arguments}
