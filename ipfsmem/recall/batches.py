"""Embeds batches of texts with a model that may refuse some of them, so that one refused text does not block the others.

Models refuse texts that are too long, and services refuse some content. Another member may write such a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.recall.embedder import Embedder

#: A text that every model accepts: if it is refused too, the cause is not the text.
_PROBE: Final = "memory"
#: Characters of a refused text to which it is cut for a retry. Some models accept 512 tokens, which may be as few characters.
_RETRY_LENGTHS: Final = (1_000, 250)


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """Return a vector for each text, of its beginning if the model accepts no more; None for a text that the model refuses while it
    accepts others.

    Raises ProviderError or ConfigError if the model accepts no text.
    """
    try:
        return list(await embedder.embed(texts))
    except ProviderError:
        if not await _accepts(embedder, _PROBE):
            raise
    return await _embedded_apart(embedder, texts)


async def embedded_query(embedder: Embedder, question: str) -> list[float] | ProviderRefused:
    """Return the vector of a query, or the refusal if the model accepts other texts, so that the next query can be embedded.

    Raises ProviderError or ConfigError if the model accepts no text.
    """
    try:
        return (await embedder.embed([question]))[0]
    except ProviderRefused as refused:
        await embedder.embed([_PROBE])
        return refused


async def _embedded_apart(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """Return a vector for each text of a refused batch."""
    if len(texts) == 1:
        return [await _shortened(embedder, texts[0])]
    middle, vectors = len(texts) // 2, list[list[float] | None]()
    for part in (texts[:middle], texts[middle:]):
        try:
            vectors += await embedder.embed(part)
        except ProviderError:
            vectors += await _embedded_apart(embedder, part)
    return vectors


async def _shortened(embedder: Embedder, text: str) -> list[float] | None:
    """Return the vector of the beginning of a refused text, None if the model refuses that too. Raises ProviderError if the model
    accepts no text any more."""
    for most in _RETRY_LENGTHS:
        if len(text) > most:
            try:
                return (await embedder.embed([text[:most]]))[0]
            except ProviderError:
                pass
    await embedder.embed([_PROBE])
    return None


async def _accepts(embedder: Embedder, text: str) -> bool:
    try:
        return bool(await embedder.embed([text]))
    except ProviderError:
        return False
