"""`ipfsmem` for shell scripts of many commands: each call is a fork of one process that has already imported
the program.

This saves the start of Python and the imports; other tests and the thorough profile use real starts. POSIX only.

    python forked_program.py SOCKET                 the process that forks
    python forked_program.py SOCKET ARGUMENT...     one call: the same folder, environment, streams, signals and exit code
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys

_STREAMS = (0, 1, 2)
#: Rooms whose packages may be missing, and which no command of the scripts needs.
_EXTRAS = (
    "ipfsmem.adapters",
    "ipfsmem.mcp",
    "ipfsmem.recall.postings_arrays",
    "ipfsmem.recall.ranking_arrays",
)


def call(path: str, arguments: list[str]) -> int:
    """Run the arguments in a fork; return its exit code."""
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    body = "\0".join([os.getcwd(), str(len(arguments)), *arguments, *variables]).encode(
        "utf-8", "surrogateescape"
    )
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(path)
        socket.send_fds(wire, [len(body).to_bytes(4, "big")], _STREAMS)
        wire.sendall(body)
        child = int.from_bytes(wire.recv(4), "big")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: os.kill(child, number))
        code = wire.recv(1)
    return code[0] if code else 128 + signal.SIGKILL


def serve(path: str) -> None:
    """Fork for each call until the process is ended."""
    import pkgutil
    from importlib import import_module
    from pathlib import (
        Path,
    )  # imported here because it takes a third of the time of a call, which does not need it

    import ipfsmem

    for name in ("eth_account", "rich.table", "ipfsmem_providers.directory"):
        import_module(name)
    for found in pkgutil.walk_packages(ipfsmem.__path__, "ipfsmem."):
        if not found.name.startswith(_EXTRAS) and not found.name.endswith("__main__"):
            import_module(found.name)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.support import passphrase_cost

    passphrase_cost.make_cheap()
    gc.collect()
    gc.freeze()  # else each fork would copy all memory when its garbage collector runs
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while True:
            wire, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _run(wire)
            wire.close()
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _run(wire: socket.socket) -> None:
    """Run one call in its own process."""
    code = 70
    try:
        head, streams, _, _ = socket.recv_fds(wire, 4, len(_STREAMS))
        size, body = int.from_bytes(head, "big"), b""
        while len(body) < size:
            body += wire.recv(1 << 16)
        folder, count, *rest = body.decode("utf-8", "surrogateescape").split("\0")
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(one.split("=", 1) for one in rest[int(count) :])
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        wire.send(os.getpid().to_bytes(4, "big"))
        from ipfsmem.cli import main

        code = main(rest[: int(count)])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        wire.send(bytes((code,)))
        os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(call(sys.argv[1], sys.argv[2:]))
    serve(sys.argv[1])
