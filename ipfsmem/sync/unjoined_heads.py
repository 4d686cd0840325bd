"""Store verified heads that are not joined: held ones and incompletely readable ones (format sections 5, 7).

Stored on this device, since a pin list is not read in every sync.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.content.cid import CID, parse_cid
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import meta

#: Maximum number of held heads per device, equal to its maximum of successors.
HELD_AT_ONCE: Final = 8
#: Maximum number of roots recorded as not whole: anyone who may pin can list any number.
_MOST_NOT_WHOLE: Final = 16


def held_heads(replica: Replica) -> dict[CID, str]:
    """Return the held heads, each with the device of which another copy was joined first."""
    stored = replica.db.get_meta(meta.HELD)
    rows = read_json(stored, type=dict[str, str]) if stored else {}
    return {parse_cid(root): device for root, device in rows.items()}


def hold_head(replica: Replica, root: CID, device: str) -> None:
    """Record a held head (inside a transaction). Per device the first ones stay, and the last."""
    heads = held_heads(replica)
    if root in heads:
        return
    of_device = [other for other, held_for in heads.items() if held_for == device]
    for other in of_device[HELD_AT_ONCE - 1 :]:
        del heads[other]
    _write_held(replica, {**heads, root: device})


def release_head(replica: Replica, root: CID) -> None:
    """Stop holding a head (inside a transaction)."""
    heads = held_heads(replica)
    if heads.pop(root, None) is not None:
        _write_held(replica, heads)


def _write_held(replica: Replica, heads: Mapping[CID, str]) -> None:
    replica.db.set_meta(meta.HELD, msgspec.json.encode({str(root): device for root, device in heads.items()}))


def not_whole(replica: Replica) -> list[CID]:
    """Return the roots found but not joined whole. While recorded, each sync reports and retries them, and
    they can be salvaged."""
    stored = replica.db.get_meta(meta.NOT_WHOLE)
    return [parse_cid(root) for root in read_json(stored, type=list[str])] if stored else []


def keep_not_whole(replica: Replica, roots: Iterable[CID]) -> None:
    """Replace the recorded roots by these (inside a transaction); the first of very many."""
    row = msgspec.json.encode(list(dict.fromkeys(str(root) for root in roots))[:_MOST_NOT_WHOLE])
    if row != (replica.db.get_meta(meta.NOT_WHOLE) or b"[]"):
        replica.db.set_meta(meta.NOT_WHOLE, row)
