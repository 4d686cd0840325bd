"""Both implementations of the curve give the same accounts, signatures and verdicts."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ipfsmem.wallet import secp256k1
from ipfsmem.wallet.message import ORDER
from ipfsmem.wallet.secp256k1 import account_of, recover_account, sign_hash
from tests.support.extras import need_extra

coincurve = need_extra("fast", "coincurve")
HARDHAT = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")


def _both(monkeypatch: pytest.MonkeyPatch, call: object, *args: object) -> object:
    monkeypatch.setattr(secp256k1, "coincurve", coincurve)
    fast = call(*args)  # type: ignore[operator]
    monkeypatch.setattr(secp256k1, "coincurve", None)
    slow = call(*args)  # type: ignore[operator]
    assert fast == slow
    return fast


def test_known_account_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    account = _both(monkeypatch, account_of, HARDHAT)
    assert account == bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")


@pytest.mark.parametrize("i", range(20))
def test_signature_and_signer_are_the_same_in_both_implementations(
    monkeypatch: pytest.MonkeyPatch, i: int
) -> None:
    key, digest = sha256(b"key %d" % i).digest(), sha256(b"text %d" % i).digest()
    signature = _both(monkeypatch, sign_hash, key, digest)
    assert isinstance(signature, bytes) and len(signature) == 65
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    assert _both(monkeypatch, recover_account, signature[64], r, s, digest) == account_of(key)
    other = _both(monkeypatch, recover_account, 1 - signature[64], r, s, digest)
    assert other != account_of(key)


@pytest.mark.parametrize(
    ("r", "s"), [(5, 1), (ORDER - 1, ORDER // 2), (1, ORDER // 2), (2, 3), (4, 4), (9, 9)]
)
@pytest.mark.parametrize("parity", [0, 1])
def test_recovery_without_a_key_has_the_same_verdict(
    monkeypatch: pytest.MonkeyPatch, parity: int, r: int, s: int
) -> None:
    _both(monkeypatch, recover_account, parity, r, s, sha256(b"text").digest())
    monkeypatch.setattr(secp256k1, "coincurve", coincurve)
    assert recover_account(parity, 5, 1, sha256(b"text").digest()) is None
