"""Access checks of servers on the loopback address: address, host name and token.

Pure functions on text. A page in the user's browser can reach 127.0.0.1 by any name that resolves to it, so only expected
host names are accepted.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

#: Accepted host names of a server on this machine.
LOCAL_HOSTS: Final = frozenset(("127.0.0.1", "localhost", "[::1]"))


def host_of(header: str) -> str:
    """Return the host of a Host header, in lower case, without the port."""
    host = header.strip().lower()
    if host.startswith("["):
        address, _, port = host.partition("]")
        return f"{address}]" if not port or port.startswith(":") else host
    return host.partition(":")[0].rstrip(".")


def has_bearer(header: str, token: str) -> bool:
    """Tell whether an Authorization header is `Bearer <token>`; False for an empty token."""
    kind, _, value = header.partition(" ")
    return (
        token != ""
        and kind.lower() == "bearer"
        and hmac.compare_digest(
            value.strip().encode("utf-8", "surrogateescape"), token.encode("utf-8", "surrogateescape")
        )
    )


def is_loopback(address: str) -> bool:
    """Tell whether a server bound to `address` is reachable from this machine only."""
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
    """Return the status and message for a refused request, from its header values; None for an accepted one.

    `same_origin`: accept a page of this machine only if this server itself served it, not a server on another port.
    """
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
