"""Build a folder tree from paths, with files in memory or as links to known blocks.

`files.pack` builds large files and trees on a disk, with the same CIDs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ipfsmem.content.unixfs import BlockLink, FileRoot, directory, file_bytes
from ipfsmem.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ipfsmem.content.cid import CID
    from ipfsmem.content.unixfs import Block


class StoredTree(NamedTuple):
    """A file or folder whose blocks exist elsewhere: its CID and the size of all blocks below."""

    cid: CID
    tsize: int


class BuiltTree(NamedTuple):
    """A finished tree.

    `blocks`: children before parents, each once, without blocks of stored parts. `folders`: each folder by path (the
    root is ""); an unchanged one can be passed as StoredTree to the next build.
    """

    cid: CID
    tsize: int
    blocks: list[Block]
    folders: dict[str, StoredTree]


def build_tree(files: Mapping[str, bytes | StoredTree], empty_folders: Iterable[str] = ()) -> BuiltTree:
    """Build a folder from files by path (`a/b.md`; no leading slash), with the folders in between.

    Raises FormatError for a path with an empty part, `.` or `..`, and for a path that is both a file and a folder.
    """
    entries: dict[str, list[BlockLink]] = {"": []}
    blocks: dict[CID, bytes] = {}
    for path in empty_folders:
        _make_folders(entries, path)
    for path, content in files.items():
        folder, slash, name = path.rpartition("/")
        if slash and not folder:
            raise FormatError(f"{path!r} is not a path: it starts with a slash")
        _make_folders(entries, folder)
        root: FileRoot | StoredTree
        if isinstance(content, StoredTree):
            root = content
        else:
            root, parts = file_bytes(content)
            blocks.update(parts)
        entries[folder].append(BlockLink(name, root.cid, root.tsize))
    folders: dict[str, StoredTree] = {}
    # Deepest first; the root has no name and comes last.
    for path in sorted(entries, key=lambda path: path.count("/") + 1 if path else 0, reverse=True):
        made = directory(entries[path])
        blocks.update(made.blocks)
        folders[path] = StoredTree(made.cid, made.tsize)
        if path:
            above, _, name = path.rpartition("/")
            entries[above].append(BlockLink(name, made.cid, made.tsize))
    root_folder = folders[""]
    return BuiltTree(root_folder.cid, root_folder.tsize, list(blocks.items()), folders)


def _make_folders(entries: dict[str, list[BlockLink]], path: str) -> None:
    """Add the folder `path` and its parents to `entries`. Names are checked when the folders are built."""
    while path not in entries:
        entries[path] = []
        above, slash, _ = path.rpartition("/")
        if slash and not above:
            raise FormatError(f"{path!r} is not a path: it starts with a slash")
        path = above
