"""Hash the source code of modules, to be stored with their cached results.

When an update changes that code, the hash differs and the results are computed again, without a version number to
maintain.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from types import ModuleType

import ipfsmem


@lru_cache(maxsize=16)
def source_hash(*modules: ModuleType) -> bytes:
    """Return 16 bytes derived from the source of these modules, or from the package's version where sources are not shipped."""
    hasher = sha256()
    for module in modules:
        try:
            data = bytes(module.__spec__.loader.get_data(module.__file__))  # type: ignore[union-attr]
        except (AttributeError, OSError):
            data = ipfsmem.__version__.encode()
        hasher.update(b"%d " % len(data) + data)
    return hasher.digest()[:16]
