"""Ports for programs that have to be told one. Nothing here is a test."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from typing import Final

#: Below the ports that systems give to connections and to servers on port 0 (from 32,768 on Linux), so that nobody is given one of these
#: between the choice and the start of the program. Each worker of a test run has every 16th.
_FROM: Final = range(12_000, 22_000)[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 16 :: 16]


def free_port(*, twin: int = 0) -> int:
    """A port of this machine that is free on IPv4 and, where the machine has it, on IPv6, and that no other program gets by chance.

    `twin`: how far above it another one must be free.
    """
    while True:
        port = random.SystemRandom().choice(_FROM)
        if all(_binds(family, each) for family in FAMILIES for each in (port, port + twin)):
            return port


def _binds(family: socket.AddressFamily, port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(family) as one:
        one.bind(("127.0.0.1" if family is socket.AF_INET else "::1", port))
        return True
    return False


#: What this machine has.
FAMILIES: Final = [family for family in (socket.AF_INET, socket.AF_INET6) if _binds(family, 0)]
