"""What went wrong with something that was published, in everyday words; the format's own go into a notice's detail.

Pure: errors and ids in, short texts out. Nothing here decides what is used.
"""

from __future__ import annotations

from ipfsmem.errors import (
    BlockError,
    DamagedError,
    IpfsmemError,
    LimitError,
    MembershipError,
    NotFoundError,
    OpenError,
    SignatureError,
)
from ipfsmem.ring.keyring import Ring

#: The first that fits counts.
_REASONS: tuple[tuple[type[IpfsmemError], str], ...] = (
    (NotFoundError, "a part of it is not there"),
    (BlockError, "a part of it is not what it should be"),
    (DamagedError, "a part of it cannot be read"),
    (OpenError, "this device has no key for it: it was removed from this memory, or not added yet"),
    (MembershipError, "it is of a device that was removed from this memory, or may not write"),
    (SignatureError, "it is not signed by those who are said to have written it"),
    (LimitError, "it is larger than is allowed"),
)


def reason(error: IpfsmemError) -> str:
    """Why something that was published was not used."""
    return next(
        (text for kind, text in _REASONS if isinstance(error, kind)), "it contradicts itself or this memory"
    )


def device_called(ring: Ring | None, device: str) -> str:
    """A device as its person knows it, with its id; the id alone where the list of members does not say."""
    label = label_of(ring, device)
    return f"{label} ({device})" if label != device else f"device {device}"


def told_apart(ring: Ring | None, device: str) -> str:
    """What its person calls a device, with its id where another one is called the same."""
    label = label_of(ring, device)
    members = ring.view.members.values() if ring is not None else ()
    alike = {person.family for person in members if person.label == label}
    return device_called(ring, device) if len(alike) > 1 else label


def label_of(ring: Ring | None, device: str) -> str:
    """What its person calls a device; its id where the list of members does not say."""
    members = ring.view.members if ring is not None else {}
    person = members.get(device)
    # A new label is said of the enrolment; the other ids of the device go by it too.
    enrolled = members.get(person.family, person) if person is not None else None
    return (enrolled.label if enrolled is not None else "") or device
