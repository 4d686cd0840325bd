"""Vectors of many texts from a model that may refuse some of them: a refused text does not keep others without a vector.

Models refuse texts longer than they read, and services refuse content. Another member may write such a text, so nothing waits for
it. Stores nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.recall.embedder import Embedder

#: A text that every model accepts: if it is refused too, the cause is not the text.
_PROBE: Final = "memory"
#: Lengths of the beginning of a refused text that are tried, in characters. Some models read 512 tokens, which may be as few
#: letters.
_SHORTER: Final = (1_000, 250)


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """Return a vector for each text, of its beginning if the model accepts no more; None for one that it refuses while it accepts
    others.

    Raises ProviderError or ConfigError if it accepts none.
    """
    try:
        return list(await embedder.embed(texts))
    except ProviderError:
        if not await _takes(embedder, _PROBE):
            raise
    return await _apart(embedder, texts)


async def of_question(embedder: Embedder, question: str) -> list[float] | ProviderRefused:
    """Return the vector of a question, or the refusal if the model accepts other texts: the next question can still be answered.

    Raises ProviderError or ConfigError if it accepts none.
    """
    try:
        return (await embedder.embed([question]))[0]
    except ProviderRefused as refused:
        await embedder.embed([_PROBE])
        return refused


async def _apart(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """Return a vector for each text of a refused batch."""
    if len(texts) == 1:
        return [await _shortened(embedder, texts[0])]
    middle, vectors = len(texts) // 2, list[list[float] | None]()
    for part in (texts[:middle], texts[middle:]):
        try:
            vectors += await embedder.embed(part)
        except ProviderError:
            vectors += await _apart(embedder, part)
    return vectors


async def _shortened(embedder: Embedder, text: str) -> list[float] | None:
    """Return the vector of the beginning of a refused text, if the model accepts one. Raises ProviderError if it accepts nothing
    any more."""
    for most in _SHORTER:
        if len(text) > most:
            try:
                return (await embedder.embed([text[:most]]))[0]
            except ProviderError:
                pass
    await embedder.embed([_PROBE])
    return None


async def _takes(embedder: Embedder, text: str) -> bool:
    try:
        return bool(await embedder.embed([text]))
    except ProviderError:
        return False
