"""Revisions of one memory, read from the state and the published roots kept on this device.

A root is a whole state, so a revision lasts as long as a root with it is kept. Nothing is fetched or written;
restoring a revision is an ordinary write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from ipfsmem.bundle.session_parts import is_part_key
from ipfsmem.causal.authorship import author_of_copy
from ipfsmem.causal.clock import ZERO
from ipfsmem.causal.entries import memory_name
from ipfsmem.causal.value import Entry, Value, decode_entry
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError, NotFoundError, UsageError
from ipfsmem.memories.memories import MemoryStore
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.memories.writers import Writers
from ipfsmem.published.history import find_root, open_past, published_log

if TYPE_CHECKING:
    from ipfsmem.sessions.compaction import Place

#: Minimum number of SHA-256 digits that name a revision.
MIN_DIGITS = 8


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a memory, or a request to forget it (`sha256` None)."""

    sha256: str | None
    #: Time of writing by its writer's clock, in ms since 1970 UTC; None for imported texts.
    written: int | None
    #: The device that wrote it.
    device: str
    #: The newest root kept here that holds it; None if it was not published from here.
    root: str | None
    #: Current status: shown, an alternative to the shown text (or behind a forget), or gone.
    now: Literal["shown", "beside", ""]
    #: Bytes of the text; None if it is not on this device.
    size: int | None
    #: Whether this device's person wrote it.
    own: bool
    #: The name of the device, else its id.
    label: str


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The revisions of one memory, newest first. `roots_not_kept`: number of known versions that are not kept here and hence not searched."""

    key: str
    versions: tuple[Revision, ...]
    roots_not_kept: int = 0


def history(memories: MemoryStore, key: str) -> History:
    """Return every local revision of a key, each once. Raises KeyNameError, NotFoundError if there are none."""
    replica, name = memories.replica, memories.checked_name(key)
    with replica.reading():
        here = memories.entry(key)
        shown = memories.view(key, here).dots
        writers = Writers(replica)
        revisions: dict[str, Revision] = {}
        gone = 0
        for root, entry in _states(replica, name, here):
            if entry is None:
                gone += 1
                continue
            for dot, value in entry.items():
                mark = value.body or dot
                known = revisions.get(mark)
                if known is not None and (known.root is not None or root is None):
                    continue
                if known is not None:
                    revisions[mark] = msgspec.structs.replace(known, root=root)
                else:
                    revisions[mark] = _revision(memories, name, dot, value, root, here, shown, writers)
    if not revisions:
        raise NotFoundError(f"no text of {key} is known on this device", hint="See: ipfsmem list.")
    order = sorted(revisions.values(), key=lambda v: (v.written or 0, v.device), reverse=True)
    return History(key=key, versions=tuple(order), roots_not_kept=gone)


def read_past(memories: MemoryStore, key: str, root: str) -> MemoryRecord:
    """Return the view of a key in a published root. Raises NotFoundError if absent or forgotten there."""
    replica, name = memories.replica, memories.checked_name(key)
    with replica.reading():
        cid = find_root(replica, root)
        text = open_past(replica, cid).tree.get(name)
        entry = decode_entry(name, text) if text is not None else {}
        record = memories.reading_of(key, entry)
    if record is None:
        state = "is forgotten in" if entry else "is not in"
        raise NotFoundError(f"{key} {state} version {cid}", hint=f"Its texts: ipfsmem history {key}")
    return record


class PastText(NamedTuple):
    """A past text, and the `author` for writing it again (format section 5.2)."""

    data: bytes
    of: str


def find_text(memories: MemoryStore, key: str, root: str | None, text: str | None) -> PastText:
    """Find a past text: the one shown in `root`, or the one whose SHA-256 starts with `text`.

    Raises UsageError if neither is given or `text` is ambiguous, NotFoundError.
    """
    replica, name = memories.replica, memories.checked_name(key)
    if text is None:
        if root is None:
            raise UsageError(
                "name the text: that of a published version (its address), or its SHA-256",
                hint=f"List the revisions: ipfsmem history {key}",
            )
        reading = read_past(memories, key, root)
        return PastText(reading.data, "" if reading.own else _of_shown(memories, key, root))
    if len(text) < MIN_DIGITS:
        raise UsageError(f"pass at least {MIN_DIGITS} digits of the SHA-256")
    with replica.reading():
        matches: dict[str, PastText] = {}
        wanted = str(find_root(replica, root)) if root is not None else None
        for at, entry in _states(replica, name, memories.entry(key)):
            if entry is None or (wanted is not None and at != wanted):
                continue
            for dot, value in entry.items():
                if (
                    value.body is not None
                    and value.body.startswith(text.lower())
                    and value.body not in matches
                ):
                    data = replica.store.body(name, value)
                    if data is not None:
                        matches[value.body] = PastText(data, author_of_copy(dot, value, replica.is_mine))
    if len(matches) > 1:
        raise UsageError(
            f"{len(matches)} texts of {key} begin with {text}", hint="Pass more digits of the SHA-256."
        )
    for one in matches.values():
        return one
    raise NotFoundError(
        f"{key} has no text {text} on this device", hint=f"List the revisions: ipfsmem history {key}"
    )


def pending_then(memories: MemoryStore, key: str, data: bytes) -> frozenset[Place] | None:
    """Return what was imported and pending of a session part in the states that hold this text, as `_states` finds
    them.

    Of several states the one with fewest pending, published ones first. None if none of them is kept here with all
    later parts of its device.
    """
    from ipfsmem.memories.part_guard import unapproved_in  # only session parts need it

    replica, name, digest = memories.replica, memories.checked_name(key), sha256(data).hexdigest()
    now: list[frozenset[Place]] = []
    published: list[frozenset[Place]] = []
    with replica.reading():
        for root, entry in _states(replica, name, memories.entry(key)):
            if any(value.body == digest for value in (entry or {}).values()):
                with contextlib.suppress(NotFoundError):
                    unapproved = unapproved_in([(key, data), *_parts_beside(memories, root, name)])
                    (now if root is None else published).append(unapproved)
    return min(published or now, key=len, default=None)


def _parts_beside(memories: MemoryStore, root: str | None, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the person's own texts, by key, of a session's other parts in a root (None: now).

    Raises NotFoundError if one of a later part of the same device is not kept here.
    """
    replica, store = memories.replica, memories.replica.store
    there = (
        open_past(replica, find_root(replica, root)).tree.items()
        if root is not None
        else ((one, text) for one in store.names() if (text := store.raw(one)) is not None)
    )
    session, device, number = name.rsplit("-", 2)
    for other, text in there:
        place = memory_name(other) if other.startswith(session) and other != name else None
        if place is None or not is_part_key(place.key) or other.rsplit("-", 2)[0] != session:
            continue
        of, at = other.rsplit("-", 2)[1:]
        for dot, value in decode_entry(other, text).items():
            if value.body is None or not memories.is_own(dot, value.author):
                continue
            data = store.body(other, value)
            if data is not None:
                yield place.key, data
            elif of == device and int(at) > int(number):
                raise NotFoundError(f"{place.key} is not on this device")


