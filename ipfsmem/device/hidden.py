"""Texts that this device leaves out of lists, recall and context: acts of this device alone, which change neither state nor root.

What is hidden is one text, known by the clock of its write: whoever writes the memory anew, on any device, has it in the lists again.
A row that the disk changed hides nothing.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipfsmem.causal.entries import memory_entry
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import hidden
from ipfsmem.device.texts_of_others import mark
from ipfsmem.errors import OpenError

#: The scope and the key of a memory.
Place = tuple[str, str]
#: Characters of a reason.
MAX_REASON: Final = 200


class Hidden(msgspec.Struct, frozen=True, array_like=True):
    """A text that is hidden here: where it stands, the clock of its write, when it was hidden (milliseconds since 1970 UTC), and why
    in words."""

    scope: str
    key: str
    hlc: str
    at: int
    why: str


class KnownHidden(dict[Place, Hidden]):
    """All that is hidden here, held in memory, with the places that were changed in it, in order."""

    def __init__(self, rows: Iterable[Hidden] = ()) -> None:
        super().__init__({(one.scope, one.key): one for one in rows})
        self.changed: list[Place] = []


@functools.cache
def _rows() -> msgspec.msgpack.Decoder[Hidden]:
    """Made when it is first used: most calls use none."""
    return msgspec.msgpack.Decoder(Hidden)


_encode = msgspec.msgpack.Encoder().encode


def hidden_texts(replica: Replica) -> dict[Place, Hidden]:
    """All that is hidden here, by place (inside `reading` or a transaction)."""
    return known_hidden(replica).copy()


def known_hidden(replica: Replica) -> KnownHidden:
    """The same as it is held, to be looked at only."""
    known = replica.known_hidden
    if known is None:
        known = replica.known_hidden = KnownHidden(_read(replica))
    return known


def _read(replica: Replica) -> Iterator[Hidden]:
    for _, row in hidden.rows(replica.db.connection):
        try:
            one = _rows().decode(replica.codec.open_row(row))
        except (OpenError, msgspec.MsgspecError, UnicodeDecodeError, TypeError):
            continue
        yield one


def is_hidden(known: Mapping[Place, Hidden], scope: str, key: str, hlc: str) -> bool:
    """Whether the text of a memory that was written at `hlc` is one of those."""
    one = known.get((scope, key))
    return one is not None and one.hlc == hlc


def hide(replica: Replica, texts: Iterable[Hidden]) -> None:
    """Leave these texts out from now on (inside a transaction)."""
    seal, new = replica.codec.seal_row, list(texts)
    rows = [(_mark(replica, (one.scope, one.key)), seal(_encode(one))) for one in new]
    hidden.hide(replica.db.connection, rows)
    if replica.known_hidden is not None:  # it is read again where this transaction fails
        replica.known_hidden.update({(one.scope, one.key): one for one in new})
        replica.known_hidden.changed += [(one.scope, one.key) for one in new]


def show(replica: Replica, places: Iterable[Place]) -> None:
    """Have the texts of these memories in the lists again (inside a transaction)."""
    gone = list(places)
    hidden.show(replica.db.connection, [_mark(replica, place) for place in gone])
    if replica.known_hidden is not None:
        for place in gone:
            replica.known_hidden.pop(place, None)
        replica.known_hidden.changed += gone


def _mark(replica: Replica, place: Place) -> bytes:
    name = memory_entry(place[1], place[0])
    return mark(replica, hashlib.sha256(f"hidden\0{name}".encode()).hexdigest())
