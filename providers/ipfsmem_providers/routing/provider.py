"""The `routing` provider: IPNS records at delegated routing servers, nothing else.

`routing:https://one.example,https://two.example`. Records are put to all operators and read from all; no account is
needed. Servers forget records after 48 hours, so each sync puts them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ipfsmem.errors import ConfigError
from ipfsmem.provider.base import ProviderBase
from ipfsmem.provider.contract import Capabilities
from ipfsmem_providers.name_records import canonical_name, checked_record
from ipfsmem_providers.routing.client import RoutingClient

_CAPABILITIES: Final = Capabilities(put=False, names=True, durable=False)


class RoutingProvider(ProviderBase):
    """Names at routing servers. See ipfsmem.provider.contract for the methods."""

    def __init__(self, rest: str, settings: Mapping[str, Any] | None = None) -> None:
        """`rest` is a comma-separated list of URLs; the setting `routing` when empty. ConfigError without one."""
        spec = rest or (settings or {}).get("routing") or ""
        if not spec:
            raise ConfigError(
                "no routing server is named", hint="For instance routing:https://delegated-ipfs.dev"
            )
        self.client = RoutingClient(spec, settings=settings)

    @property
    def name(self) -> str:
        """Return `routing:` and the URLs."""
        return "routing:" + ",".join(self.client.urls)

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities: names only."""
        return _CAPABILITIES

    async def put_name(self, name: str, record: bytes) -> None:
        """Put a record to all operators. One success suffices; `client.failures` has the failures of the others."""
        name, _ = checked_record(name, record)
        await self.client.put(name, record)

    async def get_name(self, name: str) -> bytes | None:
        """Return the greatest valid record that any operator has."""
        return await self.client.get(canonical_name(name))

    async def close(self) -> None:
        """Close connections."""
        await self.client.close()
