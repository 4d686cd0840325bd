"""The w3up service's own server code on loopback, and spaces in it, for tests of the `web3storage` provider."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from ipfsmem_providers.http.policy import Retry
from ipfsmem_providers.web3storage import Web3Storage, ucan
from ipfsmem_providers.web3storage.ucan import Ability, Signer

from tests.interop.counterparts import need_program, npm_folder, run
from tests.support import ucan_lab

ALL = ("space/*", "upload/*")


def script(name: str) -> list[str]:
    """Return the command that runs one of the scripts; skip (or fail) the test without it."""
    return [need_program("node"), str(npm_folder("w3up") / name)]


class Space:
    """A paid space, and its key."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.seed = os.urandom(32)
        self.key = Signer(self.seed)

    def settings(
        self, *, abilities: tuple[str, ...] = ALL, lifetime: float = 86400, **more: Any
    ) -> dict[str, Any]:
        """Settings of a new device: its own key, and a delegation to it."""
        seed = os.urandom(32)
        device = Signer(seed)
        proof = self.delegate(device.did, abilities, lifetime)
        return {
            "w3up_service_did": self.server.did,
            "w3up_principal": ucan_lab.format_signer(device, seed),
            "w3up_proof": proof,
            "retry": Retry(attempts=3, first=0.01, most=0.02),
            **more,
        }

    def delegate(self, audience: str, abilities: tuple[str, ...] = ALL, lifetime: float = 86400) -> str:
        token = ucan.issue(
            self.key,
            audience,
            [Ability(can, self.key.did) for can in abilities],
            expires=int(time.time() + lifetime),
        )
        return ucan_lab.proof_text(ucan_lab.archive(token))

    def open(self, **more: Any) -> Web3Storage:
        """Open the space as a separate device."""
        return Web3Storage(self.server.url, self.settings(**more))

    def blobs(self) -> dict[str, int]:
        """Return digests (base58) and sizes of the stored blobs."""
        return {row["digest"]: row["size"] for row in self.server.control("blobs", {"space": self.key.did})}


class Server:
    """The running service."""

    def __init__(self, url: str, did: str) -> None:
        self.url = url
        self.did = did

    def control(self, what: str, given: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(f"{self.url}/_test/{what}", data=json.dumps(given or {}).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def space(self) -> Space:
        space = Space(self)
        self.control("provision", {"space": space.key.did})
        return space

    def stats(self) -> dict[str, int]:
        found: dict[str, int] = self.control("stats")
        return found

    @contextlib.contextmanager
    def fault(self, **given: Any) -> Iterator[None]:
        """Make requests fail for a while."""
        calm = {
            "deny": {},
            "drop_put": 0,
            "put_status": 0,
            "put_fails": 0,
            "ranges": True,
            "shards_apart": False,
            "blob_most": 0,
        }
        self.control("fault", {**calm, "receipts_late": 0, **given})
        try:
            yield
        finally:
            self.control("fault", {**calm, "receipts_late": 0})


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Start the service, and end it."""
    process = subprocess.Popen(
        script("serve.mjs"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the w3up service did not start"
        yield Server(**json.loads(line))
    finally:
        process.kill()
        process.wait(60)


def official(*args: str) -> Any:
    """Return the JSON output of the service's own client."""
    return json.loads(run([*script("official.mjs"), *args], timeout=120))
