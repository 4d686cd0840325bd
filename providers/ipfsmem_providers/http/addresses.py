"""URLs from outside may lead to public addresses only, and the connection uses the very address that was checked.

A URL by a stranger (a manifest_uri, a gateway found by routing, a redirect) must not make this machine talk
to itself, its network, or its cloud's metadata service. URLs that the user configured are not checked here.
Each connection resolves a name once and uses only checked addresses, so DNS rebinding has no effect.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from ipfsmem.errors import ProviderRefused
from ipfsmem_providers.http.name_lookup import look_up

#: Ports that a URL from outside may name.
PORTS: Final = frozenset((80, 443, 8080, 8443))
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
#: Networks that are not public in practice, such as cloud metadata services, or that Python's tables lack.
_REFUSED: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers; 100.100.100.200 is a metadata service
        "168.63.129.16/32",  # Azure's wire server
        "192.0.0.0/24",  # 192.0.0.192 is a metadata service
        "192.88.99.0/24",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "3fff::/20",  # documentation; younger than Python's tables
        "fec0::/10",
    )
)

_OWN: Final = (
    "Addresses of this machine and its network, and unusual ports, are only used when you configure them yourself, "
    "for instance with --provider gateway:URL (in Python: provider=)."
)

Lookup = Callable[[str, int], Coroutine[Any, Any, list[tuple[Any, ...]]]]


def is_public(address: str) -> bool:
    """Return whether an IP address (text) is a public unicast one, also after looking through IPv6 forms of IPv4."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is None and int(ip) >> 32 == 0:  # ::a.b.c.d, and :: and ::1
            return False
        if inner is not None:
            return is_public(str(inner))
    if any(ip.version == network.version and ip in network for network in _REFUSED):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not ip.is_link_local


def check_url(url: str | URL, *, https_only: bool = False) -> URL:
    """Return a URL from outside that may be asked, as far as its text tells.

    Raises ProviderRefused for other schemes and ports, credentials, and addresses that are not public.
    """
    try:
        parsed = URL(url) if isinstance(url, str) else url
        port = parsed.port
    except ValueError:
        raise ProviderRefused("a URL from outside cannot be read") from None
    host = parsed.host
    if parsed.scheme not in (("https",) if https_only else ("https", "http")) or not host:
        raise ProviderRefused(f"a URL from outside is not {'https' if https_only else 'http or https'}")
    if parsed.user is not None or parsed.password is not None:
        raise ProviderRefused(f"a URL from outside contains a user name ({host})")
    if port not in PORTS:
        raise ProviderRefused(f"a URL from outside names port {port} of {host}", hint=_OWN)
    if _is_ip(host) and not is_public(host):
        raise refused(host, host)
    return parsed


def refused(host: str, address: str) -> ProviderRefused:
    """Return the error for an address that is not public."""
    return ProviderRefused(
        f"{host} resolves to {address}, which is not a public address",
        hint=_OWN,
    )


class Resolver(AbstractResolver):
    """Resolves names that the user configured."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        """`lookup(host, port)` returns rows like `socket.getaddrinfo`; the system's by default."""
        self._lookup = lookup or _system_lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of `host`. OSError without any, BlockedAddress when one is not allowed."""
        results: list[ResolveResult] = []
        for row in await self._lookup(host, port):
            address = row[4][0]
            self._check(host, address)
            if row[0] == socket.AF_INET6 and any(row[4][3:]) and "%" not in address:
                address = f"{address}%{row[4][3]}"  # of one link: only with its number it can be reached
            results.append(
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=row[0],
                    proto=row[2],
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        if not results:
            raise OSError(f"{host} has no address")
        return results

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _check(self, host: str, address: str) -> None:
        """Allow every address."""


class PublicResolver(Resolver):
    """Resolves names; fails when any address is not public, since mixed answers are an attack."""

    def _check(self, host: str, address: str) -> None:
        if not is_public(address):
            raise BlockedAddress(host, address)


class BlockedAddress(OSError):
    """A name led to an address that is not public. Becomes ProviderRefused before anybody sees it."""

    def __init__(self, host: str, address: str) -> None:
        super().__init__(f"{host} resolves to {address}")
        self.host = host
        self.address = address


def public_connector(limit: int, lookup: Lookup | None = None) -> aiohttp.TCPConnector:
    """Return a connector that reaches public addresses only. The last check is at the socket, just before it
    connects."""
    return aiohttp.TCPConnector(
        limit=limit, resolver=PublicResolver(lookup), use_dns_cache=False, socket_factory=_socket
    )


def _socket(info: Any) -> socket.socket:
    family, kind, proto, _, address = info
    if not is_public(address[0]):
        raise BlockedAddress(address[0], address[0])
    return socket.socket(family=family, type=kind, proto=proto)


async def _system_lookup(host: str, port: int) -> list[tuple[Any, ...]]:
    return await look_up(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
