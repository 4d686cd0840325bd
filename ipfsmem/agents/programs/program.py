"""What is known of a program: where it keeps its settings on each system, and what is to be added there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipfsmem.agents.command_line import Launch, hook_mark
from ipfsmem.agents.edits import Entry, Wanted
from ipfsmem.agents.json_edits import APPEND
from ipfsmem.config import expanded

#: What our entry is called everywhere.
NAME: Final = "ipfsmem"


class Surroundings(msgspec.Struct, frozen=True):
    """Whose machine it is: the user's folder, the variables, and the system (`sys.platform`)."""

    user: Path
    environment: Mapping[str, str]
    system: str

    def folder_of(self, variable: str, usual: Path) -> Path:
        """The folder that a variable names, else the usual one."""
        named = self.environment.get(variable)
        return expanded(named) if named else usual

    def settings(self) -> Path:
        """Where programs keep settings: XDG_CONFIG_HOME, else `.config`."""
        return self.folder_of("XDG_CONFIG_HOME", self.user / ".config")

    def application_data(self) -> Path:
        """Where programs with a window keep them: on Windows and macOS the system's own folder."""
        if self.system == "win32":
            return self.folder_of("APPDATA", self.user / "AppData" / "Roaming")
        if self.system == "darwin":
            return self.user / "Library" / "Application Support"
        return self.settings()


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a program, and what is to be in it."""

    path: Path
    wanted: tuple[Wanted, ...]
    #: What the file begins with where there is none yet.
    seed: str = ""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program that can be connected."""

    name: str
    title: str
    #: Its command, by which it is known to be installed when it has no settings yet.
    command: str
    #: Folders and files of which one is there when the program has run.
    traces: Callable[[Surroundings], tuple[Path, ...]]
    files: Callable[[Surroundings, Launch], tuple[ConfigFile, ...]]
    #: What a person should know when it is connected.
    notes: tuple[str, ...] = ()

    def is_here(self, around: Surroundings) -> bool:
        """Whether it is installed, as far as can be seen."""
        if any(path.exists() for path in self.traces(around)):
            return True
        return shutil.which(self.command, path=around.environment.get("PATH")) is not None


def hook_entries(
    launch: Launch, program: str, events: Mapping[str, tuple[str, int]], item: Callable[[str, int], Any]
) -> tuple[Entry, ...]:
    """An item in the array of each event below `hooks`. `events`: the program's event, ours, and its time-out."""
    return tuple(
        Entry(
            path=("hooks", event, APPEND),
            value=item(launch.hook(ours, program), timeout),
            mark=hook_mark(ours, program),
        )
        for event, (ours, timeout) in events.items()
    )


def group_of_one(command: str, timeout: int) -> Any:
    """A group of hooks without a matcher, as Claude Code, Codex and Gemini CLI have them."""
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}


def settings_json(
    folder: Path, launch: Launch, program: str, events: Mapping[str, tuple[str, int]]
) -> tuple[ConfigFile, ...]:
    """Servers and hooks in one `settings.json`, as Gemini CLI and what was made of it have them. `events`: as in `hook_entries`."""
    server = Entry(path=("mcpServers", NAME), value=stdio(launch))
    hooks = hook_entries(launch, program, events, group_of_one)
    return (ConfigFile(path=folder / "settings.json", wanted=(server, *hooks)),)


def stdio(launch: Launch) -> dict[str, Any]:
    """A server that is started and spoken to through its standard streams, as most programs write it."""
    command, *arguments = launch.server()
    return {"command": command, "args": arguments}
