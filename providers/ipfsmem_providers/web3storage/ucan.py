"""UCAN 0.9.1 as w3up services use it (github.com/storacha/specs): keys, tokens, delegations, messages, receipts.

A token is a DAG-CBOR block whose signature covers a JWT-like text that is made from it. Functions on values only: nothing is
sent, no clock is read, randomness is an argument. The service judges whether a chain of delegations holds; here only
faults that a user can mend are found (wrong audience, expired, too few abilities).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from nacl.signing import SigningKey

from ipfsmem.content.car import car_bytes, read_car
from ipfsmem.content.cid import (
    CAR,
    CID,
    DAG_CBOR,
    IDENTITY,
    base58_decode,
    base58_encode,
    read_varint,
    varint,
)
from ipfsmem.content.limits import Limits
from ipfsmem.errors import FormatError, IpfsmemError
from ipfsmem.provider.contract import Block
from ipfsmem_providers.web3storage import dag_cbor

MESSAGE: Final = "ucanto/message@7.0.0"
ARCHIVE: Final = "ucan@0.9.1"
VERSION: Final = "0.9.1"
_ED25519_PRIVATE: Final = b"\x80\x26"  # varint 0x1300
_ED25519_PUBLIC: Final = b"\xed\x01"
_DID_CORE: Final = b"\x9d\x1a"  # varint 0x0d1d: any other DID, as text
_EDDSA: Final = b"\xed\xa1\x03\x40"  # varint 0xd0ed, 64 bytes follow
_HEADER: Final = b'{"alg":"EdDSA","typ":"JWT","ucv":"0.9.1"}'
_MESSAGE_LIMITS: Final = Limits(blocks=20_000, total_bytes=32 * 1024 * 1024)


class Signer:
    """An Ed25519 key that signs tokens and receipts. Its repr holds the DID only."""

    def __init__(self, seed: bytes) -> None:
        """`seed` is the 32-byte private key."""
        self._key = SigningKey(seed)
        self.public = bytes(self._key.verify_key)
        self.did = "did:key:" + base58(_ED25519_PUBLIC + self.public)

    def __repr__(self) -> str:
        return f"<Signer {self.did}>"

    def sign(self, data: bytes) -> bytes:
        """Return a signature as used in tokens: varint 0xd0ed, varint 64, 64 bytes."""
        return _EDDSA + bytes(self._key.sign(data).signature)


def base58(data: bytes) -> str:
    """Encode as multibase base58btc: `z` and the digits."""
    return "z" + base58_encode(data)


def read_signer(data: bytes) -> Signer:
    """Return a signer from key bytes: varint 0x1300, 32-byte seed, 0xed 0x01, 32-byte public key. FormatError
    for others."""
    if len(data) != 68 or data[:2] != _ED25519_PRIVATE or data[34:36] != _ED25519_PUBLIC:
        raise FormatError("not the bytes of an Ed25519 key")
    signer = Signer(data[2:34])
    if signer.public != data[36:]:
        raise FormatError("the two halves of an Ed25519 key do not belong together")
    return signer


def parse_signer(text: str) -> Signer:
    """Return a signer from its text, `Mg...` (multibase base64 of the key bytes). FormatError, which does not
    repeat the text."""
    return read_signer(_multibase(text))


def did_bytes(did: str) -> bytes:
    """Return the form of a DID in tokens: the key of a `did:key`, for other methods the text behind `did:`."""
    if did.startswith("did:key:z"):
        try:
            data = base58_decode(did[9:], did)
        except FormatError:
            raise FormatError(f"{did!r} is not a DID") from None
        if data[:2] != _ED25519_PUBLIC or len(data) != 34:
            raise FormatError(f"{did!r} is not the DID of an Ed25519 key")
        return data
    if not did.startswith("did:") or len(did) < 7 or len(did) > 512:
        raise FormatError(f"{did!r} is not a DID")
    return _DID_CORE + did[4:].encode()


def did_text(data: bytes) -> str:
    """Return the text of a DID in a token."""
    if data[:2] == _DID_CORE:
        try:
            return "did:" + data[2:].decode()
        except UnicodeDecodeError:
            raise FormatError("a DID in a token is not text") from None
    return "did:key:" + base58(data)


# -- tokens --------------------------------------------------------------------------------------------------------


class Ability(msgspec.Struct, frozen=True):
    """A token's permission or request: an action, the DID of a resource, and details."""

    can: str
    resource: str
    details: Mapping[str, Any] = {}

    def covers(self, can: str, resource: str) -> bool:
        """Return whether delegating this allows an action on a resource (`*`, `upload/*`, `upload/add`)."""
        if self.resource not in (resource, "ucan:*"):
            return False
        return self.can in ("*", can) or (self.can.endswith("/*") and can.startswith(self.can[:-1]))


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A UCAN that was read; its signature is not verified."""

    cid: CID
    issuer: str
    audience: str
    abilities: tuple[Ability, ...]
    expires: int | float | None  #: seconds since 1970 UTC; None: never
    starts: int | float = 0
    proofs: tuple[CID, ...] = ()
    facts: tuple[Mapping[str, Any], ...] = ()


def issue(
    signer: Signer,
    audience: str,
    abilities: Sequence[Ability],
    *,
    expires: int | None,
    nonce: str = "",
    proofs: Sequence[CID] = (),
    facts: Sequence[Mapping[str, Any]] = (),
) -> Block:
    """Return a signed token as a block. An invocation is a token with one ability whose audience is the service.

    Give each invocation a new `nonce`: services answer one that they know with its old receipt.
    """
    attenuations = [
        {"can": item.can, "with": item.resource, **({"nb": dict(item.details)} if item.details else {})}
        for item in abilities
    ]
    extra: dict[str, Any] = {}
    if facts:
        extra["fct"] = [dict(fact) for fact in facts]
    if nonce:
        extra["nnc"] = nonce
    text = {"iss": signer.did, "aud": audience, "exp": expires, "att": attenuations, **extra}
    text["prf"] = [str(proof) for proof in proofs]
    payload = _b64url(_HEADER) + b"." + _b64url(dag_cbor.encode_json(text))
    fields = {"v": VERSION, "exp": expires, "att": attenuations, "prf": list(proofs), **extra}
    fields |= {"s": signer.sign(payload), "iss": did_bytes(signer.did), "aud": did_bytes(audience)}
    return _block(fields)


def read_token(cid: CID, data: bytes) -> Token:
    """Return a token from its block. FormatError for any other block."""
    fields = dag_cbor.decode(data)
    try:
        return Token(
            cid=cid,
            issuer=did_text(fields["iss"]),
            audience=did_text(fields["aud"]),
            abilities=tuple(
                Ability(str(item["can"]), str(item["with"]), _map(item.get("nb"))) for item in fields["att"]
            ),
            expires=_number(fields.get("exp")),
            starts=_number(fields.get("nbf")) or 0,
            proofs=tuple(proof for proof in fields.get("prf", ()) if isinstance(proof, CID)),
            facts=tuple(_map(fact) for fact in fields.get("fct") or ()),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FormatError(f"block {cid} is not a UCAN: {error!r}") from None


class Proof(msgspec.Struct, frozen=True):
    """A delegation with the blocks of all delegations that it builds on."""

    token: Token
    blocks: tuple[Block, ...]


def read_proof(text: str | bytes) -> Proof:
    """Return a delegation from its text: `m...` (a CID that contains the archive), the archive in base64, or
    the archive's bytes.

    Archives of older tools (a CAR whose last block is the delegation) are read too. FormatError, which does
    not repeat the text.
    """
    data = _proof_bytes(text.strip()) if isinstance(text, str) else text
    car = read_car(data, _MESSAGE_LIMITS)
    blocks = dict(car)
    for root in (*car.roots, *list(blocks)[-1:]):
        if root not in blocks or root.codec != DAG_CBOR:
            continue
        link = _map(dag_cbor.decode(blocks[root])).get(ARCHIVE)
        try:
            token = read_token(*(link, blocks[link]) if isinstance(link, CID) else (root, blocks[root]))
        except (FormatError, KeyError):
            continue
        rest = tuple((cid, block) for cid, block in blocks.items() if cid != root or cid == token.cid)
        return Proof(token, rest)
    raise FormatError("the archive holds no delegation")


def _proof_bytes(text: str) -> bytes:
    try:
        data = _multibase(text)
    except FormatError:
        data = _multibase("m" + text)
    prefix = b"\x01" + varint(CAR) + varint(IDENTITY)
    if data[: len(prefix)] != prefix:
        return data
    # Such a CID is longer than `decode_cid` accepts.
    size, start = read_varint(data, len(prefix))
    if len(data) - start != size:
        raise FormatError("a delegation is cut short")
    return data[start:]


def check_proof(proof: Proof, signer: Signer, space: str, needed: Collection[str], now: float) -> list[str]:
    """Return the faults of a delegation that its holder can see, in words; empty when usable."""
    token, wrong = proof.token, []
    if token.audience != signer.did:
        wrong.append(f"it is for {token.audience}, but the key is {signer.did}")
    if token.expires is not None and token.expires <= now:
        wrong.append("it has expired")
    if token.starts > now:
        wrong.append("it is not valid yet")
    lacking = [can for can in needed if not any(item.covers(can, space) for item in token.abilities)]
    if lacking:
        wrong.append(f"it does not allow {', '.join(sorted(lacking))} on {space}")
    return wrong


# -- messages and receipts -----------------------------------------------------------------------------------------


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a task by its service: `ok` or `error`, and the further tasks (`forks`) that it began."""

    ran: CID
    ok: Any = None
    error: Any = None
    forks: tuple[CID, ...] = ()


