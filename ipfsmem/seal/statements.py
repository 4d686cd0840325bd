"""The four kinds of signed statements that a key ring is made of: their exact form, their hash, their signature.

Format section 4. A statement that this module hands out is well formed and signed by the key it names; whether that
key had any right to say it is decided in `authority`, and nowhere here. Nothing in this module reads a clock, draws
randomness or remembers a secret.
"""

from __future__ import annotations

import hashlib
import itertools
from functools import lru_cache
from typing import Final, Literal, NoReturn, TypeAlias

import msgspec

from ipfsmem import canonical
from ipfsmem.errors import FormatError, LimitError, SignatureError
from ipfsmem.seal.objects import MAX_EPOCH
from ipfsmem.seal.primitives import Signer25519, box_key_ok, public_key_ok, verify

Role: TypeAlias = Literal["admin", "writer", "reader"]

VERSION: Final = 1
SLOT_BYTES: Final = 104
MAX_ROOTS: Final = 2
#: A label is text for people: at most this many bytes of UTF-8, no control characters.
MAX_LABEL_BYTES: Final = 128
#: A statement cannot be longer than the ring that holds it (format section 8).
MAX_PAYLOAD: Final = 256 * 1024

_SIGNED: Final = b"ipfsmem/v1/statement\x00"
_ID: Final = 16
_HLC: Final = 16
_KEY: Final = 64
_HASH: Final = 64


class Genesis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names the root keys of a vault; signed by the first. The vault tag is a hash of that first key."""

    roots: tuple[str, ...]
    t: Literal["genesis"] = "genesis"
    v: Literal[1] = 1

    @property
    def by(self) -> str:
        """The signer: the first root's admin key, hex."""
        return self.roots[0]


class Epoch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"for_": "for", "not_": "not"}):
    """Gives an epoch key to the ids in `for_`, and says whom its maker knew to be revoked (`not_`)."""

    by: str
    ek: str
    epoch: int
    for_: tuple[str, ...]
    not_: tuple[str, ...]
    slots: tuple[str, ...]
    t: Literal["epoch"] = "epoch"
    v: Literal[1] = 1


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Enrols a key pair under a role: by a root, an admin, or (as a successor) by the member itself."""

    anchor: str | None
    box: str
    by: str
    id: str
    label: str
    role: Role
    sign: str
    since: str
    t: Literal["member"] = "member"
    v: Literal[1] = 1


class Revoke(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ends the membership of `id`: its values up to counter `n` and its statements in `keep` were accepted."""

    at: str
    by: str
    id: str
    keep: tuple[str, ...]
    n: int
    t: Literal["revoke"] = "revoke"
    v: Literal[1] = 1


Body: TypeAlias = Genesis | Epoch | Member | Revoke
_KINDS: Final[dict[str, type[Genesis] | type[Epoch] | type[Member] | type[Revoke]]] = {
    "genesis": Genesis,
    "epoch": Epoch,
    "member": Member,
    "revoke": Revoke,
}


