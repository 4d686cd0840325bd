"""The Pinning Service API on both sides: our client with a third-party mock service, our service with a
compliance checker.

The checker assumes that requested pins are pinned at once, even if nobody has the content. With its content
in the store all nine checks pass, also at a real `ipfsmem serve peer`; without, its check of names fails,
because the list shows pinned requests only. It requests the schemas from the network; judge.mjs gives it a
copy.

The mock allows one request per CID, never completes it unless its name starts with `pinned-`, and ignores
limits and pages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.http.policy import Retry
from ipfsmem_providers.peer import PeerProvider
from ipfsmem_providers.pinning_service import PinningServiceProvider
from ipfsmem_providers.psa_client import FAILED, PINNED, QUEUED

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderRefused, ProviderUnavailable
from ipfsmem.http import psa
from ipfsmem.provider.contract import Pin
from ipfsmem.testing import SimCloud, SimProvider
from tests.interop.counterparts import need_program, npm_folder, server
from tests.servers.threaded import serve

pytestmark = pytest.mark.interop
TOKEN = "token-of-the-service"
A, B, C = (raw_cid(hashlib.sha256(bytes([number])).digest()) for number in range(3))


@pytest.fixture(scope="module")
def mock() -> Iterator[str]:
    with server([need_program("node"), npm_folder("pinning") / "mock.mjs", TOKEN]) as url:
        yield url


def opened(url: str, token: str = TOKEN, **more: Any) -> PinningServiceProvider:
    return PinningServiceProvider(
        url,
        {
            "pinning_service_token": token,
            "pinning_service_patience": "0",
            "retry": Retry(attempts=2, first=0.01, most=0.02),
            **more,
        },
    )


def test_our_client_works_with_a_foreign_service(mock: str) -> None:
    async def body() -> None:
        service = opened(mock)
        pin = await service.pin(A, "pinned-one")
        assert (pin.cid, pin.name) == (A, "pinned-one") and pin.handle and pin.created
        assert await opened(mock).pin(A, "pinned-one") == pin
        await service.pin(B, "pinned-one")
        assert {found.cid for found in await service.pins("pinned-one")} == {A, B}
        assert await service.pins("pinned-on") == []
        status = await service.status(pin)
        assert status is not None and status.status == PINNED
        await service.unpin(pin)
        await service.unpin(pin)
        assert await service.status(pin) is None
        assert {found.cid for found in await service.pins("pinned-one")} == {B}
        await service.unpin(Pin(C, "x", "no such request", 0))

    asyncio.run(body())


def test_requested_pin_is_listed_and_not_taken_for_pinned(mock: str) -> None:
    async def body() -> None:
        service = opened(mock)
        with pytest.raises(ProviderUnavailable, match="still fetching"):
            await service.pin(C, "later")
        [pin] = await service.pins("later")
        status = await service.status(pin)
        assert status is not None and status.status == QUEUED
        await service.unpin(pin)

    asyncio.run(body())


def test_failed_pin_is_replaced(mock: str) -> None:
    async def body() -> None:
        service = opened(mock)
        with pytest.raises(ProviderUnavailable, match="could not pin"):
            await service.pin(C, "failed-once")
        assert await service.pins("failed-once") == []
        before = await service._client.list(name="failed-once", statuses=[FAILED])
        with pytest.raises(ProviderUnavailable, match="could not pin"):
            await service.pin(C, "failed-once")
        after = await service._client.list(name="failed-once", statuses=[FAILED])
        assert len(before) == len(after) == 1 and before[0].id != after[0].id
        await service._client.delete(after[0].id)

    asyncio.run(body())


def test_wrong_token_is_refused_and_not_shown(mock: str) -> None:
    async def body() -> None:
        with pytest.raises(ProviderRefused, match="401") as caught:
            await opened(mock, "another token").pins("x")
        assert "another" not in str(caught.value)

    asyncio.run(body())


def judge(url: str, folder: Path) -> tuple[str, set[str]]:
    """Return the checker's summary, and the failed checks."""
    scripts = npm_folder("pinning")
    program = scripts.parent / "node_modules" / ".bin" / "pinning-service-compliance"
    done = subprocess.run(
        [need_program("node"), "--import", scripts / "judge.mjs", program, "-s", url, TOKEN],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    summary = re.search(r"Summary \((.*)\)", done.stdout)
    assert summary, done.stdout[-2000:] + done.stderr[-2000:]
    after = done.stdout[summary.end() :]
    return summary[1], {line.strip()[2:].strip() for line in after.splitlines() if "❌" in line}


@pytest.mark.slow
def test_our_service_passes_the_compliance_check(tmp_path: Path) -> None:
    cloud = SimCloud()
    for number in range(20_000):
        data = f"7,{number}".encode()  # contents that judge.mjs makes predictable
        cloud.blocks[raw_cid(hashlib.sha256(data).digest())] = data
    with serve(lambda: psa.app(SimProvider(cloud), token=TOKEN)) as url:
        summary, failed = judge(url, tmp_path)
    assert (summary, failed) == ("9/9 successful", set())
    assert cloud.pins == []  # it removed everything that it had pinned


@pytest.mark.slow
def test_started_peer_passes_the_compliance_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ipfsmem serve peer` as a separate process, its folder filled through its own peer API."""
    npm_folder("pinning")  # a skipped test creates nothing before
    kept = tmp_path / "kept"
    blocks = []
    for number in range(20_000):
        data = f"7,{number}".encode()
        blocks.append((raw_cid(hashlib.sha256(data).digest()), data))
    program = [
        sys.executable,
        "-m",
        "ipfsmem.cli",
        "serve",
        "peer",
        kept,
        "--create",
        "--port",
        "0",
        "--json",
    ]
    monkeypatch.setenv("IPFSMEM_SERVE_TOKEN", TOKEN)
    with server(program) as line:
        said = json.loads(line)
        store = PeerProvider(said["url"], {"peer_token": TOKEN})
        asyncio.run(store.put_car(blocks[0][0], blocks, name="n"))
        summary, failed = judge(said["psa"], tmp_path)
    assert (summary, failed) == ("9/9 successful", set())
    assert not list(kept.glob("pins/*")) and not list(kept.glob("psa/*")), "it took everything away again"


@pytest.mark.slow
def test_compliance_check_of_unavailable_contents_fails_in_one_case_only(tmp_path: Path) -> None:
    with serve(lambda: psa.app(SimProvider(), token=TOKEN)) as url:
        summary, failed = judge(url, tmp_path)
    assert summary == "8/9 successful"
    assert len(failed) == 1 and "Can create a pin with name=" in failed.pop()
