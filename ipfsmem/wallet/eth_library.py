"""Importing the wallet library without what it does to the whole process.

One of its dependencies raises Python's recursion limit to 100,000, beyond what the C stack holds: from then on deeply
nested JSON would crash a decoder instead of raising an error. The limit is put back after the import.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def wallet_library() -> Iterator[None]:
    """Put Python's recursion limit back at the end of the block, in which the wallet library is imported."""
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
