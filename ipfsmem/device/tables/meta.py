"""The table `meta`: single values by name. Every name that there is stands in this module, with what its value says.

Each value carries a checksum with its name, so a flipped bit never passes for a value. Those said to be *sealed* lie under
the device's own key in a sealed memory; the others tell nothing that may not be read without a key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from ipfsmem.device.connection import Connection, blob, damaged, not_found_again

# -- the memory on this device --

#: "1": the memory was made to its end. Where it is missing, the folder may be made anew.
FINISHED: Final = "finished"
#: Where the files lay when they were last used, as `device.identity.place` says: elsewhere they are a copy.
PLACE: Final = "place"
#: The state at the last checkpoint, sealed: top of its tree, frame, and what the store wants to find at once.
STATE: Final = "state"
#: Hash over the state and all rows of the journal: none is missing, doubled or moved.
JOURNAL_CHAIN: Final = "journal"
#: "1": a part of the state could not be read, and the next sync asks others for it.
DAMAGED_STATE: Final = "damaged state"
#: The counter of this device's timeline events, as decimal digits.
EVENTS: Final = "events"
#: What this device's last change took away and put there, sealed JSON: what `undo` undoes.
LAST_CHANGE: Final = "last-change"
#: Ids, with spaces between, of those whose values may be here that are of other persons.
STRANGERS: Final = "strangers"
#: "1": the working copies were begun, so a folder that is missing is not simply made.
WORKING_COPIES: Final = "working-copies"
#: Marks of what looked like a secret and was said or allowed, sealed JSON.
KNOWN_SECRETS: Final = "known secrets"
#: Hash of the rules by which texts were last looked at for secrets.
SECRET_RULES: Final = "secret rules"  # noqa: S105
#: Begins the names of what was shown of the memories below a prefix of the tree, which follows; sealed JSON.
SHOWN: Final = "shown/"

# -- its ring and keys --

#: The ring, under the row key of this device.
RING: Final = "ring"
#: Signing seed and box secret of this device since it took another id, under its row key.
SIGN: Final = "sign"
#: Signing seed of the id before that one, under the row key, until the other devices follow the new one; else empty.
FORMER: Final = "former"
#: The keys that were enrolled, under the row key, while this device goes on under a successor of them; else empty.
ENROLLED: Final = "enrolled"
#: What was said to the person already and is said once, JSON.
TOLD: Final = "told"
#: The 64 random bytes of a vault without a wallet, under the row key.
KEPT_ROOT: Final = "kept root"
#: "1": something lies under a key that the ring does not name, and is sealed anew by the next publish.
STRAY: Final = "stray"
#: "1": texts lie under this device's own key, written while no epoch key could seal.
LOCAL_BODIES: Final = "local-bodies"
#: "1": what was written while there was no vault is signed.
SIGNED: Final = "signed"

# -- what it published --

#: The root that this device published, or took over, last, as text.
ROOT: Final = "root"
#: "1": another root than that is on its way; "0" when it arrived.
SENDING: Final = "sending"
#: This device's last commit and its root, sealed JSON.
COMMIT: Final = "commit"
#: The root whose tree holds all that this device holds of the state, as text; empty when none does.
WHOLE: Final = "whole"
#: When the objects were last counted by the state (milliseconds since 1970 UTC, decimal digits).
COUNTED: Final = "counted"
#: Begins the names of what is remembered of the folder of a scope in a plain root; the scope follows. JSON.
PLAIN_FOLDER: Final = "base/"
#: Begins the names of what is remembered of the shards of such a folder; scope and number follow. JSON.
PLAIN_SHARD: Final = "flat/"
#: IPNS records that are known, JSON.
NAMES: Final = "names"
#: Which record was last put where, JSON.
PUT: Final = "put"
#: Anchors that this device replaced, JSON.
ANCHORS_REPLACED: Final = "anchors_replaced"
#: What the anchors showed when all was last looked at because of them.
ANCHOR_BEHIND: Final = "anchor_behind"
#: Which anchors are pinned at which provider, JSON.
ANCHOR_PINS: Final = "anchor pins"
#: The newest word that the vault moved to another provider, sealed JSON.
MOVED: Final = "moved"
#: The id of the move that the person answered.
MOVED_ANSWERED: Final = "moved answered"

# -- what it saw --

#: "1": bodies were missing when their values were joined; "0" when all are here.
LACKING: Final = "lacking"
#: When missing bodies were last asked for, and which one last, JSON.
ASKED_FOR: Final = "asked for"
#: Each provider's list when it was last looked at, JSON.
LISTS: Final = "looked at"
#: Heads that are held back, and whose, JSON.
HELD: Final = "held"
#: Roots that stood somewhere and could not be joined whole, JSON.
NOT_WHOLE: Final = "not whole"
#: What joins of the last day took away, JSON.
GONE_LATELY: Final = "gone lately"
#: Begins the names of guards: the root that stays until the person says otherwise follows. JSON.
GUARD: Final = "guarded "
#: Which guards stand at which provider, JSON.
GUARD_PINS: Final = "guard pins"
#: When old roots last went by themselves (milliseconds since 1970 UTC, decimal digits).
COLLECTED: Final = "collected"


def get(db: Connection, name: str) -> bytes | None:
    """One value. Raises StorageError when it is not what was put there."""
    row = db.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
    if row is None:
        return None
    value = _checked(name, row[0])
    if value is None:
        raise damaged(db.path, f"the value {name!r} does not have its checksum")
    return value


def has(db: sqlite3.Connection, name: str) -> bool:
    """Whether there is a value of that name, sound or not."""
    return db.execute("SELECT 1 FROM meta WHERE name=?", (name,)).fetchone() is not None


def is_changed(db: Connection, name: str) -> bool:
    """Whether the disk changed a value into something that was not put there."""
    row = db.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
    return row is not None and _checked(name, row[0]) is None


def put(db: Connection, name: str, value: bytes) -> None:
    """Set one value (inside a transaction). Raises StorageError when it would not be found again."""
    db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?,?)", (name, _check(name, value) + value))
    if get(db, name) != value:
        raise not_found_again(db.path, f"the value {name!r}")


def names(db: Connection, prefix: str) -> list[str]:
    """All names that begin with `prefix`, sorted."""
    rows = db.execute("SELECT name FROM meta WHERE name >= ? AND name < ? ORDER BY name", _range(prefix))
    return [str(name) for (name,) in rows]


def sound(db: Connection, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Name and value of all whose name begins with `prefix`; values that are not what was put there are left out."""
    rows = db.execute("SELECT name, value FROM meta WHERE name >= ? AND name < ?", _range(prefix)).fetchall()
    for name, stored in rows:
        value = _checked(name, stored)
        if value is not None:
            yield name, value


def forget(db: Connection, names: Iterable[str]) -> None:
    """Forget values (inside a transaction)."""
    db.executemany("DELETE FROM meta WHERE name=?", [(name,) for name in names])


def forget_all(db: Connection, prefix: str) -> None:
    """Forget all values whose name begins with `prefix` (inside a transaction)."""
    db.execute("DELETE FROM meta WHERE name >= ? AND name < ?", _range(prefix))


def _range(prefix: str) -> tuple[str, str]:
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _check(name: str, value: bytes) -> bytes:
    return sha256(name.encode() + b"\0" + value).digest()[:8]


def _checked(name: str, stored: object) -> bytes | None:
    found = blob(stored)
    return found[8:] if found is not None and found[:8] == _check(name, found[8:]) else None
