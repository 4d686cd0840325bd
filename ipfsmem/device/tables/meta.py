"""The table `meta`: single values by name. This module lists every name, with the meaning of its value.

Each value has a checksum that covers its name, so a flipped bit is noticed. The two without which nothing else can be read are
stored twice, and the copy is read if the first is damaged or missing. Values described as *sealed* are under the device's own key
in a sealed vault; the others reveal nothing that needs a key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final

from ipfsmem.device.connection import Connection, blob, damaged, not_found_again

# -- the memory on this device --

#: "1": the vault was created completely. Without it, the folder may be created again.
FINISHED: Final = "finished"
#: `device.identity.place` of the files when they were last used: in another location they are a copy.
PLACE: Final = "place"
#: The state at the last checkpoint, sealed: top of its tree, frame, and names of entries that are read often.
STATE: Final = "state"
#: Hash over the state and all rows of the journal, which shows a missing, doubled or moved row.
JOURNAL_CHAIN: Final = "journal"
#: "1": a part of the state could not be read, and the next sync restores it from elsewhere.
DAMAGED_STATE: Final = "damaged state"
#: The counter of this device's timeline events, as decimal digits.
EVENTS: Final = "events"
#: This device's last change, sealed JSON, for `undo`.
LAST_CHANGE: Final = "last-change"
#: Prefix of the names of the last proposal of a dream; "/" and a keyed hash of the scope follow. That of a version with a single
#: proposal has the bare name. Sealed JSON.
DREAM_PROPOSED: Final = "dream proposed"
#: Results of the last few dreams, sealed JSON; empty if absent.
DREAMS: Final = "dreams"
#: "1": automatic dreams are enabled for this vault on this device.
DREAMING: Final = "dreaming"
#: Device ids of other persons whose values may be here, separated by spaces.
STRANGERS: Final = "strangers"
#: Keyed hashes, 8 bytes each, of the texts imported from other programs.
IMPORTED: Final = "imported"
#: "1": a recovery phrase was shown on a terminal, and not confirmed by typing some of its words.
UNCONFIRMED_WORDS: Final = "unconfirmed words"
#: "1": linked folders exist, so a missing folder is not simply created.
WORKING_COPIES: Final = "working-copies"
#: Prefix of the names of lists of keys with times, ms; the id of a linked folder follows, from which their texts were read then.
#: A key leaves the list when its MEMORY.md is updated. Sealed JSON, empty if absent.
TAKEN_IN: Final = "taken-in/"
#: Marks of texts that looked like a secret and were reported or allowed, sealed JSON.
KNOWN_SECRETS: Final = "known secrets"
#: Hash of the rules by which texts were last searched for secrets.
SECRET_RULES: Final = "secret rules"  # noqa: S105
#: Which folders of this device belong to which project, and unconnected ones that were seen, sealed JSON.
PROJECTS: Final = "projects"
#: Prefix of the names of rendered lists; a prefix of the tree follows, whose memories were shown. Sealed MessagePack.
SHOWN: Final = "shown/"

# -- its ring and keys --

#: The ring, under the row key of this device.
RING: Final = "ring"
#: Signing seed and box secret of this device after it took another id, under its row key.
SIGN: Final = "sign"
#: Signing seed of the id before that one, under the row key, until the other devices follow the new one; else empty.
FORMER: Final = "former"
#: The enrolled keys, under the row key, while this device uses a successor of them; else empty.
ENROLLED: Final = "enrolled"
#: Notices that are shown to the user only once, JSON.
NOTICES_SHOWN: Final = "told"
#: The 64 random bytes of a vault without a wallet, under the row key.
KEPT_ROOT: Final = "kept root"
#: "1": something is sealed under a key that the ring does not name; the next publish seals it again.
STRAY: Final = "stray"
#: "1": texts are sealed under this device's own key, as no epoch key could seal when they were written.
LOCAL_BODIES: Final = "local-bodies"
#: "1": values that were written before there was a vault are signed.
SIGNED: Final = "signed"

# -- what it published --

#: The root that this device last published or adopted, as text.
ROOT: Final = "root"
#: "1": another root than `ROOT` is being uploaded; "0" when it arrived.
SENDING: Final = "sending"
#: This device's last commit and its root, sealed JSON.
COMMIT: Final = "commit"
#: The root whose tree has everything that this device has of the state, as text; empty if absent.
WHOLE: Final = "whole"
#: When the objects were last counted by the state (milliseconds since 1970 UTC, decimal digits).
COUNTED: Final = "counted"
#: Prefix of the names of cached folders of a scope in a plain root; the scope follows. JSON.
PLAIN_FOLDER: Final = "base/"
#: Prefix of the names of cached shards of such a folder; scope and number follow. JSON.
PLAIN_SHARD: Final = "flat/"
#: Known IPNS records, JSON.
NAMES: Final = "names"
#: The last record of each name that was published at each provider, JSON.
PUT: Final = "put"
#: Until when providers asked for a pause, by their names (milliseconds since 1970 UTC), JSON.
PAUSES: Final = "pauses"
#: What providers that take snapshots read earlier, by their names, JSON.
PROVIDER_CACHES: Final = "provider caches"
#: Anchors that this device replaced, JSON.
ANCHORS_REPLACED: Final = "anchors_replaced"
#: The content of the anchors when they last caused a complete search.
ANCHOR_BEHIND: Final = "anchor_behind"
#: Which anchors are pinned at which provider, JSON.
ANCHOR_PINS: Final = "anchor pins"
#: The newest statement that the vault moved to another provider, sealed JSON.
MOVED: Final = "moved"
#: The id of the move that the user answered.
MOVED_ANSWERED: Final = "moved answered"

# -- what it saw --

#: "1": bodies were missing when their values were joined; "0" when all are here.
LACKING: Final = "lacking"
#: When missing bodies were last requested, and the last one requested, JSON.
ASKED_FOR: Final = "asked for"
#: Each provider's pin list when it was last read, JSON.
LISTS: Final = "looked at"
#: Heads that are not joined for now, with their devices, JSON.
HELD: Final = "held"
#: Roots that were found and could not be joined completely, JSON.
NOT_WHOLE: Final = "not whole"
#: Memories that joins of the last day removed, JSON.
GONE_LATELY: Final = "gone lately"
#: Prefix of the names of guards; a root follows that is kept until the user decides. JSON.
GUARD: Final = "guarded "
#: The guards that are pinned at each provider, JSON.
GUARD_PINS: Final = "guard pins"
#: When all providers first confirmed that a mailbox entry is admitted (milliseconds since 1970 UTC), by its token, JSON.
MAILBOX_CONFIRMED: Final = "mailbox confirmed"
#: When old roots were last collected automatically (milliseconds since 1970 UTC, decimal digits).
COLLECTED: Final = "collected"


#: Values that are stored twice.
_TWICE: Final = (STATE, RING)
#: Prefix of the name of the copy.
_COPY: Final = "copy of "


def get(db: Connection, name: str) -> bytes | None:
    """Return one value, None if absent. DatabaseDamagedError if neither it nor its copy has its checksum."""
    stands = False
    for place in _places(name):
        row = db.execute("SELECT value FROM meta WHERE name=?", (place,)).fetchone()
        value = _checked(place, row[0]) if row is not None else None
        if value is not None:
            return value
        stands = stands or row is not None
    if not stands:
        return None
    raise damaged(db.path, f"the value {name!r} does not have its checksum")


def has(db: sqlite3.Connection, name: str) -> bool:
    """Return whether there is a value of that name, intact or not."""
    return db.execute("SELECT 1 FROM meta WHERE name=?", (name,)).fetchone() is not None


def is_changed(db: Connection, name: str) -> bool:
    """Return whether there is a value without its checksum: the disk changed it."""
    row = db.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
    return row is not None and _checked(name, row[0]) is None


def put(db: Connection, name: str, value: bytes) -> None:
    """Set one value (inside a transaction). DatabaseDamagedError if it cannot be read back."""
    for place, stored in add(db, {name: value}).items():
        row = db.execute("SELECT value FROM meta WHERE name=?", (place,)).fetchone()
        if row is None or row[0] != stored:
            raise not_found_again(db.path, f"the value {place!r}")


def add(db: Connection, values: Mapping[str, bytes]) -> dict[str, bytes]:
    """Set some values (inside a transaction). Returns each stored form by the name under which it is stored, to be read
    back: SQLite may not find it in a damaged file."""
    stored_values = {
        place: _check(place, value) + value for name, value in values.items() for place in _places(name)
    }
    rows = ",".join(["(?,?)"] * len(stored_values))
    parameters = [part for row in stored_values.items() for part in row]
    db.execute(f"INSERT OR REPLACE INTO meta (name, value) VALUES {rows}", parameters)  # noqa: S608
    return stored_values


def names(db: Connection, prefix: str) -> list[str]:
    """Return all names that begin with `prefix`, sorted."""
    rows = db.execute("SELECT name FROM meta WHERE name >= ? AND name < ? ORDER BY name", _range(prefix))
    return [str(name) for (name,) in rows]


def sound(db: Connection, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and value of all whose name begins with `prefix`; damaged values are omitted."""
    rows = db.execute("SELECT name, value FROM meta WHERE name >= ? AND name < ?", _range(prefix)).fetchall()
    for name, stored in rows:
        value = _checked(name, stored)
        if value is not None:
            yield name, value


def everything(db: Connection) -> Iterator[tuple[str, bytes | None]]:
    """Yield name and value of all, None for a damaged one; a copy has the name of its original, so a name may occur twice."""
    for name, stored in db.execute("SELECT name, value FROM meta"):
        yield str(name).removeprefix(_COPY), _checked(str(name), stored)


def forget(db: Connection, names: Iterable[str]) -> None:
    """Delete values (inside a transaction)."""
    places = [(place,) for name in names for place in _places(name)]
    db.executemany("DELETE FROM meta WHERE name=?", places)


def forget_all(db: Connection, prefix: str) -> None:
    """Delete all values whose name begins with `prefix` (inside a transaction)."""
    db.execute("DELETE FROM meta WHERE name >= ? AND name < ?", _range(prefix))


def _places(name: str) -> tuple[str, ...]:
    return (name, _COPY + name) if name in _TWICE else (name,)


def _range(prefix: str) -> tuple[str, str]:
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _check(name: str, value: bytes) -> bytes:
    return sha256(name.encode() + b"\0" + value).digest()[:8]


def _checked(name: str, stored: object) -> bytes | None:
    value = blob(stored)
    return value[8:] if value is not None and value[:8] == _check(name, value[8:]) else None
