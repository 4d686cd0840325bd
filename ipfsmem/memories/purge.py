"""What a forgotten memory leaves behind on this device, in a mode that publishes nothing: taken away.

The wish itself is a value in the state (format section 5) and stays. Published roots are not touched here: in modes that
have them what was published is let go of by `gc`, by its own rules.
"""

from __future__ import annotations

from ipfsmem.device.collection import collect
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.replica import Replica
from ipfsmem.memories.memories import Memories


def erase(replica: Replica, memories: Memories, key: str) -> None:
    """Take every text of a forgotten memory off the database, with its line of the index, its older versions and its words in the kept index of recall; of a whole
    scope with "".

    Only for mode `local`, where nothing else refers to them. Raises StorageError.
    """
    with replica.transaction():
        replica.store.checkpoint(folders=False)
        memories.overview.look(keep=True)
        if key:  # of a scope it is noted already
            note_irrevocable(replica, f"{key} was forgotten, and its text left the disk")
        collect(replica.store, (), dry_run=False, forgotten=key)
    replica.db.empty_log()
    from ipfsmem.device.recall_image import remove_images  # what only reads need not load this

    remove_images(replica)
