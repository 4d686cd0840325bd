"""A hash of the source of modules, to be kept beside what they made: other code, other mark.

So whatever is remembered is made again after an update that changes how it is made, without anybody's remembering to
say so. It reads the modules' own files and nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from types import ModuleType

import ipfsmem


@lru_cache(maxsize=16)
def code_mark(*modules: ModuleType) -> bytes:
    """The mark of these modules, 16 bytes. Where sources are not shipped it is the version's."""
    found = sha256()
    for module in modules:
        try:
            data = bytes(module.__spec__.loader.get_data(module.__file__))  # type: ignore[union-attr]
        except (AttributeError, OSError):
            data = ipfsmem.__version__.encode()
        found.update(b"%d " % len(data) + data)
    return found.digest()[:16]
