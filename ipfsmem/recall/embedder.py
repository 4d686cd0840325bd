"""The interface of an embedding model: its identity, and a call that embeds texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class EmbedderIdentity(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The identity of an embedding model. Vectors of two identities are never compared."""

    #: The name of the model.
    name: str
    #: The host of an endpoint, or the release of a local model.
    version: str
    #: Hash of all settings on which the vectors depend, in hex.
    hash: str
    #: Requested dimension of the vectors; 0: the default of the model.
    dimension: int = 0


class Embedder(Protocol):
    """Computes vectors of texts."""

    identity: EmbedderIdentity
    #: The cosine below which two texts are unrelated; -1 if unknown.
    unrelated: float
    #: Whether its calls wait for I/O, such as an endpoint; otherwise they run without an event loop, whose import takes 50 ms.
    waits: bool

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order, all of the same length, with finite numbers that are not all 0.

        Raises ProviderError or ConfigError for the whole batch; the error does not identify a text.
        """

    def knows(self, question: str) -> float:
        """Return a factor of the weight of meaning for a query, 0 to 1: lower if the model knows few of its words."""

    async def close(self) -> None:
        """Close connections."""
