"""Signals that end a program, handled like Ctrl-C: open work is cleaned up before the process ends.

A server that continues after a signal installs handlers of its own.
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

#: Seconds within which a repeated signal is ignored: `timeout` sends its signal twice.
_AGAIN: Final = 1.0


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return SIGINT, SIGTERM, and SIGHUP unless it is ignored, as under `nohup`."""
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return tuple(signals)


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt with the number of a signal that would otherwise end this process immediately."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first: list[float] = []

    def end(number: int, frame: FrameType | None) -> None:
        if not first:
            first.append(time.monotonic())
            raise KeyboardInterrupt(number)
        if time.monotonic() - first[0] > _AGAIN:  # the clean-up takes too long for the sender
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
