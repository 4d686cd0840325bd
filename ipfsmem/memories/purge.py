"""Removes the remains of a forgotten memory from this device, in a mode that publishes nothing.

The forget is a value in the state (format section 5) and stays. Published roots are not touched here: in modes with roots `gc`
removes published data by its own rules.
"""

from __future__ import annotations

from collections.abc import Collection

from ipfsmem.device.collection import collect
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.replica import Replica
from ipfsmem.memories.memories import MemoryStore


def erase(replica: Replica, memories: MemoryStore, keys: Collection[str], done: str = "") -> None:
    """Delete every text of forgotten memories from the database, with their lines of the index, their older versions and their
    words in the stored index of recall, all at once, as each call scans the whole database. `done`: the change to record, if
    it was not recorded.

    Only for mode `local`, where nothing else refers to them. Raises StorageError.
    """
    with replica.transaction():
        replica.store.checkpoint(folders=False)
        memories.overview.look(keep=True)
        if done:
            note_irrevocable(replica, f"{done} was forgotten, and its text left the disk")
        collect(replica.store, (), dry_run=False, forgotten={(memories.scope, key) for key in keys})
    replica.db.empty_log()
    from ipfsmem.device.recall_image import remove_images  # reads need not load this

    remove_images(replica)
