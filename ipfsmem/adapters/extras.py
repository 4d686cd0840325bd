"""The error for a package that an adapter needs and that is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ipfsmem.errors import UsageError


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Import the packages of an extra inside this block. Raises UsageError, which says how to install what is missing."""
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"this needs the extra {name}: {error}", hint=f"Install it with: pip install 'ipfsmem[{name}]'"
        ) from None
