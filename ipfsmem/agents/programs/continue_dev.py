"""Continue (editor extensions and command line): servers in `config.yaml`, else a file of our own that its extensions read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipfsmem.agents.command_line import Launch
from ipfsmem.agents.edits import ConfigEntry
from ipfsmem.agents.programs.program import NAME, ConfigFile, Program, Surroundings, stdio
from ipfsmem.agents.yaml_edits import YamlEntry


def _folder(around: Surroundings) -> Path:
    return around.folder_of("CONTINUE_GLOBAL_DIR", around.user / ".continue")


def _files(around: Surroundings, launch: Launch) -> tuple[ConfigFile, ...]:
    settings, ours = _folder(around) / "config.yaml", _folder(around) / "mcpServers" / f"{NAME}.json"
    if settings.exists():  # its command line reads no other file; a new file would replace its defaults
        listed = YamlEntry(path=("mcpServers", NAME), value={"name": NAME, **stdio(launch)}, listed=True)
        # Its extensions read both files, so our earlier file is removed.
        both = (ConfigFile(path=settings, wanted=(listed,)), ConfigFile(path=ours, wanted=()))
        return both if ours.exists() else both[:1]
    server = ConfigEntry(path=("mcpServers", NAME), value=stdio(launch))
    return (ConfigFile(path=ours, wanted=(server,)),)


PROGRAM: Final = Program(
    name="continue",
    title="Continue",
    command="cn",
    traces=lambda around: (_folder(around),),
    files=_files,
    notes=("Reload Continue's configuration; the tools are offered in agent mode.",),
)
