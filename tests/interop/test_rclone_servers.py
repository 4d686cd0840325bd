"""The rclone provider at remotes of three kinds: an S3 server (SeaweedFS), and WebDAV and SFTP as `rclone serve` speaks them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ipfsmem_providers.rclone import RcloneProvider

from ipfsmem.content.tree import build_tree
from ipfsmem.provider.probe import probe
from tests.interop.seaweed import seaweed
from tests.servers import s3
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.unit.providers.rclone_lab import configured, need_rclone


def _s3(folder: Path, stack: ExitStack) -> tuple[str, str]:
    server = stack.enter_context(seaweed(folder, s3.KEY, s3.SECRET))
    asyncio.run(server.make_bucket(s3.BUCKET))
    lines = f"provider = Other\naccess_key_id = {s3.KEY}\nsecret_access_key = {s3.SECRET}\nendpoint = {server.url}\nregion = us-east-1"
    return f"type = s3\n{lines}\n", f"{s3.BUCKET}/memory"


def _webdav(folder: Path, stack: ExitStack) -> tuple[str, str]:
    port = _serve("webdav", folder, stack, "--dir-cache-time=0s")
    return f"type = webdav\nvendor = other\nurl = http://127.0.0.1:{port}\n", "memory"


def _sftp(folder: Path, stack: ExitStack) -> tuple[str, str]:
    port = _serve("sftp", folder, stack, "--user=u", "--pass=p")
    hidden = subprocess.run(["rclone", "obscure", "p"], capture_output=True, text=True, check=True).stdout
    return (
        f"type = sftp\nhost = 127.0.0.1\nport = {port}\nuser = u\npass = {hidden.strip()}\nshell_type = none\n",
        "memory",
    )


def _serve(kind: str, folder: Path, stack: ExitStack, *options: str) -> int:
    """A folder with a folder `memory`, served by rclone."""
    (folder / "served" / "memory").mkdir(parents=True)
    port = free_port()
    server = subprocess.Popen(
        ["rclone", "serve", kind, folder / "served", f"--addr=127.0.0.1:{port}", *options], stderr=subprocess.DEVNULL
    )  # fmt: skip
    stack.callback(server.wait, PATIENCE)
    stack.callback(server.terminate)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < until and server.poll() is None, f"rclone serve {kind} does not answer"
            time.sleep(0.05)
        else:
            return port


@pytest.fixture(params=[_s3, _webdav, _sftp], ids=["s3", "webdav", "sftp"])
def spec(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    need_rclone()
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)  # rclone 1.60 cannot use it
    start: Callable[[Path, ExitStack], tuple[str, str]] = request.param
    with ExitStack() as stack:
        lines, path = start(tmp_path, stack)
        stack.enter_context(configured(tmp_path, f"[there]\n{lines}"))
        yield f"there:{path}"


def test_every_capability_works_at_a_remote(spec: str) -> None:
    async def run() -> None:
        one, two = RcloneProvider(spec), RcloneProvider(spec)
        steps = await probe(one, now_ms=int(time.time() * 1000), random=os.urandom)
        assert {step.outcome for step in steps} == {"ok", "cannot"}, steps
        big = build_tree({f"{number}.ipm": os.urandom(900_000) for number in range(4)})
        await one.put_car(big.cid, big.blocks, name="n")
        await one.pin(big.cid, "n")
        cids = sorted({cid for cid, _ in big.blocks}, key=str)
        assert (await two.get_blocks(cids)).keys() == {*cids}
        (pin,) = await two.pins("n")
        await two.unpin(pin)
        assert await one.pins("n") == []
        for provider in (one, two):
            await provider.close()

    asyncio.run(run())
