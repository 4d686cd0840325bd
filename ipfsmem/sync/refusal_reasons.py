"""Explain refusals of published data in everyday words. A notice's detail has the terms of the format. Pure."""

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
    (NotFoundError, "a part is missing"),
    (BlockError, "a part does not match its hash"),
    (DamagedError, "a part cannot be read"),
    (OpenError, "this device has no key for it: it was removed from this vault, or not added yet"),
    (MembershipError, "its device was removed from this vault, or is not allowed to write"),
    (SignatureError, "it is not signed by its stated authors"),
    (LimitError, "it exceeds a size limit"),
)


def reason(error: IpfsmemError) -> str:
    """Return why published data was not used."""
    return next(
        (text for kind, text in _REASONS if isinstance(error, kind)), "it contradicts itself or this vault"
    )