class AgentMessage:
    """The answer of a service: receipts by task, and all its blocks, which were checked against their CIDs."""

    def __init__(self, data: bytes) -> None:
        """Parse a message. Raises FormatError (or BlockError, LimitError)."""
        self.size = len(data)
        car = read_car(data, _MESSAGE_LIMITS)
        self.blocks: dict[CID, bytes] = dict(car)
        self.receipts: dict[CID, Receipt] = {}
        for root in car.roots:
            self._take(_map(_map(self._decoded(root)).get(MESSAGE)).get("report"))
        for _, token in self.tokens():
            for ability in token.abilities:  # receipts of other tasks come along inside these
                if ability.can == "ucan/conclude":
                    self._receipt(ability.details.get("receipt"))

    def tokens(self) -> Iterator[tuple[CID, Token]]:
        """Yield every block that is a token, by its CID."""
        for cid, data in self.blocks.items():
            if cid.codec == DAG_CBOR and VERSION.encode() in data:
                try:
                    yield cid, read_token(cid, data)
                except IpfsmemError:
                    continue

    def token(self, cid: CID) -> Token | None:
        """Return the token with this CID, None without one."""
        data = self.blocks.get(cid)
        return None if data is None else read_token(cid, data)

    def _take(self, report: Any) -> None:
        for link in _map(report).values():
            self._receipt(link)

    def _receipt(self, link: Any) -> None:
        outcome = _map(_map(self._decoded(link)).get("ocm"))
        ran, out = outcome.get("ran"), _map(outcome.get("out"))
        if not isinstance(ran, CID):
            return
        forks = _map(outcome.get("fx")).get("fork")
        links = tuple(fork for fork in forks if isinstance(fork, CID)) if isinstance(forks, list) else ()
        self.receipts[ran] = Receipt(ran=ran, ok=out.get("ok"), error=out.get("error"), forks=links)

    def _decoded(self, link: Any) -> Any:
        data = self.blocks.get(link) if isinstance(link, CID) else None
        return None if data is None else dag_cbor.decode(data)


def request(invocations: Sequence[CID], blocks: Iterable[Block]) -> bytes:
    """Return the body of a request that runs invocations; `blocks` are theirs and their proofs'."""
    root, data = _block({MESSAGE: {"execute": list(invocations)}})
    return car_bytes([root], [*blocks, (root, data)])


def make_receipt(signer: Signer, ran: CID) -> Block:
    """Return a signed receipt that a task was done."""
    outcome = {
        "ran": ran, "out": {"ok": {}}, "fx": {"fork": []}, "meta": {}, "iss": signer.did, "prf": [],
    }  # fmt: skip
    return _block({"ocm": outcome, "sig": signer.sign(dag_cbor.encode(outcome))})


# -- small things --------------------------------------------------------------------------------------------------


def _block(value: Any) -> Block:
    return dag_cbor.block_of(dag_cbor.encode(value))


def _b64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _multibase(text: str) -> bytes:
    """Return the bytes of a multibase text in base64 or base64url. FormatError for other bases."""
    body = text[1:].rstrip("=")
    try:
        if text[:1] in ("m", "M"):
            return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        if text[:1] in ("u", "U"):
            return base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise FormatError("the text is damaged: not base64") from None
    raise FormatError("the text is not in base64 multibase (it begins with M, m or u)")
