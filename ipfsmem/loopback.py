"""Who may ask a server that only this machine shall reach: by address, by the name it is asked under, and by token.

Pure functions on text, for each of our servers. A page in the user's browser reaches 127.0.0.1 through any name that leads there,
so a request counts only under a name that is expected.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

#: Host names under which a server on this machine is asked.
LOCAL_HOSTS: Final = frozenset(("127.0.0.1", "localhost", "[::1]"))


def host_of(header: str) -> str:
    """The host of a Host header, lower case, without a port."""
    host = header.strip().lower()
    if host.startswith("["):
        address, _, port = host.partition("]")
        return f"{address}]" if not port or port.startswith(":") else host
    return host.partition(":")[0].rstrip(".")


def has_bearer(header: str, token: str) -> bool:
    """Whether an Authorization header is `Bearer <token>`. Never with an empty token."""
    kind, _, value = header.partition(" ")
    return (
        token != ""
        and kind.lower() == "bearer"
        and hmac.compare_digest(
            value.strip().encode("utf-8", "surrogateescape"), token.encode("utf-8", "surrogateescape")
        )
    )


def is_loopback(address: str) -> bool:
    """Whether a server bound to `address` is reached from this machine only."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def refusal(
    hosts: Sequence[str],
    origins: Sequence[str],
    authorizations: Sequence[str],
    token: str,
    *,
    same_origin: bool = False,
) -> tuple[int, str] | None:
    """Status and words for a request that is not answered, from the values of its headers; None for one that is. `same_origin`:
    a page of this machine counts only when it came from the very server that it asks, and not from another port."""
    if len(hosts) != 1 or host_of(hosts[0]) not in LOCAL_HOSTS:
        return 421, "this server is not known under that name"
    own = f"http://{hosts[0].strip().lower()}"
    if any(origin.lower() != own if same_origin else not _is_local_origin(origin) for origin in origins):
        return 403, "pages of other hosts are not answered"
    if not any(has_bearer(value, token) for value in authorizations):
        return 401, "token wrong or missing"
    return None


def _is_local_origin(origin: str) -> bool:
    try:
        parsed = urlsplit(origin)
    except ValueError:
        return False
    return parsed.scheme == "http" and host_of(parsed.netloc) in LOCAL_HOSTS
