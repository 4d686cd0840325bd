"""What a context block may look like, and how long it may be."""

from __future__ import annotations

from typing import Literal

#: `index`: the index, and with a query the matches before it. `turn`: only the matches.
Layout = Literal["index", "turn"]
LAYOUTS: tuple[Layout, ...] = ("index", "turn")
#: Bytes that are counted as one token.
TOKEN_BYTES = 3
DEFAULT_TOKENS = 2_000
LEAST_TOKENS = 200
MOST_TOKENS = 200_000
