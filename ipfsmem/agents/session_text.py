"""What an agent is given at the start of a session: what is everybody's, and what is its project's.

Only a connected folder gets what is its project's (`agents/projects.py`). What the program reads by itself, out of a folder that it
keeps and that was adopted, is not given a second time.
"""

from __future__ import annotations

import contextlib
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ipfsmem.agents.projects import find_connected
from ipfsmem.device.project_folders import ProjectFolder
from ipfsmem.errors import UsageError
from ipfsmem.memory import Memory


class SessionText(NamedTuple):
    """The text for the model, empty when there is nothing to give; what a person should know about the folders of the project; and
    a hash of the text under a key of this device, by which the same text is known again."""

    text: str = ""
    lines: tuple[str, ...] = ()
    mark: str = ""


def session_text(
    namespace: str, home: Path, folder: str, program: str, max_tokens: int, passphrase: str | None = None
) -> SessionText:
    """What an agent is given in a folder.

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
        lines = tuple(_paused(memory, row))
        text = memory.scope(scope).context(max_tokens=max_tokens).text
        mark = blake2b(
            text.encode(), digest_size=16, key=memory.replica.device.row_key, person=b"session text"
        )
        return SessionText(text, lines, mark.hexdigest())


def _paused(memory: Memory, row: ProjectFolder | None) -> list[str]:
    paths = set(row.adopted.values()) if row is not None else set()
    return [
        f"{one.path} is {one.state}: ipfsmem folders list"
        for one in memory.folders.list()
        if one.path in paths and one.state != "ok"
    ]
