"""Errors of `web3storage` about its settings, before any network access."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from ipfsmem_providers.web3storage import Web3Storage, ucan
from ipfsmem_providers.web3storage.ucan import Ability, Signer
from ipfsmem_providers.web3storage.uploads import tag_of

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.provider.contract import Pin, open_provider
from tests.support import ucan_lab

URL = "https://up.example.org"
SPACE, SPACE_SEED = Signer(b"\x07" * 32), b"\x07" * 32
DEVICE, DEVICE_SEED = Signer(b"\x08" * 32), b"\x08" * 32
KEY = ucan_lab.format_signer(DEVICE, DEVICE_SEED)


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "PRINCIPAL",
        "PROOF",
        "SPACE",
        "SERVICE_DID",
        "READ",
        "GATEWAY",
        "BLOBS",
        "RECEIPTS",
        "SHARD_BYTES",
    ):
        monkeypatch.delenv(f"W3UP_{name}", raising=False)
    monkeypatch.delenv("WEB3_STORAGE_TOKEN", raising=False)


def proof(*cans: str, audience: str = DEVICE.did, expires: float = 86400, resource: str = SPACE.did) -> str:
    token = ucan.issue(
        SPACE,
        audience,
        [Ability(can, resource) for can in cans or ("*",)],
        expires=int(time.time() + expires),
    )
    return ucan_lab.proof_text(ucan_lab.archive(token))


def given(**more: Any) -> dict[str, Any]:
    return {"w3up_principal": KEY, "w3up_proof": proof(), **more}


def test_web3storage_is_opened_without_showing_the_key() -> None:
    provider = open_provider(f"web3storage:{URL}", given())
    assert isinstance(provider, Web3Storage)
    assert provider.name == f"web3storage:{URL}#{SPACE.did[-8:]}"
    for shown in (provider.name, repr(provider), repr(provider._http)):
        assert KEY not in shown


def test_settings_are_read_from_the_environment_and_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("W3UP_PRINCIPAL", KEY)
    for content in (proof().encode(), proof().encode() + b"\n", ucan_lab.archive(_token())):
        (tmp_path / "proof").write_bytes(content)
        monkeypatch.setenv("W3UP_PROOF", str(tmp_path / "proof"))
        assert open_provider(f"web3storage:{URL}").name.endswith(SPACE.did[-8:])


def _token() -> tuple[Any, bytes]:
    return ucan.issue(SPACE, DEVICE.did, [Ability("*", SPACE.did)], expires=None)


def test_key_of_the_space_needs_no_delegation() -> None:
    provider = Web3Storage(URL, {"w3up_principal": ucan_lab.format_signer(SPACE, SPACE_SEED)})
    assert provider.name.endswith(SPACE.did[-8:])
    assert provider.capabilities.unpin and provider.capabilities.has


@pytest.mark.parametrize(
    ("rest", "settings", "words"),
    [
        ("", {}, "needs the URL"),
        ("ftp://x", given(), "not an http or https URL"),
        ("nonsense", given(), "not an http or https URL"),
        (URL, {}, "W3UP_PRINCIPAL"),
        (URL, {"w3up_principal": "Mabc"}, "W3UP_PRINCIPAL cannot be used"),
        (URL, {"w3up_principal": KEY, "w3up_space": SPACE.did}, "needs a delegation"),
        (URL, given(w3up_proof="mAAAA"), "W3UP_PROOF cannot be used"),
        (URL, given(w3up_proof="/no/such/file"), "W3UP_PROOF cannot be used"),
        (URL, given(w3up_proof=proof(audience=SPACE.did)), f"it is for {SPACE.did}"),
        (URL, given(w3up_proof=proof(expires=-10)), "has expired"),
        (URL, given(w3up_proof=proof("upload/*")), "space/blob/add"),
        (URL, given(w3up_space=DEVICE.did), f"does not allow space/blob/add, upload/add on {DEVICE.did}"),
        (URL, given(w3up_proof=proof(resource="ucan:*")), "0 spaces"),
        (URL, given(w3up_service_did="up.example.org"), "W3UP_SERVICE_DID"),
        (URL, given(w3up_blobs="https://blobs.example.org/"), "W3UP_BLOBS"),
        (URL, given(w3up_shard_bytes="12"), "W3UP_SHARD_BYTES"),
        (URL, given(w3up_shard_bytes="a lot"), "W3UP_SHARD_BYTES"),
        (URL, given(w3up_read="perhaps"), "W3UP_READ"),
    ],
)  # fmt: skip
def test_unusable_settings_are_refused(rest: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Web3Storage(rest, settings)
    told = caught.value.diagnostics()
    assert words in told
    for secret in settings.values():
        assert len(secret) < 60 or secret not in told


@pytest.mark.parametrize("rest", ["", "https://api.web3.storage", "https://up.storacha.network"])
def test_former_token_is_answered_with_an_explanation(rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB3_STORAGE_TOKEN", "eyJhbGciOiJIUzI1NiJ9.secret.secret")
    with pytest.raises(ConfigError) as caught:
        open_provider(f"web3storage:{rest}" if rest else "web3storage")
    told = caught.value.diagnostics()
    assert "January 2024" in told and "Nothing was sent" in told
    assert "pinata" in told and "filebase" in told and "web3storage:<its URL>" in told
    assert "secret" not in told


def test_former_host_is_refused() -> None:
    with pytest.raises(ConfigError, match="January 2024"):
        Web3Storage("https://api.web3.storage", given())


def test_token_in_environment_does_not_block_a_self_hosted_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEB3_STORAGE_TOKEN", "x")
    assert Web3Storage(URL, given()).name


def test_capabilities_follow_the_delegation() -> None:
    def can(*cans: str, **more: Any) -> tuple[bool, ...]:
        able = Web3Storage(URL, given(w3up_proof=proof(*cans), **more)).capabilities
        assert (
            able.put
            and able.partial_car
            and able.keeps_root
            and able.pin
            and able.names == able.list
            and able.dag == able.has
        )
        assert able.has <= able.blocks
        return able.blocks, able.list, able.unpin

    least = ("space/blob/add", "upload/add")
    assert can(*least) == (False, False, False)
    assert can(*least, "upload/list") == (False, True, False)
    assert can(*least, "upload/*") == (False, True, True)
    assert can(*least, "upload/list", "space/blob/get/0/1") == (True, True, False)
    assert can("space/*", "upload/*") == (True, True, True)
    assert can("*", w3up_read="off") == (False, True, True)
    assert can(*least, "upload/list", w3up_blobs="https://b.example.org/{digest}") == (True, True, False)
    assert can(*least, w3up_gateway="https://gateway.example.org") == (True, False, False)


def test_method_without_capability_is_refused() -> None:
    provider = Web3Storage(URL, given(w3up_proof=proof("space/blob/add", "upload/add")))
    root = raw_cid(bytes(32))

    async def body() -> None:
        for call in (
            lambda: provider.has([root]),
            lambda: provider.get_blocks([root]),
            lambda: provider.pins("n"),
            lambda: provider.unpin(Pin(root, "n", "", 0)),
            lambda: provider.put_name("k51", b""),
            lambda: provider.get_name("k51"),
            lambda: provider.pin(root, ""),
        ):
            with pytest.raises(ProviderRefused):
                await call()
        with pytest.raises(ProviderRefused):
            provider.get_dag(root)
        await provider.close()

    asyncio.run(body())


def test_name_is_a_small_car_of_its_own() -> None:
    tag = tag_of("ipfsmem-0123456789abcdef")
    assert tag.codec == 0x0202 and tag.hash_code == 0 and len(tag.digest) <= 64
    assert tag != tag_of("ipfsmem-0123456789abcdee") and tag == tag_of("ipfsmem-0123456789abcdef")
