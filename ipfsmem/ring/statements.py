"""Encode, sign and verify the four kinds of ring statements (format section 4).

A statement from this module is well formed and signed by the key that it names; `authority` decides whether that key
had the right to make it.
"""

import hashlib
import itertools
import threading
from collections import OrderedDict
from functools import lru_cache
from typing import Final, Literal, NoReturn, TypeAlias

import msgspec

from ipfsmem import canonical
from ipfsmem.errors import FormatError, LimitError, SignatureError
from ipfsmem.seal.objects import MAX_EPOCH
from ipfsmem.seal.primitives import Signer25519, box_key_ok, public_key_ok, verify

Role: TypeAlias = Literal["admin", "writer", "reader"]
#: The kind of a member. Programs may rely on the kind, but not on a label.
Kind: TypeAlias = Literal["device", "agent", "wallet", "words"]

SLOT_BYTES: Final = 104
MAX_ROOTS: Final = 2
#: Maximum bytes of UTF-8 in a label; control characters are not allowed.
MAX_LABEL_BYTES: Final = 128
#: Maximum bytes of a payload: a statement must fit into a ring (format section 8).
MAX_PAYLOAD: Final = 1024 * 1024
#: Maximum number of an admin's statements that one revoke keeps.
MAX_KEEP: Final = 256

_SIGNED: Final = b"ipfsmem/v1/statement\x00"
_POSSESSION: Final = b"ipfsmem/v1/possession\x00"
#: Size in characters of the cache of verified statements: a few of the largest rings.
_CACHE_CHARACTERS: Final = 8 * 1024 * 1024
_ID: Final = 16
_HLC: Final = 16
_KEY: Final = 64
_HASH: Final = 64
_PERSON: Final = 16


class Genesis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names the root keys of a vault; signed by the first. The vault tag is a hash of that first key."""

    roots: tuple[str, ...]
    t: Literal["genesis"] = "genesis"
    v: Literal[1] = 1

    @property
    def by(self) -> str:
        """Return the signer: the first root's admin key, hex."""
        return self.roots[0]


class Epoch(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"for_": "for", "not_": "not", "while_": "while"},
):
    """Gives an epoch key to the families in `for_`, and names the older epoch keys that the signer has (`old`).

    It lists the removals that the signer knows: permanent ones (`not_`), and those valid as long as an admin's
    statements are (`while_`: admin's id -> ids). `of`: the admins that admitted the families in `for_`, without whose
    statements the epoch is invalid; empty for roots and members admitted by a root.
    """

    by: str
    ek: str
    epoch: int
    for_: tuple[str, ...]
    not_: tuple[str, ...]
    of: tuple[str, ...]
    old: tuple[str, ...]
    slots: tuple[str, ...]
    t: Literal["epoch"] = "epoch"
    v: Literal[1] = 1
    while_: dict[str, tuple[str, ...]] = {}

    @property
    def gone(self) -> frozenset[str]:
        """Return all ids listed as removed."""
        return frozenset(self.not_).union(*self.while_.values())


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Makes a key pair a member.

    Without `heir_of`: an enrolment by a root or an admin. With `heir_of` (equal to `by`): a successor, by which the
    enrolled key names a new id for its own device and abandons the id `was`; `under` is the hash of its enrolment.

    `own`: the new key's proof of possession. `person`: the member's person.
    """

    anchor: str | None
    box: str
    by: str
    heir_of: str | None
    id: str
    kind: Kind
    label: str
    own: str
    person: str
    role: Role
    sign: str
    since: str
    t: Literal["member"] = "member"
    under: str | None
    v: Literal[1] = 1
    was: str | None


class Revoke(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Removes the family of the enrolled key `sign` from the vault.

    `n`: the greatest accepted counter of each of its ids (0 if absent). `keep`: hashes of its statements that stay
    valid. `anchor`, `heirs` (its successors' keys), `person` and `rank` (0 admitted by a root, 1 by an admin)
    describe the family, since its own statements may be dropped.
    """

    anchor: str | None
    at: str
    by: str
    heirs: tuple[str, ...]
    keep: tuple[str, ...]
    n: dict[str, int]
    person: str
    rank: int
    sign: str
    t: Literal["revoke"] = "revoke"
    v: Literal[1] = 1

    @property
    def id(self) -> str:
        """Return the enrolled id of the removed family."""
        return id_of_hex(self.sign)


Body: TypeAlias = Genesis | Epoch | Member | Revoke
_KINDS: Final[dict[str, type[Genesis] | type[Epoch] | type[Member] | type[Revoke]]] = {
    "genesis": Genesis,
    "epoch": Epoch,
    "member": Member,
    "revoke": Revoke,
}


