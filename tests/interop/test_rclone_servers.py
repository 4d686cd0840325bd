"""The rclone provider, with the installed rclone and a current one, at an S3 server (SeaweedFS) and at
`rclone serve` for WebDAV and SFTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ipfsmem_providers.rclone import RcloneProvider

from ipfsmem.content.tree import build_tree
from ipfsmem.provider.probe import probe
from tests.interop.real_servers import rclone_of, rclone_serve
from tests.interop.seaweed import seaweed
from tests.servers import s3
from tests.unit.providers.rclone_lab import configured


def _s3(age: str, folder: Path, stack: ExitStack) -> tuple[str, str]:
    server = stack.enter_context(seaweed(folder, s3.KEY, s3.SECRET))
    asyncio.run(server.make_bucket(s3.BUCKET))
    lines = f"provider = Other\naccess_key_id = {s3.KEY}\nsecret_access_key = {s3.SECRET}\nendpoint = {server.url}\nregion = us-east-1"
    return f"type = s3\n{lines}\n", f"{s3.BUCKET}/memory"


def _webdav(age: str, folder: Path, stack: ExitStack) -> tuple[str, str]:
    port = rclone_serve("webdav", age, folder, stack, "--dir-cache-time=0s")
    return f"type = webdav\nvendor = other\nurl = http://127.0.0.1:{port}\n", "memory"


def _sftp(age: str, folder: Path, stack: ExitStack) -> tuple[str, str]:
    port = rclone_serve("sftp", age, folder, stack, "--user=u", "--pass=p")
    hidden = subprocess.run(
        [rclone_of(age), "obscure", "p"], capture_output=True, text=True, check=True
    ).stdout
    return (
        f"type = sftp\nhost = 127.0.0.1\nport = {port}\nuser = u\npass = {hidden.strip()}\nshell_type = none\n",
        "memory",
    )


@pytest.fixture(
    params=[(start, age) for start in (_s3, _webdav, _sftp) for age in ("old", "new")],
    ids=lambda param: f"{param[0].__name__[1:]}-{param[1]}",
)
def spec(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)  # rclone 1.60 cannot use it
    start: Callable[[str, Path, ExitStack], tuple[str, str]]
    start, age = request.param
    if Path(program := rclone_of(age)).is_absolute():
        monkeypatch.setenv("PATH", str(Path(program).parent), prepend=os.pathsep)
    (tmp_path / "served" / "memory").mkdir(parents=True)
    with ExitStack() as stack:
        lines, path = start(age, tmp_path, stack)
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
