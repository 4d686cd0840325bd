"""Import the wallet library without its side effect on the process.

A dependency raises Python's recursion limit to 100,000, more than the C stack holds: deeply nested JSON would
then crash a decoder instead of raising an error.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def wallet_library() -> Iterator[None]:
    """Restore Python's recursion limit after the block, in which the wallet library is imported."""
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
