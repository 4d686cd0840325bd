"""Verified heads that are not joined: held back because another copy of a device was joined first, or not to be read whole.

Format sections 5 and 7. They are remembered on this device, for a pin list is not looked at in every sync.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta

#: So many heads of one device are held, as many as a device can have successors.
HELD_AT_ONCE: Final = 8
#: Roots that are remembered as not whole: whoever may pin can list any number.
_MOST_NOT_WHOLE: Final = 16


def held_heads(replica: Replica) -> dict[CID, str]:
    """The heads that are held back, each with the device of which another copy was joined first."""
    stored = replica.db.get_meta(meta.HELD)
    rows = read_json(stored, type=dict[str, str]) if stored else {}
    return {parse_cid(root): device for root, device in rows.items()}


def hold_head(replica: Replica, root: CID, device: str) -> None:
    """Remember a held head (inside a transaction). Of each device the first ones stay, and the last that came."""
    held = held_heads(replica)
    if root in held:
        return
    of_device = [other for other, held_for in held.items() if held_for == device]
    for other in of_device[HELD_AT_ONCE - 1 :]:
        del held[other]
    _write_held(replica, {**held, root: device})


def release_head(replica: Replica, root: CID) -> None:
    """Hold a head no more (inside a transaction)."""
    held = held_heads(replica)
    if held.pop(root, None) is not None:
        _write_held(replica, held)


def _write_held(replica: Replica, held: Mapping[CID, str]) -> None:
    replica.db.set_meta(meta.HELD, msgspec.json.encode({str(root): device for root, device in held.items()}))


def not_whole(replica: Replica) -> list[CID]:
    """Roots that stood somewhere and could not be joined whole. While they are remembered, each sync tells of them and tries
    again, and they can be salvaged."""
    stored = replica.db.get_meta(meta.NOT_WHOLE)
    return [parse_cid(root) for root in read_json(stored, type=list[str])] if stored else []


def keep_not_whole(replica: Replica, roots: Iterable[CID]) -> None:
    """Remember these roots instead of those before (inside a transaction); of very many the first."""
    row = msgspec.json.encode(list(dict.fromkeys(str(root) for root in roots))[:_MOST_NOT_WHOLE])
    if row != (replica.db.get_meta(meta.NOT_WHOLE) or b"[]"):
        replica.db.set_meta(meta.NOT_WHOLE, row)
