"""Following the hints about a provider's settings makes the refused call work. No network: `provider add`
only opens a provider."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from ipfsmem_providers.web3storage import ucan
from ipfsmem_providers.web3storage.ucan import Ability, Signer

from tests.support import ucan_lab
from tests.support.cli_lab import KEY, Cli
from tests.support.hints import hinted

SPACE, DEVICE = Signer(b"\x07" * 32), Signer(b"\x08" * 32)
W3UP = {"W3UP_PRINCIPAL": ucan_lab.format_signer(DEVICE, b"\x08" * 32)}
PINATA = {"PINATA_JWT": "eyJ"}
FILEBASE = {"FILEBASE_KEY": "k", "FILEBASE_SECRET": "s"}
PSA = {"PINNING_SERVICE_TOKEN": "t"}
WEBDAV = {"WEBDAV_USER": "me", "WEBDAV_PASSWORD": "p"}


def proof(audience: str) -> str:
    """Return a delegation of the space as its tools write it."""
    made = ucan.issue(SPACE, audience, [Ability("*", SPACE.did)], expires=int(time.time() + 86400))
    return ucan_lab.proof_text(ucan_lab.archive(made))


class Told(NamedTuple):
    """`provider add wrong` with `before` prints `text`; with `after` instead, `right` is accepted."""

    text: str
    wrong: str
    right: str
    before: Mapping[str, str] = {}
    after: Mapping[str, str] = {}
    first: str = ""  # is added first


ROWS = (
    Told("For instance gateway:https://trustless-gateway.link", "gateway", "gateway:https://trustless-gateway.link"),
    Told("For instance routing:https://delegated-ipfs.dev", "routing", "routing:https://delegated-ipfs.dev"),
    Told("For instance peer:http://127.0.0.1:8787", "peer", "peer:http://127.0.0.1:8787"),
    Told("For instance pinning_service:https://api.example.com/psa, with PINNING_SERVICE_TOKEN.", "pinning_service", "pinning_service:https://api.example.com/psa", {}, PSA),
    Told("For instance https://example.com", "peer:example.com", "peer:https://example.com"),
    Told("For instance VALUE", "kubo:http://[", "kubo:http://127.0.0.1:5001"),
    Told("bearer:<token>, basic:<user>:<password> or <user>:<password>", "kubo", "kubo", {"KUBO_RPC_AUTH": "secret"}, {"KUBO_RPC_AUTH": "bearer:secret"}),
    Told("Make an access key at console.filebase.com and set FILEBASE_KEY and FILEBASE_SECRET.", "filebase:my-memory", "filebase:my-memory", {}, FILEBASE),
    Told("For instance filebase:my-memory", "filebase", "filebase:my-memory", FILEBASE, FILEBASE),
    Told("Make a key at app.pinata.cloud, API Keys, and set PINATA_JWT to its JWT.", "pinata", "pinata", {}, PINATA),
    Told("PINATA_UPLOAD=folder, or PINATA_API=v3.", "pinata", "pinata", {**PINATA, "PINATA_API": "legacy", "PINATA_UPLOAD": "car"}, {**PINATA, "PINATA_API": "legacy", "PINATA_UPLOAD": "folder"}),
    Told("For instance /ip4/203.0.113.7/tcp/4001/p2p/12D3KooW..., as `ipfs id` shows it.", "pinning_service:https://api.example.com/psa", "pinning_service:https://api.example.com/psa", {**PSA, "PINNING_SERVICE_ORIGINS": "203.0.113.7"}, {**PSA, "PINNING_SERVICE_ORIGINS": "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWGrNmGsHFuS6DvJFuSRX2SnRUcyhhSNcBvYHAZXSB6wpN"}),
    Told('Name its address: VALUE="VALUE" (omit addresses without a token), or VALUE as a table of such pairs under [providers.VALUE] in the settings file.', "peer:https://b.example", "peer:https://b.example", {"PEER_TOKEN": "one"}, {"PEER_TOKEN": "https://a.example=one https://b.example=two"}, first="peer:https://a.example"),
    Told('VALUE="https://host.example=<its token>", and a space before a further pair.', "peer:https://a.example", "peer:https://a.example", {"PEER_TOKEN": "https://a.example="}, {"PEER_TOKEN": "https://a.example=one https://b.example=two"}),
    Told("Remove one of them.", "peer:https://a.example", "peer:https://a.example", {"PEER_TOKEN": "https://a.example=one https://a.example/=two"}, {"PEER_TOKEN": "https://a.example=one"}),
    Told("Use pinata, filebase, a Pinning Service, your own Kubo, or a folder (ipfsmem provider list). For a service that speaks w3up, such as one you host: web3storage:<its URL>, with W3UP_PRINCIPAL and W3UP_PROOF.", "web3storage", "web3storage:https://up.example.org", {}, {**W3UP, "W3UP_PROOF": proof(DEVICE.did)}),
    Told("Mg..., as w3up tools print it.", "web3storage:https://up.example.org", "web3storage:https://up.example.org", {"W3UP_PROOF": proof(DEVICE.did)}, {**W3UP, "W3UP_PROOF": proof(DEVICE.did)}),
    Told("Create one for VALUE, for instance with: storacha delegation create VALUE --base64", "web3storage:https://up.example.org", "web3storage:https://up.example.org", {**W3UP, "W3UP_PROOF": proof(SPACE.did)}, W3UP),
    Told("For instance webdav:https://nas.example/memory; at Nextcloud and ownCloud webdav:VALUE.", "webdav:nas", "webdav:https://nas.example/memory", {}, WEBDAV),
    Told("Leave it out, and set WEBDAV_USER and WEBDAV_PASSWORD.", "webdav:https://me:secret@nas.example/memory", "webdav:https://nas.example/memory", {}, WEBDAV),
    Told("Set both, or neither for a server without accounts.", "webdav:https://nas.example/memory", "webdav:https://nas.example/memory", {"WEBDAV_USER": "me"}, WEBDAV),
    Told("Use https://. In a network that you trust: set WEBDAV_PLAIN_HTTP=allow.", "webdav:http://nas.example/memory", "webdav:http://nas.example/memory", WEBDAV, {**WEBDAV, "WEBDAV_PLAIN_HTTP": "allow"}),
    Told("For instance rclone:drive:memory; `rclone listremotes` prints the names of remotes.", "rclone:drive", "rclone:drive:memory"),
    Told("Give the remote a name: rclone config. VALUE", "rclone::webdav,pass=secret:memory", "rclone:drive:memory"),
    Told("For instance sftp:me@nas.example/memory, below the home folder there, or sftp:me@nas.example:2222//srv/memory.", "sftp:nas", "sftp:me@nas.example/memory"),
    Told("Leave it out: ssh logs in with a key.", "sftp:me:secret@nas.example/memory", "sftp:me@nas.example/memory"),
    Told("Name the gateway: gateway_token_for, under [providers.gateway] in the settings file.", "gateway:https://b.example", "gateway:https://b.example", {"": 'gateway_token = "t"'}, {"": 'gateway_token = "t"\ngateway_token_for = "https://a.example"'}, first="gateway:https://a.example"),
    Told("Name it in the list too: gateway:https://its.example,https://another.example", "gateway:https://another.example", "gateway:https://its.example,https://another.example", {"": 'gateway_token = "t"\ngateway_token_for = "https://its.example"'}, {"": 'gateway_token = "t"\ngateway_token_for = "https://its.example"'}),
)  # fmt: skip


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a published vault, shared by all rows."""
    base = tmp_path_factory.mktemp("providers")
    (base / "stick").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPFSMEM_CONFIG", os.devnull)
        Cli(base / "home", patch).ok("init", "--unprotected-keys", "--provider", str(base / "stick"), key=KEY)
    yield base / "home"


