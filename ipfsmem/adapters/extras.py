"""The error for a missing package that an adapter needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ipfsmem.errors import UsageError


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Import the packages of an extra inside this block. Raises UsageError with the command that installs a missing one."""
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"this needs the extra {name}: {error}", hint=f"Install it with: pip install 'ipfsmem[{name}]'"
        ) from None
