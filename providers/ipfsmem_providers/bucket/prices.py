"""Published prices of list requests: what syncs without changes cost at each vendor. docs/reference/providers.md names the sources."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ipfsmem_providers.bucket.aws_profile import is_aws


class _Price(NamedTuple):
    free: float  #: list requests a month
    thousand: float  #: US$ for a thousand more


_DAYS: Final = 30
#: The default storage classes, in US regions.
_S3: Final = _Price(0, 0.005)
_GOOGLE: Final = _Price(0, 0.005)
_AZURE: Final = _Price(0, 0.005)
#: By the end of the host.
_VENDORS: Final = {
    ".r2.cloudflarestorage.com": _Price(1_000_000, 0.0045),
    ".backblazeb2.com": _Price(2_500 * _DAYS, 0.004),
    ".tigris.dev": _Price(10_000, 0.005),
    ".storage.dev": _Price(10_000, 0.005),
}
#: The share of the free requests that syncs without changes may use; the rest is for those with changes.
_SHARE: Final = 0.5


def idle_cost(scheme: str, endpoint: str, syncs: float) -> float:
    """Return the cost in US$ of `syncs` list requests a month; 0 where no charge for requests is known.

    `scheme`: s3, gs or az. `endpoint`: URL of an S3 server; "" for AWS.
    """
    price = _price(scheme, endpoint)
    if price is None or syncs <= price.free * _SHARE:
        return 0.0
    return (syncs - price.free * _SHARE) / 1_000 * price.thousand


def _price(scheme: str, endpoint: str) -> _Price | None:
    if scheme != "s3":
        return {"gs": _GOOGLE, "az": _AZURE}[scheme]
    if not endpoint or is_aws(endpoint):
        return _S3
    host = f".{urlsplit(endpoint).hostname or ''}"
    return next((price for end, price in _VENDORS.items() if host.endswith(end)), None)
