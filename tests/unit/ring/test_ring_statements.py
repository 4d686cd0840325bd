"""Statements: the strict form of each kind, signatures, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ipfsmem import canonical
from ipfsmem.errors import FormatError, IpfsmemError, LimitError, SignatureError
from ipfsmem.ring.statements import (
    MAX_PAYLOAD,
    Epoch,
    Genesis,
    Member,
    Revoke,
    decode,
    encode,
    envelope,
    open_envelope,
    sign_statement,
)
from tests.support.ring_lab import OWNER, ROOT, VAULT, hlc, party, says_heir, says_member, second_wallet

WHO = party("somebody")
GENESIS = Genesis((ROOT.key,))
MEMBER = says_member(ROOT, WHO).body
HEIR = says_heir(ROOT, WHO, "ab" * 32).body
EPOCH = Epoch(ROOT.key, "00" * 8, 1, (ROOT.id,), (), ("22" * 8,), ("11" * 8,), ())
REVOKE = Revoke(None, hlc(1), ROOT.key, (party("heir").key,), (), {WHO.id: 3}, "12" * 8, 0, WHO.key)
BODIES = [GENESIS, MEMBER, HEIR, EPOCH, REVOKE]
NAMES = ["genesis", "member", "successor", "epoch", "revoke"]
assert isinstance(MEMBER, Member) and isinstance(HEIR, Member)
#: An Ed25519 point of order 8, and y = 2^255 - 18, a second encoding of 1.
SMALL_ORDER = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
NOT_CANONICAL = "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_statement_round_trips(body: Any) -> None:
    made = sign_statement(ROOT.signer, body, VAULT)
    assert decode(made.payload) == body
    assert canonical.encode(canonical.decode(made.payload, "it")) == made.payload
    assert open_envelope(envelope(made).k, envelope(made).s, VAULT) == made
    assert made.public == (body.t in ("genesis", "epoch"))


def test_payload_of_a_member_equals_the_format() -> None:
    expected = (
        f'{{"anchor":null,"box":"{MEMBER.box}","by":"{ROOT.key}","heir_of":null,"id":"{WHO.id}","kind":"device",'
        f'"label":"somebody","own":"{WHO.device.own}","person":"{OWNER}","role":"writer","sign":"{WHO.key}",'
        f'"since":"{hlc(1)}","t":"member","under":null,"v":1,"was":null}}'
    )
    assert encode(MEMBER).decode() == expected


BAD: list[tuple[str, Any, dict[str, Any]]] = [
    ("no roots", GENESIS, {"roots": []}),
    ("three roots", GENESIS, {"roots": [ROOT.key, WHO.key, party("x").key]}),
    ("a root twice", GENESIS, {"roots": [ROOT.key, ROOT.key]}),
    ("a short root", GENESIS, {"roots": [ROOT.key[:-2]]}),
    ("version 2", GENESIS, {"v": 2}),
    ("unknown kind", GENESIS, {"t": "prophecy"}),
    ("unknown field", GENESIS, {"x": 1}),
    ("kind is a number", GENESIS, {"t": 1}),
    ("another id", MEMBER, {"id": ROOT.id}),
    ("upper-case hex", MEMBER, {"box": MEMBER.box.upper()}),
    ("not hex", MEMBER, {"sign": "g" * 64}),
    ("a box key of small order", MEMBER, {"box": "00" * 32}),
    ("an owner", MEMBER, {"role": "owner"}),
    ("no label", MEMBER, {"label": ""}),
    ("a long label", MEMBER, {"label": "é" * 65}),
    ("a label of two lines", MEMBER, {"label": "a\nb"}),
    ("a label with C1 control", MEMBER, {"label": "a\x85b"}),
    # A label that reads as another, or that has invisible text for a model.
    ("a label that turns its direction", MEMBER, {"label": "a\u202eb"}),
    ("a label with a line separator", MEMBER, {"label": "a\u2028b"}),
    ("a label of nothing that is seen", MEMBER, {"label": "\u200b"}),
    ("a label with tag characters", MEMBER, {"label": "phone\U000e0041"}),
    ("a label that is null", MEMBER, {"label": None}),
    ("a short since", MEMBER, {"since": "00"}),
    ("since as a number", MEMBER, {"since": 5}),
    ("epoch 0", EPOCH, {"epoch": 0}),
    ("epoch beyond 32 bits", EPOCH, {"epoch": 2**32}),
    ("epoch as true", EPOCH, {"epoch": True}),
    ("for out of order", EPOCH, {"for": ["ff" * 8, "00" * 8]}),
    ("for twice", EPOCH, {"for": ["00" * 8, "00" * 8]}),
    ("a long id", EPOCH, {"not": ["00" * 9]}),
    ("a slot of 103 bytes", EPOCH, {"slots": [canonical.b64(bytes(103))]}),
    ("a slot with padding", EPOCH, {"slots": [canonical.b64(bytes(104)) + "="]}),
    ("an unknown kind", MEMBER, {"kind": "robot"}),
    ("a short person", MEMBER, {"person": "12"}),
    ("a person in capitals", MEMBER, {"person": "AB" * 8}),
    ("an enrolment that gives up an id", MEMBER, {"was": "00" * 8}),
    ("an enrolment under another", MEMBER, {"under": "00" * 32}),
    ("an heir of somebody else than its signer", HEIR, {"heir_of": WHO.key}),
    ("an heir of itself", HEIR, {"sign": ROOT.key, "id": ROOT.id}),
    ("a successor of nobody", HEIR, {"was": None}),
    ("a successor under nothing", HEIR, {"under": None}),
    ("a successor that is an admin", HEIR, {"role": "admin"}),
    ("a successor with an anchor", HEIR, {"anchor": WHO.key}),
    ("a successor that is a wallet", HEIR, {"kind": "wallet"}),
    ("successors that are words", HEIR, {"kind": "words"}),
    ("old out of order", EPOCH, {"old": ["ff" * 8, "00" * 8]}),
    ("of out of order", EPOCH, {"of": ["ff" * 8, "00" * 8]}),
    ("a long id in of", EPOCH, {"of": ["00" * 9]}),
    ("of nobody at all", EPOCH, {"of": None}),
    ("a long id in old", EPOCH, {"old": ["00" * 9]}),
    ("a negative counter", REVOKE, {"n": {WHO.id: -1}}),
    ("a counter beyond 2^53", REVOKE, {"n": {WHO.id: 2**53}}),
    ("a counter beyond 64 bits", REVOKE, {"n": {WHO.id: 2**70}}),
    ("a counter of no id", REVOKE, {"n": {"laptop": 1}}),
    ("one counter for all", REVOKE, {"n": 3}),
    ("a revoke of nobody", REVOKE, {"person": ""}),
    ("heirs out of order", REVOKE, {"heirs": sorted([WHO.key, ROOT.key])[::-1]}),
    ("257 statements that stand", REVOKE, {"keep": [f"{n:064x}" for n in range(257)]}),
    ("a short hash in keep", REVOKE, {"keep": ["00" * 31]}),
    ("keep out of order", REVOKE, {"keep": ["ff" * 32, "00" * 32]}),
]


@pytest.mark.parametrize(("name", "body", "change"), BAD, ids=[name for name, _, _ in BAD])
def test_malformed_statement_is_refused(name: str, body: Any, change: dict[str, Any]) -> None:
    raw = canonical.decode(encode(body), "it") | change
    data = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    with pytest.raises(FormatError):
        decode(data)


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_each_field_of_a_statement_is_required(body: Any) -> None:
    raw = canonical.decode(encode(body), "it")
    for field in raw:
        with pytest.raises(FormatError):
            decode(canonical.encode({key: value for key, value in raw.items() if key != field}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"t":"genesis"}',
        b"\xff",
        b"[" * 100_000,
        b'{"t": "genesis"}',
        b'{"t":["genesis"]}',
    ],
)
def test_invalid_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode(data)


@pytest.mark.parametrize("key", [SMALL_ORDER, NOT_CANONICAL, "00" * 32])
@pytest.mark.parametrize("field", ["sign", "anchor"])
def test_improper_public_keys_are_refused(key: str, field: str) -> None:
    raw = canonical.decode(encode(MEMBER), "it") | {field: key}
    with pytest.raises(SignatureError):
        decode(canonical.encode(raw))
    with pytest.raises(SignatureError):
        decode(canonical.encode({"roots": [key], "t": "genesis", "v": 1}))


def test_wrong_signatures_are_refused() -> None:
    made = sign_statement(ROOT.signer, REVOKE, VAULT)
    sealed = envelope(made)
    with pytest.raises(SignatureError):
        sign_statement(WHO.signer, REVOKE, VAULT)
    other = canonical.b64(encode(msgspec.structs.replace(REVOKE, n={WHO.id: 4})))
    with pytest.raises(SignatureError):
        open_envelope(other, sealed.s, VAULT)
    # A signature over the bare payload, without the purpose before it, is not valid.
    with pytest.raises(SignatureError):
        open_envelope(sealed.k, canonical.b64(ROOT.signer.sign(made.payload)), VAULT)
    # Nor is one for another vault.
    with pytest.raises(SignatureError):
        open_envelope(sealed.k, sealed.s, bytes(16))
    for k, s in (
        (sealed.k, sealed.s[:-1]),
        (sealed.k + "=", sealed.s),
        ("*" + sealed.k, sealed.s),
        (sealed.k, ""),
    ):
        with pytest.raises(FormatError):
            open_envelope(k, s, VAULT)
    with pytest.raises(LimitError):
        open_envelope("A" * (MAX_PAYLOAD + 1), sealed.s, VAULT)


def test_flipped_bit_of_a_statement_is_refused() -> None:
    made = sign_statement(ROOT.signer, MEMBER, VAULT)
    for at in range(0, len(made.payload), 7):
        bad = bytearray(made.payload)
        bad[at] ^= 1
        with pytest.raises(IpfsmemError):
            open_envelope(canonical.b64(bytes(bad)), canonical.b64(made.signature), VAULT)


def test_enrolment_of_an_admin_is_public() -> None:
    """A device that cannot open the body must know whose epochs count."""
    assert says_member(ROOT, second_wallet("other"), "admin").public
    assert not says_member(ROOT, second_wallet("other"), "writer").public


def test_key_is_enrolled_only_with_its_own_signature() -> None:
    """It covers the box key, the anchor and the family."""
    wallet = second_wallet("wallet")
    other = says_member(ROOT, wallet).body
    assert isinstance(other, Member)
    lies: list[tuple[Any, dict[str, Any]]] = [
        (MEMBER, {"own": "A" * 86}),
        (MEMBER, {"own": HEIR.own}),
        (MEMBER, {"box": other.box}),
        (MEMBER, {"anchor": other.anchor}),
        (other, {"anchor": None}),
        (HEIR, {"own": MEMBER.own}),
        (HEIR, {"box": MEMBER.box}),
    ]
    for body, change in lies:
        with pytest.raises(SignatureError, match="own"):
            sign_statement(ROOT.signer, msgspec.structs.replace(body, **change), VAULT)
    thief = party("thief")
    stolen = msgspec.structs.replace(HEIR, by=thief.key, heir_of=thief.key)
    with pytest.raises(SignatureError, match="own"):
        sign_statement(thief.signer, stolen, VAULT)
    # Fields that it does not bind may change: role, label, enroller.
    for change in ({"role": "reader"}, {"label": "renamed"}, {"by": thief.key}, {"person": "12" * 8}):
        body = msgspec.structs.replace(MEMBER, **change)
        sign_statement(thief.signer if "by" in change else ROOT.signer, body, VAULT)
    with pytest.raises(FormatError):
        sign_statement(ROOT.signer, msgspec.structs.replace(MEMBER, own="AA"), VAULT)
