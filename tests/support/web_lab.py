"""A device of the browser client in Node, driven by a test: its methods are those of the client's `Memory`.

The other side of `web/tests/device.ts`. Nothing here is a test.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

from tests.interop.counterparts import built_web, need_program


class ClientError(Exception):
    """An error of the client: its `kind`, and what it says."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer.get("stack") or answer["error"])
        self.kind: str = answer["kind"]


class Client:
    """One Node process with any number of open memories."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, command: dict[str, Any]) -> Any:
        """The answer to one command. Raises ClientError."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ClientError(answer)
        return answer["answer"]

    def open(self, name: str, url: str, **how: str) -> WebDevice:
        """A device that is let in by `words`, or by a wallet's signatures; `on`: another tab of that device."""
        self.ask({"do": "open", "as": name, "url": url, "label": name, **how})
        return WebDevice(self, name)


class WebDevice:
    """An open memory of the client. What is called here is called there."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def __getattr__(self, method: str) -> Any:
        def call(*given: Any) -> Any:
            return self._client.ask({"do": method, "as": self._name, "with": given})

        return call


@contextlib.contextmanager
def web_client() -> Iterator[Client]:
    """The client in Node; the test is skipped where that is not here."""
    command = [need_program("node"), str(built_web() / "device.js")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Client(process)
    finally:
        process.kill()
        process.communicate()