def _of_shown(memories: MemoryStore, key: str, root: str) -> str:
    replica, name = memories.replica, memories.name(key)
    with replica.reading():
        text = open_past(replica, find_root(replica, root)).tree.get(name)
        entry = decode_entry(name, text) if text is not None else {}
        dot = memories.view(key, entry).dot
        return author_of_copy(dot, entry[dot], replica.is_mine) if dot in entry and dot is not None else ""


def _states(replica: Replica, name: str, here: Entry) -> Iterator[tuple[str | None, Entry | None]]:
    """Yield the entry now, then in each known root, newest first; None if the root is not kept here."""
    yield None, here
    if replica.vault_tag is None:
        return
    for line in published_log(replica):
        try:
            text = open_past(replica, find_root(replica, line.root)).tree.get(name)
        except IpfsmemError:
            yield line.root, None
        else:
            yield line.root, decode_entry(name, text) if text is not None else {}


def _revision(
    memories: MemoryStore,
    name: str,
    dot: str,
    value: Value,
    root: str | None,
    here: Entry,
    shown: tuple[str, ...],
    writers: Writers,
) -> Revision:
    data = memories.replica.store.body(name, value)
    bodies = {here[one].body for one in shown if one in here}
    stands = value.body is not None and any(value.body == other.body for other in here.values())
    now: Literal["shown", "beside", ""] = "beside" if stands or dot in here else ""
    return Revision(
        sha256=value.body,
        written=int(value.h[:12], 16) if value.h != ZERO else None,
        device=dot[:16],
        root=root,
        now="shown" if now and (value.body in bodies) else now,
        size=None if data is None else len(data),
        own=memories.is_own(dot, value.author),
        label=writers.device(dot[:16]),
    )
