"""`ipfsmem serve` with a real process: a memory goes through it, strangers may not write, Ctrl-C ends it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from ipfsmem.memory import Memory
from ipfsmem.opening import Unlock
from ipfsmem.seal.signers import RawKeySigner
from ipfsmem.sync.provider import open_provider

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0b"))
TOKEN = "a token of enough length"


def test_two_devices_through_a_served_folder(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ipfsmem.cli",
        "serve",
        str(tmp_path / "kept"),
        "--create",
        "--port",
        "0",
        "--json",
    ]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "IPFSMEM_SERVE_TOKEN": TOKEN}
    )
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]

        def device(name: str) -> Memory:
            return Memory.load(
                "m",
                "encrypted-ipfs",
                provider=open_provider(f"peer:{url}", {"peer_token": TOKEN}),
                unlock=WALLET,
                unprotected_keys=True,
                home=tmp_path / name,
                create=True,
            )

        a = device("a")
        a.write("k", "through the served folder")
        asyncio.run(a.sync())
        b = device("b")
        assert b.read("k").file.body == "through the served folder"  # type: ignore[union-attr]
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 0


def test_bad_calls_are_one_line(tmp_path: Path) -> None:
    for more, said in (
        (["--token", "short"], "at least 16 characters"),
        (["--host", "0.0.0.0"], "can be reached from other machines"),
        ([], "stick"),
    ):
        folder = tmp_path / ("stick" if not more else ".")
        done = subprocess.run(
            [sys.executable, "-m", "ipfsmem.cli", "serve", str(folder), "--port", "0", *more],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        assert done.returncode not in (0, 70) and said in done.stderr and len(done.stderr.splitlines()) <= 2
