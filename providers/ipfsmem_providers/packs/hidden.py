"""Names of hidden files: a pack or another file that is about to be removed or replaced, out of the sight of readers.

Each hidden name is used once. A removal that a lost session or a sleeping device carries out late finds nothing, and not what
another device hid meanwhile.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

from ipfsmem.device.shared_folder import TEMPORARY
from ipfsmem_providers.packs.pins import is_pin
from ipfsmem_providers.packs.store import is_pack

#: The prefix of hidden files.
HIDDEN: Final = ".hidden-"
_HIDDEN_NAME: Final = re.compile(r"\.hidden-[0-9a-f]{16}-(.+)", re.DOTALL)


def hidden_name(name: str) -> str:
    """Return a new name to hide a file under."""
    return f"{HIDDEN}{secrets.token_hex(8)}-{name}"


def hidden_file(name: str) -> str:
    """Return the own name of a hidden pack or pin; "" for any other file. Earlier versions hid a pack as `.new-<name>`."""
    found = _HIDDEN_NAME.fullmatch(name)
    own = found[1] if found is not None else name.removeprefix(TEMPORARY)
    return own if own != name and (is_pack(own) or is_pin(own)) else ""


def is_hidden_pack(name: str) -> bool:
    """Tell whether a file is a pack that a collection or a device that put it again hid."""
    return is_pack(hidden_file(name))


def is_leftover(name: str) -> bool:
    """Tell whether a file is an unfinished or hidden one; it may be in use."""
    return name.startswith(TEMPORARY) or _HIDDEN_NAME.fullmatch(name) is not None


def leftovers(modified: Mapping[str, float], oldest: float) -> list[tuple[str, str]]:
    """Return unfinished and hidden files that were last changed before `oldest`, each with the name that it is to have again, ""
    if it is to be removed.

    `modified` and `oldest` have one unit and one clock. Of hidden files of one name the newest comes first:
    an older one may be the damaged file that it replaced.
    """
    old = [name for name, at in modified.items() if at < oldest and is_leftover(name)]
    return [(name, hidden_file(name)) for name in sorted(old, key=lambda name: (-modified[name], name))]
