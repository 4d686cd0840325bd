"""`ipfsmem api` as a process: it serves until it is ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

import aiohttp

from tests.support.cli_lab import Cli


def test_the_command_serves_until_it_is_ended_and_its_token_is_nowhere_else(cli: Cli) -> None:
    cli.ok("write", "tone", "--body", "Be brief.")
    environment = {**os.environ, "IPFSMEM_HOME": str(cli.home)}
    server = subprocess.Popen(
        [sys.executable, "-m", "ipfsmem.cli", "--json", "api", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())

        async def ask() -> None:
            headers = {"Authorization": f"Bearer {said['token']}"}
            async with (
                aiohttp.ClientSession(said["url"], headers=headers) as client,
                client.get("/v1/memories/tone") as got,
            ):
                assert got.status == 200 and (await got.json())["body"] == "Be brief."

        asyncio.run(ask())
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=30)
        assert (server.returncode, out, err) == (0, b"", b"")
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()
    for path in cli.home.rglob("*"):
        assert not path.is_file() or said["token"].encode() not in path.read_bytes()
