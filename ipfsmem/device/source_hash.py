"""A hash of the source code of modules, to be stored beside cached results of theirs.

When an update changes that code, the hash differs and the results are made again, without a version number that somebody
would have to raise. Reads the modules' own files and nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from types import ModuleType

import ipfsmem


@lru_cache(maxsize=16)
def source_hash(*modules: ModuleType) -> bytes:
    """16 bytes that follow from the source of these modules; where sources are not shipped, from the package's version."""
    found = sha256()
    for module in modules:
        try:
            data = bytes(module.__spec__.loader.get_data(module.__file__))  # type: ignore[union-attr]
        except (AttributeError, OSError):
            data = ipfsmem.__version__.encode()
        found.update(b"%d " % len(data) + data)
    return found.digest()[:16]