class Statement(msgspec.Struct, frozen=True):
    """A verified statement: payload bytes, signature, the payload's SHA-256 in hex, and the parsed body."""

    payload: bytes
    signature: bytes
    hash: str
    body: Body

    @property
    def public(self) -> bool:
        """Tell whether it belongs in the open part of the ring (genesis, epochs, enrolments of admins), not in the
        sealed body."""
        return isinstance(self.body, Genesis | Epoch) or (
            isinstance(self.body, Member) and self.body.role == "admin"
        )


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement as stored in keyring.json: base64url of payload and signature."""

    k: str
    s: str


def member_id(sign_public: bytes) -> str:
    """Return the id of a device or root: the first 16 hex digits of the SHA-256 of its Ed25519 public key."""
    return hashlib.sha256(sign_public).hexdigest()[:_ID]


@lru_cache(maxsize=4096)
def id_of_hex(sign_public: str) -> str:
    """`member_id` of a public key in hex."""
    return member_id(bytes.fromhex(sign_public))


def possession(
    signer: Signer25519,
    vault: bytes,
    *,
    box: bytes,
    anchor: bytes | None = None,
    heir_of: bytes | None = None,
) -> str:
    """Return the proof of possession of a key that shall be enrolled, or succeed `heir_of`.

    The proof binds box key and anchor, but not role, label or enroller. Without a proof, anyone could claim another
    member's key.
    """
    text = _possession(box.hex(), signer.public.hex(), _hex_of(anchor), _hex_of(heir_of))
    return canonical.b64(signer.sign(_POSSESSION + vault + text))


def check_possession(
    own: str, vault: bytes, *, box: str, sign: str, anchor: str | None, heir_of: str | None
) -> None:
    """Raise SignatureError unless `own` is the proof of possession of these keys (hex) for this vault."""
    signature = canonical.unb64(own, "the proof of a member's key", 64)
    text = _possession(box, sign, anchor, heir_of)
    if not verify(bytes.fromhex(sign), _POSSESSION + vault + text, signature):
        raise SignatureError(f"no proof shows that the key {sign[:16]}… is its member's own")


def _possession(box: str, sign: str, anchor: str | None, heir_of: str | None) -> bytes:
    return canonical.encode({"anchor": anchor, "box": box, "heir_of": heir_of, "sign": sign})


def _hex_of(key: bytes | None) -> str | None:
    return None if key is None else key.hex()


def sign_statement(signer: Signer25519, body: Body, vault: bytes) -> Statement:
    """Sign `body` for the vault with this tag. Raises FormatError if malformed, SignatureError if `by` is not the
    signer."""
    payload = encode(body)
    if body.by != signer.public.hex():
        raise SignatureError(
            f"a statement of {body.by[:16]}… cannot be signed by {signer.public.hex()[:16]}…"
        )
    return _verified_statement(payload, signer.sign(_SIGNED + vault + payload), vault)


def encode(body: Body) -> bytes:
    """Return the canonical payload of a statement."""
    return canonical.encode(body)


def envelope(statement: Statement) -> Envelope:
    """Return the statement as stored in keyring.json."""
    return Envelope(canonical.b64(statement.payload), canonical.b64(statement.signature))


def open_envelope(k: str, s: str, vault: bytes) -> Statement:
    """Parse and verify a statement of the vault with this tag. Results are cached.

    Raises FormatError if malformed, LimitError if too long, SignatureError if the signature or the signer's key is
    invalid (format section 2.4).
    """
    if len(k) > MAX_PAYLOAD:
        raise LimitError(f"a ring statement has at most {MAX_PAYLOAD} bytes")
    known = _cache.get((vault, k, s))
    if known is not None:
        return known
    payload = canonical.unb64(k, "the payload of a ring statement")
    signature = canonical.unb64(s, "the signature of a ring statement", 64)
    statement = _verified_statement(payload, signature, vault)
    _cache.put((vault, k, s), statement)
    return statement


def restore_envelope(k: str, s: str, vault: bytes) -> Statement:
    """Parse a statement from this device's own protected state without verifying its signature again.

    Raises FormatError if malformed.
    """
    known = _cache.get((vault, k, s))
    if known is not None:
        return known
    payload, signature = canonical.unb64(k, "a kept statement"), canonical.unb64(s, "its signature", 64)
    statement = Statement(payload, signature, hashlib.sha256(payload).hexdigest(), _parse(payload))
    _cache.put((vault, k, s), statement)
    return statement


class _StatementCache:
    """LRU cache of verified statements, bounded in characters, so that published rings cannot fill a reader's memory."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._items: OrderedDict[tuple[bytes, str, str], Statement] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[bytes, str, str]) -> Statement | None:
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def put(self, key: tuple[bytes, str, str], statement: Statement) -> None:
        with self._lock:
            if key not in self._items:
                self._size += len(key[1]) * 2
            self._items[key] = statement
            while self._size > self._most:
                (_, old, _), _ = self._items.popitem(last=False)
                self._size -= len(old) * 2


_cache: Final = _StatementCache(_CACHE_CHARACTERS)


