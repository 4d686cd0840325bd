"""Read the files of another device's published root, and its state nodes as far as they differ from ours.

The functions are generators over `content.reader` that yield requests and receive blocks. Blocks are checked against
their CIDs; the caller verifies their content.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from ipfsmem.causal.tree import Difference, StateTree, diff_steps
from ipfsmem.content.cid import CID
from ipfsmem.content.reader import Reader
from ipfsmem.errors import BlockError, DamagedError, FormatError
from ipfsmem.ring.keyring import MAX_RING

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch

#: Maximum bytes of a state node file (format section 8).
MAX_NODE = 1024 * 1024
#: Number of state nodes read together, within the limits of one reader.
AT_ONCE = 1_024
PLAIN_FOLDER = ("memory", ".ipfsmem")


class RootFiles(msgspec.Struct, frozen=True):
    """The top of a published root: the ring, the head (None at an anchor), the state's folder."""

    root: CID
    plain: bool
    keyring: bytes
    head: bytes | None
    state: CID | None
    objects: CID | None = None


def read_root(reader: Reader, root: CID, *, ring_alone: bool = False) -> Fetch[RootFiles]:
    """Read ring and head of a root, sealed or plain; with `ring_alone` no head. Raises FormatError if it is neither."""
    names = {link.name: link.cid for link in (yield from reader.list_directory(root))}
    plain = "memory" in names and "keyring.json" not in names
    if plain:
        folder = yield from reader.resolve(root, PLAIN_FOLDER)
        names = {link.name: link.cid for link in (yield from reader.list_directory(folder.cid))}
    ring = names.get("keyring.json")
    head = None if ring_alone else names.get("commit.json" if plain else "head.ipm")
    if ring is None:
        raise FormatError(f"root {root} has no keyring.json: not an ipfsmem vault")
    files = yield from reader.read_files([cid for cid in (ring, head) if cid is not None], max_bytes=MAX_RING)
    return RootFiles(
        root, plain, files[ring], files[head] if head is not None else None, names.get("s"), names.get("o")
    )


def differences(
    state: CID | None,
    extension: str,
    mine: StateTree,
    digest: bytes,
    open_node: Callable[[str, bytes], bytes],
) -> Fetch[list[Difference]]:
    """Return every entry in which the state under the folder `state` differs from `mine`, reading only differing paths.

    `digest` is the hash of its top node as named by the commit; `open_node(prefix, stored)` unseals a node. The
    signed hash authenticates every node, so only each portion is bounded, not the total that members wrote. Raises
    FormatError for a malformed node with the right hash; DamagedError, OpenError, BlockError or NotFoundError
    for anything that a stranger may have substituted: folders are not signed (format section 7.1).
    """
    folders: dict[str, dict[str, CID]] = {}
    steps = diff_steps(mine, digest)
    try:
        wanted = next(steps)
        if state is None:
            raise DamagedError("the root holds no state")
        while True:
            texts: list[bytes] = []
            for start in range(0, len(wanted), AT_ONCE):
                part = [prefix for prefix, _ in wanted[start : start + AT_ONCE]]
                with _unsigned():
                    texts += yield from _read_nodes(Reader(), folders, part, state, extension, open_node)
            wanted = steps.send(texts)
    except StopIteration as end:
        found: list[Difference] = end.value
        return found


def _read_nodes(
    reader: Reader,
    folders: dict[str, dict[str, CID]],
    prefixes: Sequence[str],
    state: CID,
    extension: str,
    open_node: Callable[[str, bytes], bytes],
) -> Fetch[list[bytes]]:
    """Return the opened nodes with these prefixes; add the folders on the way to `folders`."""
    parents = {prefix[:-1] for prefix in prefixes}
    missing = {p: _folder_cid(folders, p, state) for p in parents if p not in folders}
    listed = yield from reader.list_directories(missing.values())
    for parent, cid in missing.items():
        folders[parent] = {link.name: link.cid for link in listed[cid]}
    cids = [_file_cid(folders, prefix, extension) for prefix in prefixes]
    stored = yield from reader.read_files(cids, max_bytes=MAX_NODE)
    return [open_node(prefix, stored[cid]) for prefix, cid in zip(prefixes, cids, strict=True)]


@contextlib.contextmanager
def _unsigned() -> Iterator[None]:
    """Report mismatches in folders, files and seals as damage while no signed hash was compared: whoever
    serves them may have caused them."""
    try:
        yield
    except (BlockError, DamagedError):
        raise
    except FormatError as error:
        raise DamagedError(str(error)) from None


def node_reader(reader: Reader, state: CID, extension: str) -> Callable[[str], Fetch[bytes]]:
    """Return a function that reads the stored bytes of one state node by prefix."""

    def read(prefix: str) -> Fetch[bytes]:
        path = [*prefix[:-1], (prefix[-1] if prefix else "top") + extension]
        entry = yield from reader.resolve(state, path)
        return (yield from reader.read_file(entry.cid, max_bytes=MAX_NODE))

    return read


def _folder_cid(folders: dict[str, dict[str, CID]], prefix: str, state: CID) -> CID:
    if not prefix:
        return state
    cid = folders[prefix[:-1]].get(prefix[-1])
    if cid is None:
        raise DamagedError(f"the state has no folder for prefix {prefix}")
    return cid


def _file_cid(folders: dict[str, dict[str, CID]], prefix: str, extension: str) -> CID:
    name = prefix[-1] if prefix else "top"
    cid = folders[prefix[:-1]].get(name + extension)
    if cid is None:
        raise DamagedError(f"the state has no node for prefix {prefix or 'top'}")
    return cid
