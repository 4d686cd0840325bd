"""Reads the settings of the `web3storage` provider: the service's URL, the key, the delegation and the space.

provider.py lists them. Nothing here sends anything, and no error repeats a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from yarl import URL

from ipfsmem.errors import ConfigError, FormatError
from ipfsmem.provider.contract import shown_spec
from ipfsmem_providers.settings import setting
from ipfsmem_providers.web3storage import ucan
from ipfsmem_providers.web3storage.shards import SHARD_BYTES
from ipfsmem_providers.web3storage.ucan import Proof, Signer

_ENDED: Final = (
    "WEB3_STORAGE_TOKEN is a token of web3.storage's old API, which accepts no uploads since 9 January 2024; its "
    "successors w3up and Storacha stopped their hosted service in April and May 2026. Nothing was sent there."
)
_WHERE_TO: Final = (
    "Use pinata, filebase, a Pinning Service, your own Kubo, or a folder (ipfsmem provider list). For a service that "
    "speaks w3up, such as one you host: web3storage:<its URL>, with W3UP_PRINCIPAL and W3UP_PROOF."
)
_SHARD_LEAST: Final = 4096


def service_url(rest: str, settings: Mapping[str, Any]) -> str:
    """Return the URL of the service. Raises ConfigError for an invalid URL, or the URL of a service that was shut down."""
    token = setting(settings, "WEB3_STORAGE_TOKEN")
    try:
        url = URL(rest)
    except ValueError:
        raise ConfigError(f"web3storage: {shown_spec(rest)!r} is not a URL") from None
    if url.host == "api.web3.storage" or (token and not (rest and setting(settings, "W3UP_PRINCIPAL"))):
        raise ConfigError(_ENDED, hint=_WHERE_TO)
    if not rest:
        raise ConfigError("web3storage needs the URL of a service that speaks w3up", hint=_WHERE_TO)
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"web3storage: {shown_spec(rest)!r} is not an http or https URL")
    return rest


def identity(settings: Mapping[str, Any]) -> tuple[Signer, Proof | None, str]:
    """Return the key, the delegation (None when the key is the space's own) and the DID of the space."""
    text = setting(settings, "W3UP_PRINCIPAL")
    if not text:
        raise ConfigError("web3storage needs a key in W3UP_PRINCIPAL", hint="Mg..., as w3up tools print it.")
    try:
        signer = ucan.parse_signer(text)
    except FormatError as error:
        raise ConfigError(f"W3UP_PRINCIPAL cannot be used: {error}") from None
    delegation = setting(settings, "W3UP_PROOF")
    space = setting(settings, "W3UP_SPACE")
    if not delegation:
        if space not in ("", signer.did):
            raise ConfigError(f"web3storage needs a delegation from {space} to {signer.did} in W3UP_PROOF")
        return signer, None, signer.did
    try:
        proof = ucan.read_proof(_proof_data(delegation))
    except FormatError as error:
        raise ConfigError(f"W3UP_PROOF cannot be used: {error}") from None
    spaces = {item.resource for item in proof.token.abilities if item.resource.startswith("did:key:")}
    if not space:
        if len(spaces) != 1:
            raise ConfigError(f"the delegation in W3UP_PROOF names {len(spaces)} spaces: set W3UP_SPACE")
        (space,) = spaces
    return signer, proof, space


def _proof_data(delegation: str) -> str | bytes:
    try:
        path = Path(delegation).expanduser()
        if len(delegation) > 4096 or not path.is_file():
            return delegation
        data = path.read_bytes()
    except (OSError, ValueError, RuntimeError):
        return delegation
    try:
        text = data.decode("ascii").strip()
    except UnicodeDecodeError:
        return data
    return text


def check_delegation(proof: Proof, signer: Signer, space: str, now: float) -> None:
    """Raise ConfigError when a delegation does not let this key publish to the space."""
    needed = ("space/blob/add", "upload/add")
    wrong = ucan.check_proof(proof, signer, space, needed, now)
    if wrong:
        raise ConfigError(
            f"the delegation in W3UP_PROOF cannot be used: {'; '.join(wrong)}",
            hint=f"Create one for {signer.did}, for instance with: storacha delegation create {signer.did} --base64",
        )


def shard_size(text: str) -> int:
    """Return the setting W3UP_SHARD_BYTES as a number of bytes."""
    if not text:
        return SHARD_BYTES
    if not text.isascii() or not text.isdigit() or not _SHARD_LEAST <= int(text) <= 1 << 40:
        raise ConfigError(f"W3UP_SHARD_BYTES is {text!r}, not a number of bytes from {_SHARD_LEAST}")
    return int(text)
