"""Describe a provider's capabilities to users, and the consequences of missing ones.

Reads declared Capabilities only; `probe` tests them.
"""

from __future__ import annotations

from ipfsmem.provider.contract import Capabilities


def good_for(can: Capabilities) -> str:
    """Return one or two words; `full`: stores a vault, serves it, and leads other devices to new versions."""
    if can.put and can.blocks:
        return "full" if can.names or can.list else "keeps, but leads nobody there"
    if can.put:
        return "write only"
    if can.pin:
        return "keeps what others hold"
    if can.blocks:
        return "read only"
    return "names only" if can.names else "nothing"


def limits(can: Capabilities) -> list[str]:
    """Return the missing capabilities, each with its consequence, gravest first; empty when nothing is missing."""
    found = []
    if not can.put and can.pin:
        found.append("it takes no uploads: another provider must hold what it keeps")
    elif not can.put:
        found.append("it takes no uploads: nothing can be published there")
    if not can.blocks and (can.put or can.pin):
        found.append(
            "nothing can be read back from it: a new device needs another provider, or a gateway in its settings"
        )
    if can.put and not can.names and not can.list:
        found.append(
            "it keeps no names and no list: other devices find what is new only through another provider"
        )
    if can.put and can.list and not can.names:
        found.append(
            "it keeps no names: other devices find what is new by its list, which may come a little later"
        )
    if can.put and not can.partial_car:
        found.append("it takes only whole memories: each publish sends everything again")
    if can.put and not can.keeps_root:
        found.append("it lays files out its own way, so its address is another one than ours")
    if can.put and not can.unpin:
        found.append("it lets go of nothing: gc frees no space there")
    if not can.durable:
        found.append("it forgets after 48 hours: a device has to sync in between")
    return found
