"""Erases the texts of forgotten memories from this device, in mode `local`.

The forget itself is a value in the state (format section 5) and stays. In modes that publish, `gc` removes published data by its
own rules.
"""

from __future__ import annotations

from collections.abc import Collection

from ipfsmem.device.collection import collect
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.replica import Replica
from ipfsmem.memories.memories import MemoryStore


def erase(replica: Replica, memories: MemoryStore, keys: Collection[str], done: str = "") -> None:
    """Delete every text of these forgotten memories from the database, with their index lines, older versions and words in the
    stored index of recall. Pass all keys in one call, because each call scans the whole database. `done`: the change to record, if
    it was not recorded.

    Only for mode `local`, in which no published root refers to the texts. Raises StorageError.
    """
    with replica.transaction():
        replica.store.checkpoint(folders=False)
        memories.overview.look(keep=True)
        if done:
            note_irrevocable(replica, f"{done} was forgotten, and its text left the disk")
        collect(replica.store, (), dry_run=False, forgotten={(memories.scope, key) for key in keys})
    replica.db.empty_log()
    from ipfsmem.device.recall_image import remove_images  # not needed for reads

    remove_images(replica)