def _verified_statement(payload: bytes, signature: bytes, vault: bytes) -> Statement:
    body = decode(payload)
    by = bytes.fromhex(body.by)
    if not verify(by, _SIGNED + vault + payload, signature) or not _sign_key_ok(body.by):
        raise SignatureError(f"a {body.t} statement is not signed by {body.by}")
    if isinstance(body, Member):
        check_possession(
            body.own, vault, box=body.box, sign=body.sign, anchor=body.anchor, heir_of=body.heir_of
        )
    return Statement(payload, signature, hashlib.sha256(payload).hexdigest(), body)


def decode(payload: bytes) -> Body:
    """Parse a canonical payload of one of the four kinds, without unknown fields. Raises FormatError."""
    body = _parse(payload)
    _check(body)
    return body


def _parse(payload: bytes) -> Body:
    raw = canonical.decode(payload, "a ring statement")
    kind = raw.get("t") if isinstance(raw, dict) else None
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise FormatError("a ring statement has an unknown kind")
    try:
        body = msgspec.convert(raw, cls)
    except msgspec.ValidationError as error:
        raise FormatError(f"a {kind} statement is malformed: {error}") from None
    # `convert` fills in defaults, so a payload that omits fields is refused here.
    if len(raw) != len(cls.__struct_fields__):
        raise FormatError(f"a {kind} statement lacks a field")
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
    for name, items in (("for", body.for_), ("not", body.not_), ("of", body.of), ("old", body.old)):
        _ordered(items, "epoch", name)
        for item in items:
            _hex(item, _ID, "epoch", name)
    for one, items in body.while_.items():
        _hex(one, _ID, "epoch", "while")
        _ordered(items, "epoch", "while")
        if not items:
            _bad("epoch", f"has an empty list for {one} in while")
        for item in items:
            _hex(item, _ID, "epoch", "while")
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
    _hex(body.person, _PERSON, "member", "person")
    check_label(body.label)
    if body.heir_of is None:
        if body.was is not None or body.under is not None:
            _bad("member", "is an enrolment and names what only a successor has")
    else:
        _check_successor(body)


def _check_successor(body: Member) -> None:
    if body.heir_of != body.by or body.sign == body.by:
        _bad("member", "claims a successor for another key than the one that signs it")
    if body.was is None or body.under is None:
        _bad("member", "is a successor without a predecessor")
    _hex(body.was, _ID, "member", "was")
    _hex(body.under, _HASH, "member", "under")
    if body.anchor is not None or body.role == "admin" or body.kind not in ("device", "agent"):
        _bad("member", "is a successor and has an anchor, or is more than a device or agent that writes")


def _check_revoke(body: Revoke) -> None:
    _hex(body.by, _KEY, "revoke", "by")
    _check_sign_key(body.sign, "revoke", "sign")
    _hex(body.at, _HLC, "revoke", "at")
    if body.anchor is not None:
        _check_sign_key(body.anchor, "revoke", "anchor")
    _hex(body.person, _PERSON, "revoke", "person")
    _ordered(body.heirs, "revoke", "heirs")
    for key in body.heirs:
        _check_sign_key(key, "revoke", "heirs")
    if len(body.keep) > MAX_KEEP:
        _bad("revoke", f"keeps {len(body.keep)} statements; at most {MAX_KEEP} are allowed")
    _ordered(body.keep, "revoke", "keep")
    for item in body.keep:
        _hex(item, _HASH, "revoke", "keep")
    if body.rank not in (0, 1):
        _bad("revoke", f"has the rank {body.rank}")
    for one, count in body.n.items():
        _hex(one, _ID, "revoke", "n")
        if not 0 <= count <= canonical.MAX_INT:
            _bad("revoke", f"has the counter {count}")


def check_label(label: str, what: str = "a member's label") -> None:
    """Refuse a label that is empty, longer than 128 bytes of UTF-8, or has control or invisible characters.

    Such a label could be mistaken for that of another device. Raises FormatError.
    """
    try:
        size = len(label.encode())
    except UnicodeEncodeError:
        raise FormatError(f"{what} is not text") from None
    if not 1 <= size <= MAX_LABEL_BYTES:
        raise FormatError(f"{what} has 1 to {MAX_LABEL_BYTES} bytes of UTF-8, this has {size}")
    from ipfsmem.invisible_characters import (  # imported late: only new labels need it
        CONTROLS_AND_BREAKS,
        INVISIBLE,
    )

    invalid = CONTROLS_AND_BREAKS.search(label) or INVISIBLE.search(label)
    if invalid is not None:
        raise FormatError(f"{what} holds an invisible character, U+{ord(invalid[0][0]):04X}")


def _check_sign_key(text: str, kind: str, name: str) -> None:
    _hex(text, _KEY, kind, name)
    if not _sign_key_ok(text):
        raise SignatureError(f"the field {name} of a {kind} statement is not a valid Ed25519 key: {text}")


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
