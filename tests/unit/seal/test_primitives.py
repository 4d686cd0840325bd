"""HKDF, Ed25519, sealed boxes and Argon2id equal the RFCs, the vectors and other libraries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import FormatError, LimitError, UsageError
from ipfsmem.seal import primitives as p

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/ed25519.json").read_text())
BOXES = json.loads((Path(__file__).parents[3] / "fixtures/vectors/objects.json").read_text())["boxes"]


def named(rows: list[dict]) -> list:
    return [pytest.param(row, id=row["name"]) for row in rows]


@pytest.mark.parametrize(
    ("ikm", "salt", "info", "n", "okm"),
    [  # RFC 5869, appendix A.1 to A.3
        (
            "0b" * 22,
            "000102030405060708090a0b0c",
            "f0f1f2f3f4f5f6f7f8f9",
            42,
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            bytes(range(0x50)).hex(),
            bytes(range(0x60, 0xB0)).hex(),
            bytes(range(0xB0, 0x100)).hex(),
            82,
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
        ),
        (
            "0b" * 22,
            "",
            "",
            42,
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        ),
    ],
)
def test_hkdf_equals_rfc_5869(ikm, salt, info, n, okm):
    prk = p.hkdf_extract(bytes.fromhex(salt), bytes.fromhex(ikm))
    assert p.hkdf_expand(prk, bytes.fromhex(info), n).hex() == okm


@settings(max_examples=50, deadline=None)
@given(
    st.binary(max_size=80), st.binary(min_size=1, max_size=200), st.binary(max_size=200), st.integers(1, 300)
)
def test_hkdf_equals_cryptography(salt, ikm, info, n):
    prk = p.hkdf_extract(salt, ikm)
    assert p.hkdf_expand(prk, info, n) == HKDFExpand(hashes.SHA256(), n, info).derive(prk)
    assert p.hkdf_expand(prk, info, n) == HKDF(hashes.SHA256(), n, salt, info).derive(ikm)


def test_hkdf_output_length_is_limited():
    prk = bytes(32)
    assert p.hkdf_expand(prk, b"", 0) == b""
    assert len(p.hkdf_expand(prk, b"", 8160)) == 8160
    for n in (-1, 8161):
        with pytest.raises(UsageError):
            p.hkdf_expand(prk, b"", n)


@pytest.mark.parametrize("row", VECTORS["seeds"])
def test_ed25519_equals_known_values(row):
    seed, message = bytes.fromhex(row["seed"]), bytes.fromhex(row["message"])
    signer = p.Signer25519(seed)
    assert signer.public.hex() == row["public"]
    assert signer.sign(message).hex() == row["signature"]


def test_ed25519_device_key_equals_the_example_of_the_format():
    assert (
        p.Signer25519(b"\1" * 32).public.hex()
        == "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
    )


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=300))
def test_ed25519_and_x25519_equal_cryptography(seed, message):
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert p.Signer25519(seed).public == public
    assert p.Signer25519(seed).sign(message) == key.sign(message)
    assert p.verify(public, message, key.sign(message))
    assert p.public_key_ok(public)
    box = X25519PrivateKey.from_private_bytes(seed).public_key()
    assert p.x25519_public(seed) == box.public_bytes(Encoding.Raw, PublicFormat.Raw)


@pytest.mark.parametrize("row", named(VECTORS["signatures"]))
def test_signature_verdicts_equal_the_vectors(row):
    args = (bytes.fromhex(row[name]) for name in ("public", "message", "signature"))
    assert p.verify(*args) is row["valid"]


def test_verdict_table_covers_what_libraries_disagree_on():
    verdicts = {(row["category"], row["valid"]) for row in VECTORS["signatures"]}
    for category in (
        "S",
        "small order A",
        "small order R",
        "mixed order R",
        "noncanonical A",
        "noncanonical R",
    ):
        assert (category, False) in verdicts
        assert (category, True) not in verdicts
    assert ("mixed order A", True) in verdicts
    assert ("mixed order A", False) in verdicts


@pytest.mark.parametrize("row", named(VECTORS["signatures"]))
def test_other_libraries_give_the_same_verdicts_under_the_rule(row):
    """Format 2.4: a lenient verifier (here OpenSSL, elsewhere WebCrypto) and two lists give libsodium's verdict."""
    public, message, signature = (bytes.fromhex(row[name]) for name in ("public", "message", "signature"))
    tiny = {
        bytes.fromhex(r["signature"])[:32] for r in VECTORS["signatures"] if r["category"] == "small order R"
    }
    assert len(tiny) == 14
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        lenient = False
    else:
        lenient = True
    assert (lenient and public not in tiny and signature[:32] not in tiny) is row["valid"]


