"""Repair state nodes damaged on disk, from published copies of this device or others.

State nodes name each other by hash (format section 6.1), so their bytes prove themselves. The exact stored
bytes are requested first, then the same node of the newest known root. Later local writes are nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ipfsmem.content.cid import CID, parse_cid, raw_cid
from ipfsmem.content.fetch import drive_async
from ipfsmem.content.reader import Reader
from ipfsmem.device.replica import Replica
from ipfsmem.device.root_folders import state_folder
from ipfsmem.device.tables import meta
from ipfsmem.errors import DamagedError, IpfsmemError
from ipfsmem.provider.contract import Provider
from ipfsmem.published.root_reader import MAX_NODE, read_root
from ipfsmem.sync.fetch import Fetcher
from ipfsmem.sync.lost_objects import leave_out

if TYPE_CHECKING:
    from ipfsmem.content.fetch import Fetch


async def repair_state(replica: Replica, providers: Sequence[Provider]) -> bool:
    """Repair the damaged state nodes met by any process; tell whether all known ones are repaired."""
    if replica.db.get_meta(meta.DAMAGED_STATE) is None:
        return False
    fetcher = Fetcher(replica.db, providers)
    tried: set[tuple[str, bytes]] = set()
    while damaged := _damaged_parts(replica):
        # Below a repaired node others may be damaged; unavailable ones are not requested again.
        if tried.issuperset(damaged):
            return False
        for part in damaged:
            if part not in tried:
                await _repair_part(replica, fetcher, *part)
        tried.update(damaged)
    with replica.transaction():
        meta.forget(replica.db.connection, [meta.DAMAGED_STATE])
        if tried:
            # Folders name nodes by their bytes, which may be another device's now.
            state_folder(replica.db, replica.codec.extension, None)
            leave_out(replica.db, ())
    return True


def _damaged_parts(replica: Replica) -> list[tuple[str, bytes]]:
    replica.store.mark_outdated()
    with replica.reading():
        return replica.store.damaged_nodes()


async def _repair_part(replica: Replica, fetcher: Fetcher, prefix: str, digest: bytes) -> None:
    file = replica.store.file_of_node(prefix)
    if file is not None:
        found, _ = await fetcher.try_get([raw_cid(file)])
        if any(_put_back(replica, prefix, digest, stored) for stored in found.values()):
            return
    root = replica.db.get_meta(meta.ROOT)
    if root is None:
        return
    try:
        reading = _file_in(Reader(), parse_cid(root.decode()), prefix, replica.codec.extension)
        stored = await drive_async(reading, fetcher.get)
    except IpfsmemError:
        return  # unavailable now; readers are told that it is damaged
    _put_back(replica, prefix, digest, stored)


def _file_in(reader: Reader, root: CID, prefix: str, extension: str) -> Fetch[bytes]:
    """Return the file of node `prefix` in a root."""
    state = (yield from read_root(reader, root)).state
    if state is None:
        raise DamagedError(f"version {root} holds no state")
    path = (*prefix[:-1], f"{prefix[-1:] or 'top'}{extension}")
    found = yield from reader.resolve(state, path)
    return (yield from reader.read_file(found.cid, max_bytes=MAX_NODE))


def _put_back(replica: Replica, prefix: str, digest: bytes, stored: bytes) -> bool:
    with replica.transaction():
        return replica.store.restore_node(prefix, digest, stored)
