"""Record the texts that this device hides from lists, recall and context, without a change of state or root.

A hidden text is identified by the clock value of its write, so a new write of the memory on any device is visible. A
damaged row hides no text.
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
    """A text that is hidden here: its scope and key, the clock of its write, when it was hidden (milliseconds since 1970 UTC),
    and the reason."""

    scope: str
    key: str
    hlc: str
    at: int
    why: str


class KnownHidden(dict[Place, Hidden]):
    """All hidden texts in memory, with the places changed since, in order."""

    def __init__(self, rows: Iterable[Hidden] = ()) -> None:
        super().__init__({(one.scope, one.key): one for one in rows})
        self.changed: list[Place] = []


@functools.cache
def _rows() -> msgspec.msgpack.Decoder[Hidden]:
    """Return the decoder, created on first use: most calls need none."""
    return msgspec.msgpack.Decoder(Hidden)


_encode = msgspec.msgpack.Encoder().encode


def hidden_texts(replica: Replica) -> dict[Place, Hidden]:
    """Return all hidden texts by place (inside `reading` or a transaction)."""
    return known_hidden(replica).copy()


def known_hidden(replica: Replica) -> KnownHidden:
    """Return the cached hidden texts; the caller must not change them."""
    return replica.caches.of(KnownHidden, lambda: KnownHidden(_read(replica)))


def _read(replica: Replica) -> Iterator[Hidden]:
    for _, row in hidden.rows(replica.db.connection):
        try:
            one = _rows().decode(replica.codec.open_row(row))
        except (OpenError, msgspec.MsgspecError, UnicodeDecodeError, TypeError):
            continue
        yield one


def is_hidden(texts: Mapping[Place, Hidden], scope: str, key: str, hlc: str) -> bool:
    """Return whether the text of a memory that was written at `hlc` is hidden."""
    one = texts.get((scope, key))
    return one is not None and one.hlc == hlc


def hide(replica: Replica, texts: Iterable[Hidden]) -> None:
    """Hide these texts from now on (inside a transaction)."""
    seal, new = replica.codec.seal_row, list(texts)
    rows = [(_mark(replica, (one.scope, one.key)), seal(_encode(one))) for one in new]
    hidden.hide(replica.db.connection, rows)
    cache = replica.caches.find(KnownHidden)
    if cache is not None:  # if this transaction fails, it is read again
        cache.update({(one.scope, one.key): one for one in new})
        cache.changed += [(one.scope, one.key) for one in new]


def show(replica: Replica, places: Iterable[Place]) -> None:
    """Show the texts of these memories again (inside a transaction)."""
    gone = list(places)
    hidden.show(replica.db.connection, [_mark(replica, place) for place in gone])
    cache = replica.caches.find(KnownHidden)
    if cache is not None:
        for place in gone:
            cache.pop(place, None)
        cache.changed += gone


def _mark(replica: Replica, place: Place) -> bytes:
    name = memory_entry(place[1], place[0])
    return mark(replica, hashlib.sha256(f"hidden\0{name}".encode()).hexdigest())
