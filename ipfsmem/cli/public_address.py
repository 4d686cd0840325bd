"""How somebody else reads a public memory: the address to hand out, and the command that opens it.

Whether the memory is published at all was agreed to before, and is not decided here.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ipfsmem.cli.printing import clean

if TYPE_CHECKING:
    from ipfsmem.results import Status

#: A public gateway that gives blocks which can be checked, for what lies in the network.
GATEWAY = "gateway:https://trustless-gateway.link"


def address(status: Status) -> str:
    """What is handed out of a public memory; empty for every other one, and before it is published."""
    return f"ipfs://{status.root}" if status.mode.public and status.root else ""


def way_in(status: Status) -> str:
    """The command by which somebody with that address lists it; empty where there is none to give.

    Out of a folder only who has the folder reads; services and nodes are reached through a gateway.
    """
    found = address(status)
    if not found or not status.providers:
        return ""
    spec = status.providers[0]
    where = GATEWAY if spec.partition(":")[0] in _NETWORK else shlex.quote(spec)
    return f"ipfsmem open {found} --provider {where}"


def lines(status: Status) -> list[str]:
    """What stands below a sync of a public memory."""
    found = address(status)
    if not found:
        return []
    told = [f"Public address: {found}"]
    command = way_in(status)
    if command:
        told.append(f"Anyone can read it with: {clean(command)}")
    return told


#: Kinds of providers whose content the whole network can have.
_NETWORK = frozenset({"pinata", "filebase", "web3storage", "kubo", "pinning_service"})
