"""Reports of a service about an incomplete upload: following the hint completes it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from ipfsmem_providers.pinata import api as pinata_api
from ipfsmem_providers.pinata import provider as module
from ipfsmem_providers.pinata import tus as pinata_tus

from ipfsmem.content.cid import CID
from ipfsmem.provider.contract import Provider, open_provider
from tests.servers import pinata
from tests.servers.kubo import FakeKubo
from tests.servers.threaded import serve
from tests.support.hints import Refused
from tests.unit.providers.services_lab import FILES, Account, account, files_under, tree

NAME = "ipfsmem-0123456789abcdef"
NO_FOLDERS = "Pinata's v3 API accepts no folders, by its documents. Use a plan that accepts CARs, or a key with the scopes of the legacy API, which accepts folders: PINATA_API=legacy."
LEGACY = {"pinata_api": "legacy", "pinata_jwt": pinata.LEGACY_KEY, "pinata_upload": "auto"}


def put(at: Account, **settings: Any) -> CID:
    """Send the small root with a new provider."""

    async def body() -> CID:
        provider = at.open(**settings)
        try:
            return await provider.put_car(tree().cid, tree().blocks, name=NAME)
        finally:
            await provider.close()

    return asyncio.run(body())


def is_there(at: Account, **settings: Any) -> None:
    """Check that it is sent, and pinned completely."""

    async def body(root: CID) -> None:
        reader = at.open(**settings)
        try:
            if reader.capabilities.pin:
                await reader.pin(root, NAME)
            assert [pin.cid for pin in await reader.pins(NAME)] == [root]
            assert await files_under(reader, root) == FILES
        finally:
            await reader.close()

    asyncio.run(body(put(at, **settings)))


def nothing_is_pinned(at: Account, **settings: Any) -> None:
    async def body() -> None:
        provider = at.open(**settings)
        try:
            assert await provider.pins(NAME) == []
        finally:
            await provider.close()

    asyncio.run(body())


@pytest.fixture
def paid() -> Iterator[Account]:
    with account("pinata-car") as at:
        yield at


@pytest.fixture
def v3() -> Iterator[Account]:
    """A key for v3 alone, on a plan without CARs."""
    with account("pinata-field") as at:
        yield at


def test_hint_about_another_root_at_pinata_works(paid: Account) -> None:
    paid.server.wrong_root = tree(head_ipm=b"other").cid
    with Refused("Nothing points to the other root. PINATA_UPLOAD=folder takes Pinata's own layout."):
        put(paid)
    nothing_is_pinned(paid)
    is_there(paid, pinata_upload="folder", pinata_jwt=pinata.ADMIN_KEY)


def test_hint_about_refused_folders_at_pinata_works(v3: Account) -> None:
    v3.server.folders = "refused"
    with Refused(NO_FOLDERS):
        put(v3)
    is_there(v3, **LEGACY)


def test_hint_about_refused_folders_works_on_a_plan_with_cars(v3: Account) -> None:
    v3.server.folders = "refused"
    with Refused(NO_FOLDERS):
        put(v3)
    v3.server.paid = True
    is_there(v3)


def test_hint_about_a_folder_stored_as_one_file_works(v3: Account) -> None:
    v3.server.folders = "first"
    with Refused("Nothing points to it. VALUE"):
        put(v3)
    nothing_is_pinned(v3)
    v3.server.paid = True
    is_there(v3)


def test_hint_about_a_folder_stored_as_one_file_works_in_legacy_api() -> None:
    with account("pinata-legacy") as at:
        at.server.folders = "first"
        with Refused("Nothing points to it."):
            put(at)
        nothing_is_pinned(at)
        at.server.folders = "kept"
        is_there(at)


def test_hint_about_a_folder_over_the_request_limit_works(
    v3: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 1_000_000  # bytes
    monkeypatch.setattr("tests.servers.pinata.REQUEST_MAX", limit)
    for where in (module, pinata_api):
        monkeypatch.setattr(where, "ONE_REQUEST", limit)
    assert sum(map(len, FILES.values())) > limit
    with Refused("A plan that accepts CARs has no such limit, nor does the legacy API (PINATA_API=legacy)."):
        put(v3)
    nothing_is_pinned(v3)
    is_there(v3, **LEGACY)


def test_large_car_is_uploaded_on_a_plan_with_cars(paid: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.servers.pinata.REQUEST_MAX", 1_000_000)
    for where in (module, pinata_api):
        monkeypatch.setattr(where, "ONE_REQUEST", 1_000_000)
    monkeypatch.setattr(pinata_tus, "CHUNK", 700_000)
    is_there(paid)


def test_hint_about_a_folder_served_only_in_part_works(v3: Account) -> None:
    v3.server.faults.answer("GET", "head.ipm", 404, times=-1)
    with Refused("Sync again in a while."):
        put(v3)
    v3.server.faults.clear()
    is_there(v3)


def test_hint_about_a_moved_upload_host_works(paid: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large CARs are uploaded to a host that the service names and the settings permit."""
    monkeypatch.setattr(module, "ONE_REQUEST", 1_000_000)
    with serve(paid.server.app) as moved:
        where = f"{moved}/v3/files/tus/upload0"

        async def elsewhere(request: Any) -> Any:
            answer = await paid.server.upload(request)
            answer.headers["Location"] = where
            return answer

        paid.server.faults.add("POST", "/v3/files$", elsewhere, times=-1)
        with Refused("If Pinata moved its uploads, set PINATA_UPLOAD_URL."):
            put(paid)
        paid.server.uploads.clear()
        is_there(paid, pinata_upload_url=moved)


