"""The message that a wallet signs for its keys, and the checks of its signatures."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from eth_keys.backends import CoinCurveECCBackend, NativeECCBackend

from ipfsmem import errors
from ipfsmem.wallet import message, signers
from tests.support.extras import need_extra

V = json.loads((Path(__file__).parents[3] / "fixtures/vectors/wallet.json").read_text())
ACCOUNT = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")


def named(rows: list[dict]) -> list:
    return [pytest.param(row, id=row["name"]) for row in rows]


class Answers:
    """A wallet that gives these answers in order."""

    def __init__(self, *answers: bytes) -> None:
        self.address = ACCOUNT
        self.left = list(answers)
        self.asked: list[bytes] = []

    def sign_message(self, text: bytes) -> bytes:
        self.asked.append(text)
        return self.left.pop(0)


def test_key_request_equals_the_example_of_the_format():
    text = message.key_request(ACCOUNT, "default", 1)
    assert len(text) == 434
    assert (
        hashlib.sha256(text).hexdigest() == "94344f0f97a9ab77f58b0554ee841905cb62a4d54eece4467db9015d983e9f24"
    )
    signature = signers.RawKeySigner(bytes.fromhex(V["private_keys"][0])).sign_message(text)
    assert signature.hex() == (
        "2cd11952b00cbbd3f81bcf944e2b9633f1e0aaffbfe026f455fb4c164bc823e1"
        "576b1992eecde3712bd6f3969acbc767ea5cc06c4aedac6853194ce1a611621e1c"
    )


@pytest.mark.parametrize("row", V["key_requests"])
def test_key_requests_equal_the_vectors(row):
    text = message.key_request(bytes.fromhex(row["address"]), row["vault"], row["key_number"])
    assert text.decode("ascii") == row["text"]
    assert len(text) == row["bytes"]
    assert hashlib.sha256(text).hexdigest() == row["sha256"]
    assert message.signing_hash(text).hex() == row["eip191_keccak256"]


@pytest.mark.parametrize("row", V["refused_requests"])
def test_invalid_key_requests_are_refused(row):
    with pytest.raises(errors.UsageError):
        message.key_request(ACCOUNT, row["vault"], row["key_number"])


@pytest.mark.parametrize("size", [0, 19, 21, 32])
def test_address_of_wrong_size_is_refused(size):
    with pytest.raises(errors.UsageError):
        message.key_request(bytes(size), "default", 1)


@pytest.fixture(params=[CoinCurveECCBackend, NativeECCBackend], ids=["coincurve", "native"])
def backend(request, monkeypatch):
    """Both back ends of eth-keys: which one a user has depends on an extra."""
    if request.param is CoinCurveECCBackend:
        need_extra("fast", "coincurve")
    monkeypatch.setattr("eth_keys.datatypes.LazyBackend.get_backend", lambda *_: request.param())


@pytest.mark.parametrize("row", named(V["accepted"]))
def test_valid_signatures_are_normalised(row, backend):
    rs = message.normalise_signature(
        bytes.fromhex(row["signature"]), bytes.fromhex(row["address"]), row["text"].encode()
    )
    assert rs.hex() == row["rs"]


@pytest.mark.parametrize("row", named(V["refused"]))
def test_invalid_signatures_are_refused_and_not_quoted(row, backend):
    with pytest.raises(getattr(errors, row["error"])) as caught:
        message.normalise_signature(
            bytes.fromhex(row["signature"]), bytes.fromhex(row["address"]), row["text"].encode()
        )
    if row["signature"]:
        assert row["signature"][:64] not in caught.value.diagnostics()


@pytest.mark.parametrize("row", named(V["signed_twice"]))
def test_two_equal_signatures_are_required(row):
    signer = Answers(*map(bytes.fromhex, row["answers"]))
    text = V["key_requests"][0]["text"].encode()
    if row["accepted"]:
        assert message.sign_twice(signer, text).hex() == V["accepted"][0]["rs"]
    else:
        with pytest.raises(errors.SignerError, match="two different signatures") as caught:
            message.sign_twice(signer, text)
        assert "MPC" in caught.value.hint
    assert signer.asked == [text, text]


def test_sign_once_requests_one_signature():
    signer = Answers(bytes.fromhex(V["accepted"][0]["signature"]))
    text = V["key_requests"][0]["text"].encode()
    assert message.sign_once(signer, text).hex() == V["accepted"][0]["rs"]
    assert signer.asked == [text]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("64 bytes, ERC-2098", "compact"),
        ("ERC-6492 wrapper", "ERC-6492"),
        ("two signatures of a Safe", "contract"),
        ("another account", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"),
    ],
)
def test_error_names_the_kind_of_signature(name, word):
    row = next(row for row in V["refused"] if row["name"] == name)
    with pytest.raises(errors.SealError, match=word) as caught:
        message.normalise_signature(bytes.fromhex(row["signature"]), ACCOUNT, row["text"].encode())
    assert "vault without a wallet" in caught.value.hint


def test_signature_texts_are_read_or_refused():
    for row in V["signature_texts"]["accepted"]:
        assert message.read_signature(row["text"]).hex() == row["signature"]
    for text in V["signature_texts"]["refused"]:
        with pytest.raises(errors.SignerError):
            message.read_signature(text)
