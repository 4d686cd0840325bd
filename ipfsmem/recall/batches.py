"""Vectors of many texts from a model that may refuse some of them: a text that it does not take keeps no other without its vector.

Models refuse what is longer than they read, and services what they do not like to see. Whoever shares a memory may write such a
text, so nothing waits for it. It keeps and stores nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipfsmem.errors import ProviderError, ProviderRefused
from ipfsmem.recall.embedder import Embedder

#: What every model takes: where this is refused too, it is not the texts.
_PROBE: Final = "memory"
#: Characters of the beginning of a refused text that are tried in its place. Some models read 512 tokens, which may be as few letters.
_SHORTER: Final = (1_000, 250)


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """A vector for each text, of its beginning where the model takes no more; None for one that it refuses while it takes others.

    Raises ProviderError or ConfigError when it takes none.
    """
    try:
        return list(await embedder.embed(texts))
    except ProviderError:
        if not await _takes(embedder, _PROBE):
            raise
    return await _apart(embedder, texts)


async def of_question(embedder: Embedder, question: str) -> list[float] | ProviderRefused:
    """The vector of a question; why the model refuses it, while it takes others: whoever asks next is answered all the same.

    Raises ProviderError or ConfigError when it takes none.
    """
    try:
        return (await embedder.embed([question]))[0]
    except ProviderRefused as refused:
        await embedder.embed([_PROBE])
        return refused


async def _apart(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """The same for texts that were refused together."""
    if len(texts) == 1:
        return [await _shortened(embedder, texts[0])]
    middle, found = len(texts) // 2, list[list[float] | None]()
    for part in (texts[:middle], texts[middle:]):
        try:
            found += await embedder.embed(part)
        except ProviderError:
            found += await _apart(embedder, part)
    return found


async def _shortened(embedder: Embedder, text: str) -> list[float] | None:
    """The vector of the beginning of a text that was refused, where there is one. Raises ProviderError when nothing is taken any more."""
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
