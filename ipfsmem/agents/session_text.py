"""What an agent is given at the start of a session: what is everybody's, and what is its project's.

Only a connected folder gets what is its project's (`agents/projects.py`). What the program reads by itself, out of a folder that it
keeps and that was adopted, is not given a second time.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ipfsmem.agents.projects import find_connected
from ipfsmem.device.project_folders import ProjectFolder
from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory


def session_text(
    namespace: str, home: Path, folder: str, program: str, max_tokens: int, passphrase: str | None = None
) -> tuple[str, list[str]]:
    """The text for the model, empty when there is nothing to give; and what a person should know about the folders of the project.

    Raises PassphraseError while the keys of the memory are locked, NotFoundError, StorageError.
    """
    with Memory.load(namespace, home=home, passphrase=passphrase) as memory:
        row: ProjectFolder | None = None
        adopted = False
        with contextlib.suppress(UsageError):  # the folder went away meanwhile: nobody's project
            project, row = find_connected(memory, folder)
            attached = {one.path for one in memory.folders.list()}
            adopted = (
                row is not None
                and row.path == str(project.folder)  # else it was moved, and the program looks elsewhere now
                and row.adopted.get(program) in attached
            )
        scope = "" if row is None or adopted else memory.scopes.target(row.scope)
        lines = _paused(memory, row)
        return memory.scope(scope).context(max_tokens=max_tokens).text, lines


def _paused(memory: Memory, row: ProjectFolder | None) -> list[str]:
    paths = set(row.adopted.values()) if row is not None else set()
    return [
        f"{one.path} is {one.state}: ipfsmem folders list"
        for one in memory.folders.list()
        if one.path in paths and one.state != "ok"
    ]