class Statement(msgspec.Struct, frozen=True):
    """A verified statement: payload bytes, signature, the payload's SHA-256 in hex, and what it says."""

    payload: bytes
    signature: bytes
    hash: str
    body: Body

    @property
    def public(self) -> bool:
        """Whether it stands in the open part of the ring (genesis and epochs) or in its sealed body."""
        return isinstance(self.body, Genesis | Epoch)


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement as it stands in keyring.json: base64url of payload and signature."""

    k: str
    s: str


def member_id(sign_public: bytes) -> str:
    """The id of a device or root: the first 16 hex digits of SHA-256 of its Ed25519 public key."""
    return hashlib.sha256(sign_public).hexdigest()[:_ID]


@lru_cache(maxsize=4096)
def id_of_hex(sign_public: str) -> str:
    """`member_id` of a public key in hex."""
    return member_id(bytes.fromhex(sign_public))


def make(signer: Signer25519, body: Body, vault: bytes) -> Statement:
    """Sign `body` for the vault with this tag. Raises FormatError when it is not well formed, SignatureError when it names another signer."""
    payload = encode(body)
    if body.by != signer.public.hex():
        raise SignatureError(
            f"a statement of {body.by[:16]}… cannot be signed by {signer.public.hex()[:16]}…"
        )
    return _checked(payload, signer.sign(_SIGNED + vault + payload), vault)


def encode(body: Body) -> bytes:
    """The canonical payload of a statement."""
    return canonical.encode(body)


def envelope(statement: Statement) -> Envelope:
    """The statement as keyring.json carries it."""
    return Envelope(canonical.b64(statement.payload), canonical.b64(statement.signature))


@lru_cache(maxsize=4096)
def open_envelope(k: str, s: str, vault: bytes) -> Statement:
    """Parse and verify a statement of the vault with this tag; remembered, so that a ring seen before costs nothing to read again.

    Raises FormatError for what is not a well-formed statement, LimitError for one that is too long, SignatureError
    when the signature is not the signer's or the signer's key is not a proper one (format section 2.4).
    """
    if len(k) > MAX_PAYLOAD:
        raise LimitError(f"a ring statement has at most {MAX_PAYLOAD} bytes")
    payload = canonical.unb64(k, "the payload of a ring statement")
    signature = canonical.unb64(s, "the signature of a ring statement", 64)
    return _checked(payload, signature, vault)


def _checked(payload: bytes, signature: bytes, vault: bytes) -> Statement:
    body = decode(payload)
    by = bytes.fromhex(body.by)
    if not verify(by, _SIGNED + vault + payload, signature) or not _sign_key_ok(body.by):
        raise SignatureError(f"a {body.t} statement is not signed by {body.by}")
    return Statement(payload, signature, hashlib.sha256(payload).hexdigest(), body)


def decode(payload: bytes) -> Body:
    """Read a payload strictly: one of the four kinds, no unknown field, canonical, every part of the right form."""
    raw = canonical.decode(payload, "a ring statement")
    kind = raw.get("t") if isinstance(raw, dict) else None
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise FormatError("a ring statement is of no known kind")
    try:
        body = msgspec.convert(raw, cls)
    except msgspec.ValidationError as error:
        raise FormatError(f"a {kind} statement is malformed: {error}") from None
    # Defaults are filled in by convert: a payload without them reads the same and must not pass.
    if len(raw) != len(cls.__struct_fields__):
        raise FormatError(f"a {kind} statement lacks a field")
    _check(body)
    return body


def _check(body: Body) -> None:
    match body:
        case Genesis():
            _check_genesis(body)
        case Epoch():
            _check_epoch(body)
        case Member():
            _check_member(body)
        case Revoke():
            _check_revoke(body)


def _check_genesis(body: Genesis) -> None:
    if not 1 <= len(body.roots) <= MAX_ROOTS or len(set(body.roots)) != len(body.roots):
        _bad("genesis", f"has {len(body.roots)} roots; one or two different ones are allowed")
    for root in body.roots:
        _check_sign_key(root, "genesis", "roots")


def _check_epoch(body: Epoch) -> None:
    _hex(body.by, _KEY, "epoch", "by")
    _hex(body.ek, _ID, "epoch", "ek")
    if not 1 <= body.epoch <= MAX_EPOCH:
        _bad("epoch", f"has number {body.epoch}, which is not in 1 to {MAX_EPOCH}")
    for name, items in (("for", body.for_), ("not", body.not_)):
        _ordered(items, "epoch", name)
        for item in items:
            _hex(item, _ID, "epoch", name)
    _ordered(body.slots, "epoch", "slots")
    for slot in body.slots:
        canonical.unb64(slot, "a key slot", SLOT_BYTES)


def _check_member(body: Member) -> None:
    _hex(body.by, _KEY, "member", "by")
    _check_sign_key(body.sign, "member", "sign")
    _hex(body.box, _KEY, "member", "box")
    if not _box_key_ok(body.box):
        _bad("member", f"has the box key {body.box}, a point of small order")
    if body.anchor is not None:
        _check_sign_key(body.anchor, "member", "anchor")
    if body.id != id_of_hex(body.sign):
        _bad("member", f"names {body.id}, which is not the id of its key")
    _hex(body.since, _HLC, "member", "since")
    check_label(body.label)


def _check_revoke(body: Revoke) -> None:
    _hex(body.by, _KEY, "revoke", "by")
    _hex(body.id, _ID, "revoke", "id")
    _hex(body.at, _HLC, "revoke", "at")
    _ordered(body.keep, "revoke", "keep")
    for item in body.keep:
        _hex(item, _HASH, "revoke", "keep")
    if not 0 <= body.n <= canonical.MAX_INT:
        _bad("revoke", f"has the counter {body.n}")


def check_label(label: str, what: str = "a member's label") -> None:
    """Refuse a label that is empty, longer than 128 bytes of UTF-8, or holds a control character."""
    try:
        size = len(label.encode())
    except UnicodeEncodeError:
        raise FormatError(f"{what} is not text") from None
    if not 1 <= size <= MAX_LABEL_BYTES:
        raise FormatError(f"{what} has 1 to {MAX_LABEL_BYTES} bytes of UTF-8, this has {size}")
    if any(char < " " or "\x7f" <= char <= "\x9f" for char in label):
        raise FormatError(f"{what} holds a control character")


def _check_sign_key(text: str, kind: str, name: str) -> None:
    _hex(text, _KEY, kind, name)
    if not _sign_key_ok(text):
        raise SignatureError(f"the field {name} of a {kind} statement is not a proper Ed25519 key: {text}")


@lru_cache(maxsize=4096)
def _sign_key_ok(text: str) -> bool:
    return public_key_ok(bytes.fromhex(text))


@lru_cache(maxsize=4096)
def _box_key_ok(text: str) -> bool:
    return box_key_ok(bytes.fromhex(text))


def _hex(text: str, digits: int, kind: str, name: str) -> None:
    if len(text) != digits or text.strip("0123456789abcdef"):
        _bad(kind, f"has a field {name} that is not {digits} lower-case hex digits")


def _ordered(items: tuple[str, ...], kind: str, name: str) -> None:
    if any(a >= b for a, b in itertools.pairwise(items)):
        _bad(kind, f"has a list {name} that is not sorted, or holds something twice")


def _bad(kind: str, what: str) -> NoReturn:
    raise FormatError(f"a {kind} statement {what}")
