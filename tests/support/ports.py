"""Ports for programs that have to be told one. Nothing here is a test."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

#: Below the ports that systems give to connections and to servers on port 0 (from 32,768 on Linux), so that nobody is given one of these
#: between the choice and the start of the program.
_FROM: Final = range(12_000, 22_000)


def free_port(*, twin: int = 0) -> int:
    """A free port of this machine that no other program gets by chance. `twin`: how far above it another one must be free."""
    while True:
        port = random.SystemRandom().choice(_FROM)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for each in {port, port + twin}:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", each))
            return port
