"""The process of one plugin: calls arrive on standard input, answers go to standard output, one line of JSON each.

Run as a file that imports nothing of this package: a plugin affects only this process. Its own output is discarded. This process
ends with the program that started it, however that ends.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any, BinaryIO

#: Maximum characters of an error.
_LONGEST = 300


def main() -> None:
    """Load the plugin named in the first line, then carry out each further line."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=(requests, lines), daemon=True).start()
    first = json.loads(lines.get())
    most: int = first["characters"]
    mine = os.getpid()
    sys.path[:] = first["path"]
    try:
        from importlib.metadata import EntryPoint

        plugin = EntryPoint(first["name"], first["value"], first["group"]).load()()
    except BaseException as error:
        _answer(answers, {"failed": f"it cannot be loaded: {_said(error)}"})
        os._exit(0)
    _answer(answers, {"text": ""})
    while True:
        wish = json.loads(lines.get())
        outcome = _called(plugin, wish["method"], wish["arguments"], most)
        if os.getpid() != mine:
            os._exit(0)  # the plugin forked: end the copy, whose answers nobody reads
        _answer(answers, outcome)


def _read(requests: BinaryIO, lines: queue.Queue[bytes]) -> None:
    for line in requests:
        lines.put(line)
    os._exit(0)


def _called(plugin: Any, method: str, arguments: list[str], most: int) -> dict[str, Any]:
    try:
        call = getattr(plugin, method, None)
        result = None if call is None else call(*arguments)
        if result is not None and not isinstance(result, str):
            return {"failed": f"it returned {type(result).__name__}, not a text"}
        text = (result or "")[:most].encode("utf-8", "replace").decode()
        return {"text": text, "cut": len(result or "") > most}
    except BaseException as error:  # whatever a plugin raises, SystemExit too, is only reported
        return {"failed": _said(error)}


def _said(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = type(error).__name__
    return " ".join(text[:_LONGEST].encode("utf-8", "replace").decode().split())


def _answer(answers: BinaryIO, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
