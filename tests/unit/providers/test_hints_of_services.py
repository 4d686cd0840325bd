"""Refusals of a service about an account, a key or a setting: following the hint makes the call work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ipfsmem.content.cid import raw_cid
from ipfsmem.provider.contract import open_provider
from tests.servers import pinata
from tests.support.hints import Refused
from tests.unit.providers.services_lab import Account, account

CID = raw_cid(b"anything")


@pytest.fixture(scope="module")
def paid() -> Iterator[Account]:
    with account("pinata-car") as at:
        yield at


@pytest.fixture(scope="module")
def s3() -> Iterator[Account]:
    with account("filebase-s3") as at:
        yield at


def asks(at: Account, what: str = "pins", *given: Any, **settings: Any) -> Any:
    """Make one call to the service with a new provider."""

    async def ask() -> Any:
        provider = at.open(**settings)
        try:
            return await getattr(provider, what)(*(given or ("m",)))
        finally:
            await provider.close()

    return asyncio.run(ask())


def says(at: Account, status: int, text: str = "") -> None:
    """Set the answer of the service from now on."""
    at.server.faults.clear()
    at.server.faults.answer("*", ".*", status, text, times=-1)


def test_account_refusals_have_hints_that_help(paid: Account) -> None:
    """With another plan, token or size the same call succeeds."""
    says(paid, 402)
    with Refused("The plan does not allow this, or its quota is used up."):
        asks(paid)
    says(paid, 403)
    with Refused("The token is not allowed to do this. Check its scopes and the plan."):
        asks(paid)
    says(paid, 413)
    with Refused("Too large for this provider or plan."):
        asks(paid)
    says(paid, 410)
    with Refused("The service has ended this. Choose another provider: ipfsmem vault move."):
        asks(paid)
    says(paid, 451)
    with Refused("The provider blocks this content."):
        asks(paid)
    paid.server.faults.clear()
    assert asks(paid) == []


def test_hints_about_pinata_keys_work(paid: Account) -> None:
    with Refused("PINATA_JWT holds the long text that starts with eyJ, not the API key or the API secret."):
        asks(paid, pinata_jwt="0123456789abcdef")
    with Refused(
        "Make a key with that scope at app.pinata.cloud, API Keys. Keys are for one generation of the API: one with v3 scopes"
        " has none of the legacy ones (pinFileToIPFS, ...), and the other way round (PINATA_API=legacy). GET"
        " /data/testAuthentication answers 200 even for a key without any scope: that test proves that the key exists, not"
        " that it may upload or list."
    ):
        asks(paid, pinata_jwt=pinata.LEGACY_KEY)
    says(paid, 403, '{"error": {"reason": "API_KEY_REVOKED", "details": "revoked"}}')
    with Refused("Make a new key and set PINATA_JWT to it."):
        asks(paid)
    paid.server.faults.clear()
    assert asks(paid, pinata_jwt=pinata.ADMIN_KEY) == []


def test_hint_about_a_pinata_gateway_works(paid: Account) -> None:
    with Refused("pinata:<your gateway>.mypinata.cloud, or PINATA_GATEWAY."):
        asks(paid, "get_blocks", [CID], pinata_gateway="")
    assert asks(paid, "get_blocks", []) == {}


def test_hints_about_filebase_keys_and_buckets_work(s3: Account) -> None:
    with Refused("Check FILEBASE_KEY and FILEBASE_SECRET, and that the bucket is of that account."):
        asks(s3, filebase_secret="wrong")
    with Refused("Make an IPFS bucket in the console, or name another: filebase:<bucket>."):
        asks(s3, rest="nobody-made-this")
    with Refused("Set FILEBASE_VIA=rpc to pin roots that are on the network."):
        asks(s3, "pin", CID, "m")
    assert asks(s3) == []


def test_hint_about_a_pinning_service_without_blocks_works() -> None:
    async def put() -> None:
        provider = open_provider(
            "pinning_service:https://api.example.com/psa", {"pinning_service_token": "t"}
        )
        try:
            await provider.put_car(CID, [], name="m")
        finally:
            await provider.close()

    with Refused("Use it together with a provider that holds the blocks, such as kubo."):
        asyncio.run(put())
    assert open_provider("kubo").capabilities.put
