"""What a provider is good for, in words for people, and what follows from what it cannot do.

It reads Capabilities and asks no provider. Whether a provider really does what it says, `probe` tries out.
"""

from __future__ import annotations

from ipfsmem.provider.contract import Capabilities


def good_for(can: Capabilities) -> str:
    """One or two words: `full` takes a memory, gives it back, and leads other devices to what is new."""
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
    """What a provider cannot do, each with what that means for a memory, the gravest first; empty when it can do everything."""
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
