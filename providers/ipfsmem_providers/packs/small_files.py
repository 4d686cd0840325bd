"""Small objects (ipfsmem/provider/small_objects.py) in an object store: one file each.

    small/<box>.<label>.<sha256>

Files never change. Neither merging nor a collection touches them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.provider.small_objects import SMALL_MAX, is_small, listed, parse_small_name
from ipfsmem_providers.packs.object_store import Head, ObjectStore

#: The folder.
SMALL: Final = "small"


class SmallFiles:
    """The small objects of one location. Methods block; names were checked."""

    separator = "."

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, name: str, data: bytes) -> None:
        """Store an object durably."""
        self._store.write(self._file(name), data)

    def sizes(self, boxes: Collection[str]) -> dict[str, int]:
        """Return the objects of these boxes with their sizes, by one listing. If there are too many others, each box is listed."""
        if len(boxes) == 1:
            return self._listed(boxes, *boxes)
        try:
            return self._listed(boxes, "")
        except ProviderRefused:
            return {name: size for box in sorted(boxes) for name, size in self._listed([box], box).items()}

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the objects that exist and are sound."""
        files = {self._file(name): name for name in names}
        heads = self._heads([*files]) if files else {}
        found = {files[file]: head.data for file, head in heads.items() if head.size == len(head.data)}
        return {name: data for name, data in found.items() if is_small(name, data)}

    def remove(self, names: Collection[str]) -> None:
        """Remove objects; absent ones are ignored. One that cannot be removed is reported after the others are."""
        problems: list[Exception] = []
        for name in names:
            try:
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    self._store.unlink(self._file(name))
            except (OSError, ProviderError) as error:
                problems.append(error)
                if isinstance(error, ProviderError) and not error.permanent:
                    break
        self._store.flush()
        if problems:
            raise problems[0]

    def _listed(self, boxes: Collection[str], box: str) -> dict[str, int]:
        files = self._store.files(f"{box}{self.separator}" if box else "")
        named = ((file.replace(self.separator, "/", 1), info.size) for file, info in files.items())
        return listed(named, boxes)

    def _heads(self, files: Sequence[str]) -> dict[str, Head]:
        """Return the files that exist. One that is refused does not hide the others."""
        try:
            return self._store.heads(files, SMALL_MAX + 1)
        except (PermissionError, ProviderError) as error:
            if len(files) == 1 or not _is_refusal(error):
                raise
        found: dict[str, Head] = {}
        refusals: list[Exception] = []
        for file in files:
            try:
                found |= self._store.heads([file], SMALL_MAX + 1)
            except (PermissionError, ProviderError) as error:
                if not _is_refusal(error):
                    raise
                refusals.append(error)
        if len(refusals) == len(files):
            raise refusals[0]
        return found

    def _file(self, name: str) -> str:
        return name.replace("/", self.separator, 1)


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, PermissionError) or (isinstance(error, ProviderError) and error.permanent)


def is_small_file(file: str) -> bool:
    """Return whether a file in a folder has the name of a small object."""
    return parse_small_name(file.replace(".", "/", 1)) is not None


def holds_small(file: str, data: bytes) -> bool:
    """Return whether bytes are those of the small object with this file name."""
    return is_small(file.replace(".", "/", 1), data)
