"""Check IPNS names and records from a caller before a provider uses them."""

from __future__ import annotations

from ipfsmem.errors import FormatError, ProviderRefused, SealError
from ipfsmem.published import ipns_record


def canonical_name(name: str) -> str:
    """Return the canonical text of an IPNS name. ProviderRefused when invalid."""
    try:
        return ipns_record.canonical_name(name)
    except FormatError as error:
        raise ProviderRefused(str(error)) from error


def checked_record(name: str, record: bytes) -> tuple[str, ipns_record.IpnsRecord]:
    """Return the canonical name, and the record read. ProviderRefused when the name did not sign it."""
    try:
        return ipns_record.canonical_name(name), ipns_record.verify_record(name, record)
    except (FormatError, SealError) as error:
        raise ProviderRefused(f"not a record of {name}: {error}") from error
