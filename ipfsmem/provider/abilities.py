"""Describe a provider's capabilities to users, and the consequences of missing ones.

Reads declared Capabilities only; `probe` tests them.
"""

from __future__ import annotations

from ipfsmem.provider.contract import Capabilities


def good_for(can: Capabilities) -> str:
    """Return one or two words; `full`: stores a vault, serves it, and leads other devices to new versions."""
    if can.put and can.blocks:
        return "full" if can.names or can.list else "stores, but lists nothing"
    if can.put:
        return "write only"
    if can.pin:
        return "pins only"
    if can.blocks:
        return "read only"
    return "names only" if can.names else "nothing"


def limits(can: Capabilities) -> list[str]:
    """Return the missing capabilities, each with its consequence, gravest first; empty when nothing is missing."""
    texts = []
    if not can.put and can.pin:
        texts.append("it accepts no uploads: another provider must hold the blocks that it pins")
    elif not can.put:
        texts.append("it accepts no uploads: nothing can be published there")
    if not can.blocks and (can.put or can.pin):
        texts.append(
            "nothing can be read back from it: a new device needs another provider, or a gateway in its settings"
        )
    if can.put and not can.names and not can.list:
        texts.append(
            "it stores no names and no list: other devices find new versions only through another provider"
        )
    if can.put and can.list and not can.names:
        texts.append(
            "it stores no names: other devices find new versions by its list, which may be slightly late"
        )
    if can.put and not can.partial_car:
        texts.append("it accepts only whole versions: each publish uploads everything again")
    if can.put and not can.keeps_root:
        texts.append("it uses a file layout of its own, so its addresses differ from ours")
    if can.put and not can.unpin:
        texts.append("it deletes nothing: compacting frees no space there")
    if not can.durable:
        texts.append("it drops names after 48 hours: a device must sync more often")
    return texts