def apply_settings(monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str], config: Path) -> None:
    """Set variables; values without a name go to the settings file, for gateways."""
    for name, value in given.items():
        if name:
            monkeypatch.setenv(name, value)
        else:
            config.write_text(f"[providers.gateway]\n{value}\n")
            config.chmod(0o600)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.wrong}: {row.text}"[:70])
def test_provider_setting_named_in_a_hint_is_accepted(
    row: Told, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "settings.toml"
    config.touch(0o600)
    monkeypatch.setenv("IPFSMEM_CONFIG", str(config))
    device = Cli(memory, monkeypatch)
    if row.first:
        device.ok("provider", "add", row.first)
    with monkeypatch.context() as patch:
        apply_settings(patch, row.before, config)
        told = device.fails(3, "provider", "add", row.wrong).err
    hinted(row.text, told)
    apply_settings(monkeypatch, row.after, config)
    if "storacha" in row.text:
        (did,) = re.findall(r"Create one for (did:key:\w+)", told)
        monkeypatch.setenv("W3UP_PROOF", proof(did))
    device.ok("provider", "add", row.right)
    for spec in filter(None, (row.right, row.first)):
        device.ok("provider", "remove", spec)


def test_hint_about_the_missing_signing_package_works(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    device = Cli(memory, monkeypatch)
    apply_settings(monkeypatch, FILEBASE, memory)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: None if name == "botocore" else find(name, *more)
    )
    hinted(
        "Install it in the same environment: pip install botocore. FILEBASE_VIA=rpc works without it.",
        device.fails(3, "provider", "add", "filebase:my-memory").err,
    )
    monkeypatch.setenv("FILEBASE_VIA", "rpc")
    device.ok("provider", "add", "filebase:my-memory")
    device.ok("provider", "remove", "filebase:my-memory")
