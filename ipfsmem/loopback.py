"""Who may ask a server that only this machine shall reach: by address, by the name it is asked under, and by token.

Pure functions on text, for each of our servers. A page in the user's browser reaches 127.0.0.1 through any name that leads there,
so a request counts only under a name that is expected.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import Final

#: Host names under which a server on this machine is asked.
LOCAL_HOSTS: Final = frozenset(("127.0.0.1", "localhost", "[::1]"))


def host_of(header: str) -> str:
    """The host of a Host header, lower case, without a port."""
    host = header.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
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
