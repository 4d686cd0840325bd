"""Recovery sheet on paper: names, the newest root, providers, commands (format section 7).

No secrets: provider settings by name only, no recovery phrase, and no part of an address that may be a
password. No provider is contacted.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ipfsmem.config import DEFAULT_VAULT, VaultConfig
from ipfsmem.content.cid import ipns_name
from ipfsmem.device.replica import Replica
from ipfsmem.device.tables import heads, meta
from ipfsmem.mode import Mode
from ipfsmem.provider.contract import HIDDEN, is_of_another_package, shown_spec
from ipfsmem.ring.statements import member_id
from ipfsmem.sync.names import pin_name
from ipfsmem.vault.recovery import Words, words_of
from ipfsmem.vault.vaults import further_vaults

#: Settings required per kind of provider, as in docs/reference/providers.md; for buckets per cloud. Other settings in
#: use are added.
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "bucket:az": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCOUNT_NAME"),
    "bucket:gs": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "bucket:s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "filebase": ("FILEBASE_KEY", "FILEBASE_SECRET"),
    "git": ("GIT_TOKEN",),
    "kubo": ("KUBO_RPC_AUTH",),
    "peer": ("PEER_TOKEN",),
    "pinata": ("PINATA_GATEWAY", "PINATA_JWT"),
    "pinning_service": ("PINNING_SERVICE_GATEWAY", "PINNING_SERVICE_TOKEN"),
    "webdav": ("WEBDAV_PASSWORD", "WEBDAV_USER"),
    "web3storage": ("W3UP_PRINCIPAL", "W3UP_PROOF", "W3UP_SERVICE_DID", "W3UP_SPACE"),
}
_PREFIX: Final[Mapping[str, tuple[str, ...]]] = {
    "git": ("GIT_TOKEN",),
    "bucket:az": ("AZURE_STORAGE_", "BUCKET_"),
    "bucket:gs": ("GOOGLE_", "BUCKET_"),
    "bucket:s3": ("AWS_", "BUCKET_"),
    "web3storage": ("W3UP_",),
}
_SECRET: Final = re.compile(r"TOKEN|KEY|SECRET|JWT|AUTH|PROOF|PRINCIPAL|PASS")


class SheetProvider(msgspec.Struct, frozen=True):
    """A provider: its spec without secrets (`hidden` when a part was omitted), and the names of required settings.

    `root`: its own root for the newest version, if different; `at`: time of the last publish.
    """

    provider: str
    settings: list[str]
    hidden: bool
    root: str | None
    at: int | None


class RecoverySheet(msgspec.Struct, frozen=True):
    """The contents of a recovery sheet; times in milliseconds. `wallet`: whether a wallet made this vault.

    `address` is known if the wallet was used here. `root` and `published_at` are this device's: None before
    its first sync. `words`: labels of the valid recovery phrases, never the words.
    """

    vault_name: str
    mode: Mode
    vault_tag: str
    #: Its label in the wallet's message.
    wallet_vault: str
    key_number: int
    wallet: bool
    address: str | None
    signature_passphrase: bool
    anchor: str
    pin_name: str
    root: str | None
    published_at: int | None
    made_at: int
    device: str
    providers: list[SheetProvider]
    words: list[Words]
    with_words: str
    with_wallet: str
    vaults: list[OtherVault]


class OtherVault(msgspec.Struct, frozen=True):
    """Another vault of the same wallet whose name this vault keeps, and the command that restores it."""

    name: str
    key_number: int
    with_wallet: str


def make_sheet(
    vault_name: str,
    replica: Replica,
    vault: VaultConfig,
    places: Iterable[tuple[str, str | None, int | None]],
    settings_of: Mapping[str, Mapping[str, Any]],
) -> RecoverySheet:
    """Make the sheet of a vault. `places`: spec, last published root, when; `settings_of`: the settings
    file's, by kind."""
    ring = replica.ring
    anchor = bytes.fromhex(vault.anchor)
    stored = replica.db.get_meta(meta.ROOT)
    root = stored.decode() if stored else None
    head = heads.get(replica.db.connection, root) if root else None
    listed_places = [_place(*place, root, settings_of) for place in places]
    words = words_of(ring)
    first = ring.view.members.get(member_id(ring.view.roots[0])) if ring is not None else None
    wallet = vault.address is not None or (first is not None and first.kind == "wallet")
    where = (
        "".join(f" --provider {shlex.quote(place.provider)}" for place in listed_places)
        or " --provider WHERE"
    )
    name = "" if vault_name == DEFAULT_VAULT else f" --vault {vault_name}"
    return RecoverySheet(
        vault_name=vault_name,
        mode=replica.config.mode,
        vault_tag=vault.tag,
        wallet_vault=vault.name,
        key_number=vault.key_number,
        wallet=wallet,
        address=vault.address,
        signature_passphrase=vault.passphrase,
        anchor=ipns_name(anchor),
        pin_name=pin_name(anchor),
        root=root,
        published_at=head.seen if head else None,
        made_at=replica.environment.now(),
        device=replica.config.label,
        providers=listed_places,
        words=words,
        with_words=f"ipfsmem recover{name}{_mode_option(replica)}{where}" if words else "",
        with_wallet=f"ipfsmem recover{name}{_mode_option(replica)} --wallet FILE{_vault_options(vault, vault_name)}{where}"
        if wallet
        else "",
        vaults=[
            OtherVault(
                one.name,
                one.key_number,
                f"ipfsmem recover --vault {one.name} --wallet FILE"
                + (f" --key-number {one.key_number}" if one.key_number > 1 else "")
                + " --provider WHERE",
            )
            for one in further_vaults(replica)
            if one.address == vault.address
        ],
    )