@pytest.mark.parametrize("row", named(VECTORS["keys"]))
def test_public_key_checks_equal_the_vectors(row):
    assert p.public_key_ok(bytes.fromhex(row["public"])) is row["ok"]


@pytest.mark.parametrize("row", named(VECTORS["box_keys"]))
def test_box_key_checks_equal_the_vectors(row):
    key = bytes.fromhex(row["public"])
    assert p.box_key_ok(key) is row["ok"]
    if row["ok"]:
        assert len(p.box_seal(b"x", key)) == 1 + p.BOX_OVERHEAD
    else:
        with pytest.raises(FormatError):
            p.box_seal(b"x", key)


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_keys_of_wrong_size_are_refused(size):
    key = bytes(size)
    assert not p.verify(key, b"", bytes(64))
    assert not p.public_key_ok(key)
    assert not p.box_key_ok(key)
    with pytest.raises(UsageError):
        p.Signer25519(key)
    with pytest.raises(UsageError):
        p.x25519_public(key)
    with pytest.raises(FormatError):
        p.box_seal(b"", key)


@pytest.mark.parametrize("size", [0, 63, 65])
def test_signatures_of_wrong_size_are_refused(size):
    signer = p.Signer25519(b"\1" * 32)
    assert not p.verify(signer.public, b"", (signer.sign(b"") + b"\0")[:size])


@pytest.mark.parametrize("cut", [0, 1, 63, 65, 70])
def test_boundary_of_signature_and_message_is_fixed(cut):
    signer = p.Signer25519(b"\1" * 32)
    whole = signer.sign(b"message") + b"message"
    assert p.verify(signer.public, whole[64:], whole[:64])
    assert not p.verify(signer.public, whole[cut:], whole[:cut])


@pytest.mark.parametrize("row", named(BOXES))
def test_boxes_open_as_in_the_vectors(row):
    opened = p.box_open(*(bytes.fromhex(row[name]) for name in ("box", "public", "secret")))
    assert opened == (None if row["opens"] is None else bytes.fromhex(row["opens"]))


def test_box_round_trip_is_anonymous():
    secret = b"\7" * 32
    public = p.x25519_public(secret)
    one, two = p.box_seal(b"data", public), p.box_seal(b"data", public)
    assert one != two
    assert p.box_open(one, public, secret) == p.box_open(two, public, secret) == b"data"
    assert p.box_open(p.box_seal(b"", public), public, secret) == b""


def test_argon2id_equals_cryptography():
    salt = bytes(range(16))
    ours = p.argon2id(b"password", salt, memory_kib=1024, passes=2)
    assert ours == Argon2id(salt=salt, length=32, iterations=2, lanes=1, memory_cost=1024).derive(b"password")


def test_argon2id_refuses_invalid_parameters():
    with pytest.raises(UsageError):
        p.argon2id(b"", bytes(15))
    with pytest.raises(UsageError):
        p.argon2id(b"", bytes(16), passes=0)
    with pytest.raises((UsageError, LimitError)):
        p.argon2id(b"", bytes(16), memory_kib=2**40)


def test_signer_hides_its_key():
    seed = bytes(range(32))
    assert seed.hex() not in repr(p.Signer25519(seed))
