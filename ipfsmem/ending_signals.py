"""The signals by which somebody ends a program, and a program that ends by them as by Ctrl-C: what it has begun is put in order,
nothing half-made stays behind. What a program that goes on does with them is its own matter.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Final

#: Seconds within which a signal that comes again is the same one: `timeout` sends its signal twice.
_AGAIN: Final = 1.0


def ending_signals() -> tuple[signal.Signals, ...]:
    """Ctrl-C, what `kill` and a service manager send, and the terminal that was closed, where nobody said that the program shall
    outlive it (`nohup`)."""
    found = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return tuple(found)


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt, with the number of the signal, where one would end this process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first: list[float] = []

    def end(number: int, frame: FrameType | None) -> None:
        if not first:
            first.append(time.monotonic())
            raise KeyboardInterrupt(number)
        if time.monotonic() - first[0] > _AGAIN:  # putting in order takes too long for whoever sends it
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    ours = [number for number in ending_signals() if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)
