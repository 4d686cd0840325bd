"""Looks up the displayed names of a text's device and author in the key ring.

A label is chosen by its member. The author is determined in `causal.authorship`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from ipfsmem.bundle.fence import Quoted
from ipfsmem.bundle.memory_file import MemoryFile
from ipfsmem.causal.clock import hlc_ms
from ipfsmem.device.replica import Replica
from ipfsmem.memories.memory_records import MemoryRecord
from ipfsmem.ring.authority import RingMember


def members_of(replica: Replica) -> list[RingMember]:
    """Return the members of a vault from its key ring; empty without one. All ids of a device have the label of its enrolment."""
    ring = replica.ring
    if ring is None:
        return []
    members = ring.view.members
    return [
        msgspec.structs.replace(one, label=members[one.family].label) if one.family in members else one
        for one in members.values()
    ]


def member_names(members: Iterable[RingMember]) -> dict[str, str]:
    """Return the name of each member by id: its label, with the id if several members have the same label."""
    members = list(members)
    alike = Counter(person.label for person in members)
    return {
        person.id: person.label
        if alike[person.label] == 1 or not person.label
        else f"{person.label} ({person.id})"
        for person in members
    }


class Writers:
    """The current names of the writers of one vault, by the ids of their devices."""

    def __init__(self, replica: Replica) -> None:
        members = members_of(replica)
        self._names = member_names(members)
        self._names.setdefault(replica.device.id, replica.config.label)
        self._owners = {one.id: one.owner for one in members}

    def device(self, device: str) -> str:
        """Return the name of a device; its id if it has none."""
        return self._names.get(device) or device

    def member(self, device: str) -> str:
        """Return the name of the owner of a device, or the owner's id; "" if the owner is unknown."""
        owner = self._owners.get(device)
        return (self._names.get(owner) or owner) if owner else ""

    def quoted(self, reading: MemoryRecord, *, file: MemoryFile | None = None, copy: str = "") -> Quoted:
        """Return a text for a fence. `file`: the part to quote, by default the whole text; `copy`: the name of the conflict
        copy."""
        file = reading.readable if file is None else file
        return Quoted(
            key=reading.key,
            body=file.body,
            scope=reading.scope,
            name=file.name,
            description=file.description,
            type=file.type,
            tags=file.tags,
            own=reading.own,
            by=self.device(reading.device) if reading.device else "",
            member="" if reading.own else self.member(reading.device),
            source=file.source,
            written=written_on(reading.hlc),
            file=copy,
        )


def written_on(hlc: str) -> str:
    """Return the UTC date of a clock value; "" for an imported text without a clock, and beyond the calendar."""
    ms = hlc_ms(hlc) if hlc else 0
    if not ms:
        return ""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""
