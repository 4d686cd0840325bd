"""`ipfsmem sync --every` in its own process, for tests of long-running commands."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from tests.support.cli_lab import Cli
from tests.support.patience import PATIENCE


class Keeping:
    """`ipfsmem sync --every ...` in its own process; both streams as one sequence of lines."""

    def __init__(self, cli: Cli, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ipfsmem.cli", "sync", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "IPFSMEM_HOME": str(cli.home)},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.decode().rstrip("\n"))

    def line(self, wanted: Callable[[str], object]) -> str:
        """Return the next line that contains `wanted`; skip others."""
        while True:
            found = self._lines.get(timeout=PATIENCE)
            if wanted(found):
                return found

    def json(self, wanted: Callable[[Any], object]) -> Any:
        return json.loads(self.line(lambda line: wanted(json.loads(line))))

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, list[str]]:
        """Return the exit code and the unread lines."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._thread.join(PATIENCE)
        rest = []
        while not self._lines.empty():
            rest.append(self._lines.get())
        return code, rest
