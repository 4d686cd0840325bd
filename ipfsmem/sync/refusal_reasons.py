"""Refusals of published data in everyday words; the format's terms go into a notice's detail. Pure."""

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

#: The first match wins.
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
    """Return why published data was not used."""
    return next(
        (text for kind, text in _REASONS if isinstance(error, kind)), "it contradicts itself or this memory"
    )
