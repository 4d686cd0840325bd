"""A root that a person wrote down: a channel where names and lists are lost (format section 7).

It stands among the providers of one sync and says one thing. It keeps nothing, serves nothing, and what it says is
verified like any other root.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Final

from ipfsmem.content.cid import CID
from ipfsmem.errors import ProviderRefused
from ipfsmem.provider.contract import Block, Capabilities, Pin, unsupported

_CAPABILITIES: Final = Capabilities(put=False)


class Paper:
    """See ipfsmem.provider.contract; it has no capability, so nothing is asked of it."""

    def __init__(self, root: CID) -> None:
        """`root` is what stands on the paper."""
        self.root = root

    @property
    def name(self) -> str:
        """What reports call it."""
        return "the version that was given"

    @property
    def capabilities(self) -> Capabilities:
        """None."""
        return _CAPABILITIES

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Refused."""
        raise self._cannot()

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Refused."""
        raise self._cannot()

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Refused."""
        raise self._cannot()

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Refused."""
        raise self._cannot()

    async def pin(self, root: CID, name: str) -> Pin:
        """Refused."""
        raise self._cannot()

    async def pins(self, name: str) -> list[Pin]:
        """Refused."""
        raise self._cannot()

    async def unpin(self, pin: Pin) -> None:
        """Refused."""
        raise self._cannot()

    async def put_name(self, name: str, record: bytes) -> None:
        """Refused."""
        raise self._cannot()

    async def get_name(self, name: str) -> bytes | None:
        """Refused."""
        raise self._cannot()

    async def close(self) -> None:
        """Nothing is open."""

    def _cannot(self) -> ProviderRefused:
        return unsupported(self, "do that")
