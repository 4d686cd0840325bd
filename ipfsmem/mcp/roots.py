"""Which project a program works on: the scope that a person connected with the folder in which it works."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ipfsmem.errors import IpfsmemError

if TYPE_CHECKING:
    from ipfsmem.memory import Memory

#: Folders of one program that are looked at.
_MOST: Final = 20


def folders_of(uris: Iterable[str]) -> list[Path | None]:
    """The folders of this machine that some URIs name; None for each that names another place."""
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
    """The projects of folders, cached until the memory changes."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: meant where a program does not say in which it works."""
        self._folder = folder
        self._known: dict[Path, str] = {}
        self._mark: object = None
        self._of: weakref.ref[Memory] | None = None

    def scope_of(self, memory: Memory, roots: list[Path | None] | None) -> str:
        """The scope of the first connected folder; "" without one. The folder in which the server was started counts only for a program
        that names no roots at all; one that works elsewhere gets no project's scope."""
        db = memory.replica.db
        # What others commit, and what this connection writes itself.
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
    except IpfsmemError:  # the folder is gone, or cannot be read
        return ""
    if row is None:
        return ""
    try:
        memory.scopes.known(row.scope, live=True)
    except IpfsmemError:
        return ""  # its scope was forgotten
    return row.scope
