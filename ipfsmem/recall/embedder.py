"""What makes vectors of texts, seen from here: who it is, and one call. Who opens one, and whether there is one, is decided elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class EmbedderIdentity(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Which model makes the vectors. Those of two identities are never compared."""

    #: What the model is called.
    name: str
    #: Where it runs, or which release it is.
    version: str
    #: Hex, of all settings on which the vectors depend.
    hash: str
    #: Numbers in a vector that were asked for; 0 where the model decides.
    dimension: int = 0


class Embedder(Protocol):
    """Makes vectors of texts."""

    identity: EmbedderIdentity
    #: A cosine below which two texts have nothing to do with each other; -1 where nobody knows.
    unrelated: float
    #: Whether it waits for anything, as for an endpoint; else its calls run through without an event loop, which costs 50 ms to load.
    waits: bool

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in this order, all of one length, of finite numbers that are not all 0.

        Raises ProviderError or ConfigError when there are none: then nothing was learned of any of the texts.
        """

    def knows(self, question: str) -> float:
        """How much is to be given to what the model says of a question, 0 to 1: less where it was not made for such words."""

    async def close(self) -> None:
        """Let go of connections."""
