"""IPNS names and records that a caller gives a provider, checked before anything is done with them."""

from __future__ import annotations

from ipfsmem.errors import FormatError, ProviderRefused, SealError
from ipfsmem.published import ipns_record


def canonical_name(name: str) -> str:
    """The canonical text of an IPNS name. ProviderRefused when it is none."""
    try:
        return ipns_record.canonical_name(name)
    except FormatError as error:
        raise ProviderRefused(str(error)) from error


def checked_record(name: str, record: bytes) -> tuple[str, ipns_record.Record]:
    """The canonical name, and the record read. ProviderRefused when the name did not sign it."""
    try:
        return ipns_record.canonical_name(name), ipns_record.verify_record(name, record)
    except (FormatError, SealError) as error:
        raise ProviderRefused(f"not a record of {name}: {error}") from error
