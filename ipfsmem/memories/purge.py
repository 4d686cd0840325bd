"""What a forgotten memory leaves behind on this device, in a mode that publishes nothing: taken away.

The wish itself is a value in the state (format section 5) and stays. Published roots are not touched here: in modes that
have them what was published is let go of by `gc`, by its own rules.
"""

from __future__ import annotations

from collections.abc import Collection

from ipfsmem.device.collection import collect
from ipfsmem.device.last_change import note_irrevocable
from ipfsmem.device.replica import Replica
from ipfsmem.memories.memories import Memories


def erase(replica: Replica, memories: Memories, keys: Collection[str], done: str = "") -> None:
    """Take every text of forgotten memories off the database, with their lines of the index, their older versions and their words in the
    kept index of recall, all at once: each time the whole database is looked through. `done`: what happened, where nobody noted it.

    Only for mode `local`, where nothing else refers to them. Raises StorageError.
    """
    with replica.transaction():
        replica.store.checkpoint(folders=False)
        memories.overview.look(keep=True)
        if done:
            note_irrevocable(replica, f"{done} was forgotten, and its text left the disk")
        collect(replica.store, (), dry_run=False, forgotten={(memories.scope, key) for key in keys})
    replica.db.empty_log()
    from ipfsmem.device.recall_image import remove_images  # what only reads need not load this

    remove_images(replica)
