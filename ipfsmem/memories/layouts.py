"""What a context block may look like, and how long it may be."""

from __future__ import annotations

from typing import Literal

from ipfsmem.config import ContextSettings

#: `index`: the index, and with a query the matches before it, also messages and events. `full`: that, and what was noted last.
#: `ranked`: only the matches. `turn`: only the best few, as they stand before each prompt.
Layout = Literal["index", "ranked", "full", "turn"]
LAYOUTS: tuple[Layout, ...] = ("index", "ranked", "full", "turn")
#: Bytes that are counted as one token.
TOKEN_BYTES = 3
LEAST_TOKENS = 200
MOST_TOKENS = 200_000


def usual_tokens(layout: str) -> int:
    """How long a block of this layout is where neither the caller nor the settings say otherwise."""
    return ContextSettings().of(layout)
