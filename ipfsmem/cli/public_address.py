"""How other people read a public vault: its address, and the command that opens it.

Consent to publishing is not checked here.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ipfsmem.cli.printing import clean

if TYPE_CHECKING:
    from ipfsmem.results import Status

#: A public gateway with verifiable blocks, for data in the network.
GATEWAY = "gateway:https://trustless-gateway.link"


def address(status: Status) -> str:
    """Return the address of a public vault; empty for every other one, and before it is published."""
    return f"ipfs://{status.root}" if status.mode.public and status.root else ""


def way_in(status: Status) -> str:
    """Return the command by which a reader with that address lists the vault; empty without one.

    A vault in a folder needs access to that folder; services and nodes are reached through a gateway.
    """
    name = address(status)
    if not name or not status.providers:
        return ""
    spec = status.providers[0]
    provider = GATEWAY if spec.partition(":")[0] in _NETWORK else shlex.quote(spec)
    return f"ipfsmem open {name} --provider {provider}"


def lines(status: Status) -> list[str]:
    """Return the lines below a sync of a public vault."""
    name = address(status)
    if not name:
        return []
    texts = [f"Public address: {name}"]
    command = way_in(status)
    if command:
        texts.append(f"Anyone can read it with: {clean(command)}")
    return texts


#: Kinds of providers whose content the whole network can fetch.
_NETWORK = frozenset({"pinata", "filebase", "web3storage", "kubo", "pinning_service"})
