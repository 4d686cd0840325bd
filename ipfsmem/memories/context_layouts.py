"""The layouts of a context block, and their default sizes."""

from __future__ import annotations

from typing import Literal

from ipfsmem.config import ContextSettings

#: `index`: the index, with a query preceded by the matching memories, messages and events. `full`: the same and the latest events.
#: `ranked`: the matches alone. `turn`: only the best few matches, for each prompt.
Layout = Literal["index", "ranked", "full", "turn"]
LAYOUTS: tuple[Layout, ...] = ("index", "ranked", "full", "turn")
#: Bytes counted as one token.
TOKEN_BYTES = 3
LEAST_TOKENS = 200
MOST_TOKENS = 200_000


def usual_tokens(layout: str) -> int:
    """Return the default size of a block of this layout, in tokens."""
    return ContextSettings().of(layout)
