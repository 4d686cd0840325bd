"""The agent key: one string that opens a vault in a container, with its form, bounds and keys (format section 4.1).

Whoever has the string can read the vault. No error here repeats a part of it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ipfsmem import canonical
from ipfsmem.errors import FormatError, LimitError, OpenError
from ipfsmem.lazy_pattern import lazy_pattern
from ipfsmem.seal.compression import deflate, inflate
from ipfsmem.seal.primitives import Signer25519, hkdf_expand, hkdf_extract, public_key_ok, x25519_public
from ipfsmem.wallet.root_keys import vault_tag

PREFIX: Final = "ipfsmem_ak1_"
#: Maximum characters of the string, of its JSON in bytes, and number of providers.
MAX_TEXT: Final = 4_096
MAX_JSON: Final = 8_192
MAX_PROVIDERS: Final = 8
#: Maximum characters of a provider's address and of a credential.
MAX_SPEC: Final = 512
MAX_CREDENTIAL: Final = 2_048
#: The credentials that a key may have, by kind of provider. No other setting of a provider comes from a string.
CREDENTIALS: Final[Mapping[str, frozenset[str]]] = {
    "bucket": frozenset(
        [
            "aws_access_key_id",
            "aws_secret_access_key",
            "aws_session_token",
            "aws_region",
            "azure_storage_account_key",
            "azure_storage_account_name",
            "azure_storage_sas_token",
            "bucket_endpoint",
            "bucket_region",
            "google_service_account_key",
        ]
    ),
    "filebase": frozenset(["filebase_key", "filebase_secret", "filebase_gateway_token"]),
    "git": frozenset(["git_token"]),
    "peer": frozenset(["peer_token"]),
    "pinata": frozenset(["pinata_jwt", "pinata_gateway", "pinata_gateway_token"]),
    "pinning_service": frozenset(["pinning_service_token"]),
    "webdav": frozenset(["webdav_user", "webdav_password"]),
}
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHECK: Final = 6
_FORM: Final = lazy_pattern(r"ipfsmem_ak1_[1-9A-Za-z][0-9A-Za-z]*")
_ID: Final = lazy_pattern(r"[0-9a-f]{16}")
_CONTROL: Final = lazy_pattern("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
#: Names of the JSON.
_NAMES: Final = {"anchor", "least", "providers", "root", "seed", "v"}


class KeyProvider(msgspec.Struct, frozen=True):
    """A provider in an agent key: its address, and the credentials that the key holds for it."""

    spec: str
    credentials: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return "KeyProvider()"


class AgentKey(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """The content of an agent key. Its repr shows no secret.

    `seed`: 32 random bytes, from which the keys of its member are derived. `root`, `anchor`: public admin and
    head key of the first root of the vault. `least`: a device and the counter of its version in which the key
    was enrolled; a provider that shows only older ones is not believed.
    """

    seed: bytes
    root: bytes
    anchor: bytes
    providers: tuple[KeyProvider, ...]
    least: tuple[str, int]

    def __repr__(self) -> str:
        return f"AgentKey(id={self.id!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("id", self.id)]

    @property
    def vault(self) -> bytes:
        """Return the tag of the vault, 16 bytes. Only sealed vaults have agent keys."""
        return vault_tag(self.root, plain=False)

    @cached_property
    def sign_seed(self) -> bytes:
        """Return the Ed25519 seed of its member."""
        return self._derived(b"sign")

    @cached_property
    def box_secret(self) -> bytes:
        """Return the X25519 secret of its member."""
        return self._derived(b"box")

    @cached_property
    def signer(self) -> Signer25519:
        """Return the signer of its member."""
        return Signer25519(self.sign_seed)

    @property
    def box_public(self) -> bytes:
        """Return the X25519 public key of its member."""
        return x25519_public(self.box_secret)

    @cached_property
    def id(self) -> str:
        """Return the id of its member, 16 hex digits."""
        return hashlib.sha256(self.signer.public).hexdigest()[:16]

    def _derived(self, label: bytes) -> bytes:
        prk = hkdf_extract(b"ipfsmem/v1/agent-key", self.seed)
        return hkdf_expand(prk, b"ipfsmem/v1/" + label + self.vault, 32)


def render_key(key: AgentKey) -> str:
    """Return the string of an agent key. Raises FormatError or LimitError for content that no reader would accept."""
    fields = {
        "anchor": key.anchor.hex(),
        "least": [*key.least],
        "providers": [[one.spec, dict(one.credentials)] for one in key.providers],
        "root": key.root.hex(),
        "seed": canonical.b64(key.seed),
        "v": 1,
    }
    data = canonical.encode(fields)
    _key_of(data)
    text = PREFIX + _base62(b"\x01" + deflate(data, 9))
    text += _check_digits(text)
    if len(text) > MAX_TEXT:
        raise LimitError(
            f"an agent key has at most {MAX_TEXT:,} characters, and this one would have {len(text):,}"
        )
    return text


def parse_key(text: str) -> AgentKey:
    """Read an agent key; white space around it is ignored. Raises FormatError, LimitError."""
    text = text.strip()
    if not text.startswith(PREFIX):
        raise FormatError(f"not an agent key: it does not begin with {PREFIX}")
    if len(text) > MAX_TEXT:
        raise LimitError(f"an agent key has at most {MAX_TEXT:,} characters, and this text has {len(text):,}")
    if not _FORM.fullmatch(text):
        raise FormatError("the agent key has a character that is neither an ASCII letter nor a digit")
    body, check = text[:-_CHECK], text[-_CHECK:]
    if len(body) <= len(PREFIX) or _check_digits(body) != check:
        raise FormatError("the agent key is mistyped or cut off: its checksum is wrong")
    raw = _bytes_of_base62(body[len(PREFIX) :])
    if raw[:1] != b"\x01":
        raise FormatError("the agent key is invalid: its content does not begin with 1")
    try:
        data = inflate(raw[1:], MAX_JSON)
    except OpenError:
        raise FormatError("the agent key is invalid: its content cannot be decompressed") from None
    return _key_of(data)


def _key_of(data: bytes) -> AgentKey:
    if len(data) > MAX_JSON:
        raise LimitError(f"the content of an agent key has at most {MAX_JSON:,} bytes")
    try:
        fields = canonical.decode(data, "the content of the agent key")
    except FormatError:  # its message may repeat a part
        raise FormatError("the agent key is invalid: its content is not canonical JSON") from None
    if not isinstance(fields, dict) or fields.get("v") != 1 or isinstance(fields.get("v"), bool):
        raise FormatError("the agent key is of a version that this program does not know")
    if fields.keys() != _NAMES:
        raise FormatError("the agent key is invalid: a field is missing or unknown")
    if not all(isinstance(fields[name], str) for name in ("anchor", "root", "seed")):
        raise _wrong("a key")
    try:
        root, anchor = (canonical.unhex(fields[name], name, 32) for name in ("root", "anchor"))
        seed = canonical.unb64(fields["seed"], "seed", 32)
    except FormatError:
        raise _wrong("a key") from None
    if not (public_key_ok(root) and public_key_ok(anchor)):
        raise _wrong("a key")
    return AgentKey(
        seed=seed,
        root=root,
        anchor=anchor,
        providers=_providers(fields["providers"]),
        least=_least(fields["least"]),
    )


def _least(value: Any) -> tuple[str, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise _wrong("least")
    device, counter = value
    if not isinstance(device, str) or not _ID.fullmatch(device):
        raise _wrong("least")
    if not isinstance(counter, int) or isinstance(counter, bool) or counter < 1:
        raise _wrong("least")
    return device, counter


def _providers(value: Any) -> tuple[KeyProvider, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_PROVIDERS:
        raise FormatError(f"an agent key has 1 to {MAX_PROVIDERS} providers")
    found = []
    for one in value:
        if not isinstance(one, list) or len(one) != 2:
            raise _wrong("a provider")
        spec, credentials = one
        if not _is_line(spec, MAX_SPEC) or not isinstance(credentials, dict):
            raise _wrong("a provider")
        allowed = CREDENTIALS.get(spec.partition(":")[0], frozenset())
        if not allowed >= credentials.keys():
            raise FormatError(
                "the agent key is invalid: it has a setting that is not a credential of its provider"
            )
        if not all(_is_line(text, MAX_CREDENTIAL) for text in credentials.values()):
            raise _wrong("a credential")
        found.append(KeyProvider(spec, credentials))
    if len({one.spec for one in found}) < len(found):
        raise FormatError("the agent key is invalid: it has one provider twice")
    return tuple(found)


def _is_line(text: Any, most: int) -> bool:
    return isinstance(text, str) and 0 < len(text) <= most and not _CONTROL.search(text)


def _wrong(what: str) -> FormatError:
    return FormatError(f"the agent key is invalid: {what} in it has a wrong form")


def _base62(data: bytes) -> str:
    number, digits = int.from_bytes(data, "big"), []
    while number:
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _bytes_of_base62(text: str) -> bytes:
    number = 0
    for char in text:
        number = number * 62 + _DIGITS.index(char)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _check_digits(text: str) -> str:
    return _base62(zlib.crc32(text.encode("ascii")).to_bytes(4, "big")).rjust(_CHECK, "0")
