"""A provider of a memory that cannot be opened now: its token is not set, its package is gone, its spec is none.

It stands in its place like one that is down, so that everything local goes on, other providers are used, and the user
can take it off the list. It says why at every call, and never does anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Final

from ipfsmem.content.cid import CID
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.provider.contract import Block, Capabilities, Pin

#: What a sync asks of every provider first, so that it hears of it whether it reads or publishes.
_CAPABILITIES: Final = Capabilities(names=True)


class Unready:
    """See ipfsmem.provider.contract; every call raises ProviderRefused with the words of the ConfigError."""

    def __init__(self, spec: str, problem: ConfigError) -> None:
        self._spec = spec
        self.problem = str(problem)
        self._hint = problem.hint

    @property
    def name(self) -> str:
        """The spec, as nothing else is known."""
        return self._spec

    @property
    def capabilities(self) -> Capabilities:
        """The least that makes a sync call it."""
        return _CAPABILITIES

    async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
        """Not now."""
        raise self._refused()

    async def has(self, cids: Collection[CID]) -> set[CID]:
        """Not now."""
        raise self._refused()

    async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
        """Not now."""
        raise self._refused()

    def get_dag(self, root: CID) -> AsyncIterator[Block]:
        """Not now."""
        raise self._refused()

    async def pin(self, root: CID, name: str) -> Pin:
        """Not now."""
        raise self._refused()

    async def pins(self, name: str) -> list[Pin]:
        """Not now."""
        raise self._refused()

    async def unpin(self, pin: Pin) -> None:
        """Not now."""
        raise self._refused()

    async def put_name(self, name: str, record: bytes) -> None:
        """Not now."""
        raise self._refused()

    async def get_name(self, name: str) -> bytes | None:
        """Not now."""
        raise self._refused()

    async def close(self) -> None:
        """Nothing is open."""

    def _refused(self) -> ProviderRefused:
        return ProviderRefused(f"{self._spec} cannot be used: {self.problem}", hint=self._hint)
