"""Base class of providers: no capabilities, every call refused with a message.

A provider overrides what it supports and declares it in its capabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import NoReturn

from ipfsmem.content.cid import CID
from ipfsmem.provider.contract import Block, Capabilities, Pin, unsupported


class ProviderBase(ABC):
    """See ipfsmem.provider.contract for the methods. Every one raises ProviderRefused but `close`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return a short display name without secrets."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Return the capabilities: exactly the methods overridden."""

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Refused."""
        self._refuse("store anything")

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Refused."""
        self._refuse("tell which blocks are stored")

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Refused."""
        self._refuse("serve blocks")

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Refused."""
        self._refuse("send a whole tree at once")

    async def pin(self, root: CID, name: str) -> Pin:
        """Refused."""
        self._refuse("pin")

    async def pins(self, name: str) -> list[Pin]:
        """Refused."""
        self._refuse("list pins")

    async def unpin(self, pin: Pin) -> None:
        """Refused."""
        self._refuse("unpin")

    async def put_name(self, name: str, record: bytes) -> None:
        """Refused."""
        self._refuse("keep names that are signed here")

    async def get_name(self, name: str) -> bytes | None:
        """Refused."""
        self._refuse("keep names that are signed here")

    async def close(self) -> None:  # noqa: B027 - many have nothing to close
        """Do nothing: there is nothing to close."""

    def _refuse(self, what: str) -> NoReturn:
        raise unsupported(self, what)