@pytest.mark.parametrize("kind", ["filebase-s3", "filebase-rpc"])
def test_hint_about_another_root_at_filebase_works(kind: str) -> None:
    with account(kind) as at:
        at.server.wrong_root = tree(head_ipm=b"other").cid
        if kind == "filebase-s3":
            with Refused("The object was deleted again, and nothing points to the other root. Report it."):
                put(at)
            assert at.server.objects == {}
        else:
            with Refused("Nothing points to the other root. Report it."):
                put(at)
        nothing_is_pinned(at)
        at.server.wrong_root = None
        is_there(at)


def test_hint_about_a_bucket_at_another_filebase_host_works() -> None:
    with account("filebase-s3") as at, account("filebase-s3") as other:
        at.server.faults.answer("*", "/memories", 307, times=-1)
        with Refused(
            "Make an IPFS bucket, or name the host that has it: FILEBASE_S3_URL=https://s3.filebase.io."
        ):
            put(at)
        is_there(at, filebase_s3_url=other.url, filebase_gateway=other.url)


def test_hint_about_a_wrong_clock_at_filebase_works() -> None:
    with account("filebase-s3") as at:
        at.server.ahead = 3 * 3600
        with Refused("Set the clock."):
            put(at)
        at.server.ahead = 0
        is_there(at)


# -- Kubo --------------------------------------------------------------------------------------------------------------


def pinned(url: str) -> list[CID]:
    """Return the pins under the name after the small root was sent to a node."""

    async def body() -> list[CID]:
        provider: Provider = open_provider(f"kubo:{url}")
        try:
            await provider.put_car(tree().cid, tree().blocks, name=NAME)
            await provider.pin(tree().cid, NAME)
            return [pin.cid for pin in await provider.pins(NAME)]
        finally:
            await provider.close()

    return asyncio.run(body())


def test_hint_about_a_node_without_pin_names_works() -> None:
    node = FakeKubo("0.28.0")
    with serve(node.app) as url, Refused("Pins have names since Kubo 0.29. Update the node."):
        pinned(url)
    updated = FakeKubo("0.29.0")
    updated.cloud, updated.pins = node.cloud, node.pins
    with serve(updated.app) as url:
        assert pinned(url) == [tree().cid]


def test_hint_about_a_proxy_in_front_of_a_node_works() -> None:
    node = FakeKubo()
    with serve(node.app) as url:
        node.nameless = True
        with Refused(
            "IPFS Cluster's proxy is such a node. Name the RPC of a Kubo itself, as kubo:http://127.0.0.1:5001."
        ):
            pinned(url)
    node.nameless = False  # the same node, without the proxy
    with serve(node.app) as url:
        assert pinned(url) == [tree().cid]


def test_hint_about_a_server_that_is_not_a_node_works() -> None:
    with account("pinata-car") as other, Refused("Is VALUE the RPC of a Kubo node?"):
        pinned(other.url)
    with serve(FakeKubo().app) as url:
        assert pinned(url) == [tree().cid]
