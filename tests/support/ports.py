"""Free ports for programs that need a port number. Contains no tests."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from typing import Final

#: Below the ephemeral ports (from 32,768 on Linux), so that no other program gets one of these between the
#: choice and the start of the program. Each worker of a test run uses every 16th.
_FROM: Final = range(12_000, 22_000)[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 16 :: 16]


def free_port(*, twin: int = 0) -> int:
    """Return a port that is free on IPv4 and, if available, on IPv6, and that no other program gets by
    chance.

    `twin`: a distance above it at which another port must be free."""
    while True:
        port = random.SystemRandom().choice(_FROM)
        if all(_binds(family, each) for family in FAMILIES for each in (port, port + twin)):
            return port


def _binds(family: socket.AddressFamily, port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(family) as one:
        one.bind(("127.0.0.1" if family is socket.AF_INET else "::1", port))
        return True
    return False


#: Address families of this machine.
FAMILIES: Final = [family for family in (socket.AF_INET, socket.AF_INET6) if _binds(family, 0)]
