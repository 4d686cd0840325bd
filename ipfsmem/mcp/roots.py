"""Find the scope that the user connected to an MCP client's working folder."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ipfsmem.errors import IpfsmemError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Maximum number of folders of one program.
_MOST: Final = 20


def folders_of(uris: Iterable[str]) -> list[Path | None]:
    """Return the local folders of URIs; None for each URI of another kind."""
    return [_folder_of(uri) for uri in list(uris)[:_MOST]]


def _folder_of(uri: str) -> Path | None:
    try:
        split = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(split.path)
    if split.scheme != "file" or split.netloc not in ("", "localhost") or not path or "\0" in path:
        return None
    if path[2:3] == ":" and path[:1] == "/":  # file:///C:/work
        path = path[1:]
    return Path(path)


class Projects:
    """The projects of folders, cached until the vault changes."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: working folder of programs that name no roots."""
        self._folder = folder
        self._known: dict[Path, str] = {}
        self._mark: object = None
        self._of: weakref.ref[Memory] | None = None

    def scope_of(self, memory: Memory, roots: list[Path | None] | None) -> str:
        """Return the scope of the first connected folder; "" without one. The server's own folder is used only for a program
        that names no roots at all; one that works elsewhere gets no project's scope."""
        db = memory.replica.db
        # Commits of other processes, and writes of this connection.
        mark = db.version(), db.connection.total_changes
        if self._of is None or self._of() is not memory or mark != self._mark:
            self._known, self._mark, self._of = {}, mark, weakref.ref(memory)
        for folder in roots or ([] if self._folder is None else [self._folder]):
            if folder is None:
                continue
            if folder not in self._known:
                self._known[folder] = _scope_of(memory, folder)
            if self._known[folder]:
                return self._known[folder]
        return ""


def _scope_of(memory: Memory, folder: Path) -> str:
    from ipfsmem.agents.projects import find_connected

    try:
        row = find_connected(memory, folder)[1]
    except IpfsmemError:  # the folder is missing or unreadable
        return ""
    if row is None:
        return ""
    try:
        memory.scopes.known(row.scope, live=True)
    except IpfsmemError:
        return ""  # the scope is forgotten
    return row.scope
