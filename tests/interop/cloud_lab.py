"""Google's and Azure's object storage on this machine: a stand-in, and Azure's own emulator, Azurite."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from tests.interop.counterparts import npm_folder
from tests.servers.s3 import SmallS3
from tests.servers.threaded import serve
from tests.support.ports import free_port

BUCKET = "memories"
#: Azurite's only account, as documented.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Cloud:
    """A running emulator with one bucket: its specs and settings."""

    def __init__(self, scheme: str, settings: Mapping[str, str]) -> None:
        self.scheme, self.settings = scheme, dict(settings)

    def spec(self, prefix: str) -> str:
        """Return the address after `bucket:`."""
        return f"{self.scheme}://{BUCKET}/{prefix}"


@contextlib.contextmanager
def _running(command: list[str | Path], ready: Callable[[], Any], folder: Path) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, cwd=folder)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                ready()
                break
            except OSError as error:
                if isinstance(error, urllib.error.HTTPError) and error.code == 409:
                    break
                if time.monotonic() > until or process.poll() is not None:
                    text = (folder / "log").read_text(errors="replace")[-1000:]
                    raise AssertionError(f"{command[0]} did not start: {error} {text}") from error
                time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait(60)


@contextlib.contextmanager
def google(folder: Path) -> Iterator[Cloud]:
    """A stand-in: the used part of Google's XML API is that of S3, except for its signatures.
    fake-gcs-server refuses uploads of that API ("invalid uploadType"; 1.54)."""
    server = SmallS3(signed=False)
    with serve(server.bucket_app) as url:
        # A key that names the server and disables tokens. Without one obstore asks the machine's own cloud.
        key = {
            "gcs_base_url": url,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        yield Cloud("gs", {"google_service_account_key": json.dumps(key)})


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Cloud]:
    """Azurite, which checks every signature."""
    program = npm_folder("azurite").parent / "node_modules" / ".bin" / "azurite-blob"
    url = f"http://127.0.0.1:{(port := free_port())}/{_ACCOUNT}"

    def ready() -> None:
        asked = urllib.request.Request(f"{url}/{BUCKET}?restype=container", method="PUT")
        headers = {
            "x-ms-date": format_datetime(datetime.now(UTC), usegmt=True), "x-ms-version": "2023-11-03", "Content-Length": "0",
        }  # fmt: skip
        lines = "\n".join(f"{name}:{headers[name]}" for name in ("x-ms-date", "x-ms-version"))
        text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\n{lines}\n/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
        signed = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(signed).decode()}"
        for name, value in headers.items():
            asked.add_header(name, value)
        urllib.request.urlopen(asked, timeout=2).close()

    command: list[str | Path] = [
        "node", program.resolve(), "--inMemoryPersistence", "--blobPort", str(port), "--disableTelemetry", "--silent",
        "--skipApiVersionCheck",
    ]  # fmt: skip
    with _running(command, ready, folder):
        yield Cloud(
            "az",
            {
                "azure_storage_account_name": _ACCOUNT,
                "azure_storage_account_key": _KEY,
                "azure_storage_endpoint": url,
            },
        )