def _mode_option(replica: Replica) -> str:
    return "" if replica.config.mode.sealed else f" --mode {replica.config.mode}"


def _vault_options(vault: VaultConfig, vault_name: str) -> str:
    """Return the options that select one of a wallet's vaults, whatever else is on the device later."""
    known = vault.name in ("", vault_name)
    name = "" if known else f" --wallet-vault {vault.name}"
    number = f" --key-number {vault.key_number}" if vault.key_number > 1 else ""
    return name + number + (" --signature-passphrase" if vault.passphrase else "")


def _place(
    spec: str,
    placed: str | None,
    at: int | None,
    root: str | None,
    settings_of: Mapping[str, Mapping[str, Any]],
) -> SheetProvider:
    settings = _settings_of_kind(spec, settings_of)
    names = {*NEEDS.get(_kind(spec), ()), *settings}
    without = public_spec(spec, settings_of)
    other = placed if root is not None and placed != root else None
    return SheetProvider(without, sorted(names), without != spec, other, at)


def _settings_of_kind(spec: str, settings_of: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return a provider kind's settings from the settings file and the environment."""
    kind = _kind(spec)
    table = kind.partition(":")[0]
    prefix = _PREFIX.get(kind, (kind.upper().replace("-", "_") + "_",))
    ours = kind in NEEDS or table in settings_of or is_of_another_package(table)
    settings = {name.upper(): _text(value) for name, value in settings_of.get(table, {}).items()}
    return settings | {n: v for n, v in os.environ.items() if ours and n.startswith(prefix) and v}


def _kind(spec: str) -> str:
    """Return the kind of a provider; for a bucket with its cloud; "" for a git repository that needs no token."""
    kind, _, rest = spec.partition(":")
    if kind == "git" and not rest.startswith(("https:", "http:")):
        return ""
    if kind != "bucket":
        return kind
    scheme, _, place = rest.partition("://")
    azure = scheme == "az" or place.partition("/")[0].endswith(".blob.core.windows.net")
    return f"bucket:{'az' if azure else 'gs' if scheme == 'gs' else 's3'}"


def _text(value: object) -> str:
    """Return a setting in its environment form: a table of tokens by address as pairs."""
    if isinstance(value, Mapping):
        return " ".join(f"{key}={each}" for key, each in value.items())
    return str(value)


def public_spec(spec: str, settings_of: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a provider's spec without its secrets."""
    settings = _settings_of_kind(spec, settings_of)
    secrets = [value for name, value in settings.items() if _SECRET.search(name)]
    # One setting may hold tokens of several addresses, each after its address (docs/reference/providers.md).
    parts = [pair.partition("=")[2] for value in secrets for pair in value.split()]
    return without_secrets(spec, [*secrets, *parts])


def without_secrets(spec: str, secrets: Iterable[str]) -> str:
    """Return a spec without these secrets and without URL parts that may hold one: user, password, query, fragment."""
    public = shown_spec(spec)
    for secret in secrets:
        if len(secret) >= 6:
            public = public.replace(secret, HIDDEN)
    return public
