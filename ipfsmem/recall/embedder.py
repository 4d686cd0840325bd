"""The interface of an embedder: its identity, and one call. Whether there is one, and who opens it, is decided elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class EmbedderIdentity(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Which model makes the vectors. Vectors of two identities are never compared."""

    #: The name of the model.
    name: str
    #: Its host or its release.
    version: str
    #: Hex, of all settings on which the vectors depend.
    hash: str
    #: Requested numbers in a vector; 0 if the model decides.
    dimension: int = 0


class Embedder(Protocol):
    """Makes vectors of texts."""

    identity: EmbedderIdentity
    #: A cosine below which two texts are unrelated; -1 if unknown.
    unrelated: float
    #: Whether it waits, for example for an endpoint; otherwise its calls complete without an event loop, which takes 50 ms to
    #: load.
    waits: bool

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order, all of one length, of finite numbers that are not all 0.

        Raises ProviderError or ConfigError if there are none: this says nothing about the single texts.
        """

    def knows(self, question: str) -> float:
        """Return the weight of the model for a question, 0 to 1: less if it was not made for such words."""

    async def close(self) -> None:
        """Close connections."""
