"""Encode, sign, seal and parse commits: a device's signature on a whole state (format section 6).

Pure. The ring decides which devices may write; the tree contains the state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from ipfsmem import canonical
from ipfsmem.causal.value import SIGNATURE, DeviceCounter
from ipfsmem.errors import FormatError, LimitError, OpenError
from ipfsmem.seal.objects import COMMIT, Sealer
from ipfsmem.seal.primitives import Signer25519, verify

#: Maximum bytes of a commit file (format section 8): room for a counter of every id in a ring and for the
#: maximum number of heads, also in the longer form of plain mode.
MAX_COMMIT = 384 * 1024
_DOMAIN = b"ipfsmem/v1/commit\0"
_is_id = re.compile(r"[0-9a-f]{16}").fullmatch
_is_hash = re.compile(r"[0-9a-f]{64}").fullmatch
_is_tag = re.compile(r"[0-9a-f]{32}").fullmatch


# Fields in the order of canonical JSON.
class Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The JSON of a commit (format section 6).

    `c`: its number among the commits of device `dev`, from 1. `ctx`: a signed pair for each device whose writes are
    in the state. `ek`: id of the epoch key that seals it, "" in plain mode. `h`: the device's clock value. `prev`:
    digests of the parent commits, sorted. `ring`, `state`: SHA-256 of keyring.json and of the state's top node, in
    hex. `vault`: the vault tag in hex.
    """

    c: int
    ctx: dict[str, DeviceCounter]
    dev: str
    ek: str
    h: str
    prev: list[str]
    ring: str
    state: str
    v: int = 1
    vault: str


class SignedCommit(msgspec.Struct, frozen=True):
    """A commit, its exact JSON and the (unverified) signature over it."""

    commit: Commit
    json: bytes
    signature: bytes

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the JSON in hex: the name of a commit in `prev` and in high-water marks."""
        return sha256(self.json).hexdigest()

    def verify(self, public: bytes) -> bool:
        """Tell whether the device with this Ed25519 key signed it."""
        return verify(public, _DOMAIN + self.json, self.signature)

    def says_the_same(self, other: Commit) -> bool:
        """Tell whether both commits have equal state, ctx, ring and epoch key, so that no new commit is needed
        (section 7)."""
        mine = self.commit
        return (mine.state, mine.ctx, mine.ring, mine.ek) == (other.state, other.ctx, other.ring, other.ek)


class _PlainFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    k: str
    s: str


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Commit)
_plain_decoder = msgspec.json.Decoder(_PlainFile)


def sign_commit(signer: Signer25519, commit: Commit) -> SignedCommit:
    """Encode and sign a commit. The caller ensures that the signer is `dev`."""
    text = _encoder.encode(commit)
    return SignedCommit(commit, text, signer.sign(_DOMAIN + text))


def seal_commit(signed: SignedCommit, sealer: Sealer) -> bytes:
    """Return the file `head.ipm`. Raises LimitError."""
    return _within_limit(sealer.seal(COMMIT, b"", signed.signature + signed.json))


def open_commit(data: bytes, sealers: Iterable[Sealer]) -> SignedCommit:
    """Open `head.ipm` with the first fitting key, newest first. Raises OpenError, FormatError, LimitError."""
    _within_limit(data)
    for sealer in sealers:
        try:
            payload = sealer.open(COMMIT, b"", data)
        except OpenError:
            continue
        signed = _parse(payload[64:], payload[:64])
        if signed.commit.ek != sealer.epoch_key.id:
            raise FormatError(
                f"a commit says that it is under the key {signed.commit.ek!r}, and is under {sealer.epoch_key.id}"
            )
        return signed
    raise OpenError("the head is sealed under a key that this device does not hold")


def plain_commit(signed: SignedCommit) -> bytes:
    """Return the file `commit.json` of plain mode. Raises LimitError."""
    return _within_limit(
        _encoder.encode(_PlainFile(canonical.b64(signed.json), canonical.b64(signed.signature)))
    )


def open_plain_commit(data: bytes) -> SignedCommit:
    """Parse `commit.json`. Raises FormatError, LimitError."""
    _within_limit(data)
    try:
        plain = _plain_decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"commit.json is malformed: {error}") from None
    canonical.check_canonical(data, plain, "commit.json")
    signed = _parse(
        canonical.unb64(plain.k, "commit.json"), canonical.unb64(plain.s, "a commit's signature", 64)
    )
    if signed.commit.ek:
        raise FormatError(f"a plain commit names the key {signed.commit.ek}")
    return signed


def _within_limit(data: bytes) -> bytes:
    if len(data) > MAX_COMMIT:
        raise LimitError(f"a commit has {len(data)} bytes, at most {MAX_COMMIT} are allowed")
    return data


def _parse(text: bytes, signature: bytes) -> SignedCommit:
    try:
        commit = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"a commit is malformed: {error}") from None
    canonical.check_canonical(text, commit, "a commit")
    if commit.v != 1:
        raise FormatError(f"a commit has format version {commit.v}; this program knows version 1")
    good = (
        _is_id(commit.dev)
        and (not commit.ek or _is_id(commit.ek))
        and _is_id(commit.h)
        and _is_hash(commit.ring)
        and _is_hash(commit.state)
        and _is_tag(commit.vault)
        and 1 <= commit.c <= canonical.MAX_INT
        and all(map(_is_hash, commit.prev))
        and commit.prev == sorted(set(commit.prev))
        and all(
            _is_id(dev)
            and 1 <= seen.n <= canonical.MAX_INT
            and _is_id(seen.r)
            and SIGNATURE.fullmatch(seen.s)
            for dev, seen in commit.ctx.items()
        )
    )
    if not good:
        raise FormatError("a commit has a field that the format does not allow")
    return SignedCommit(commit, text, signature)
