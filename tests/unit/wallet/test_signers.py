"""Signers from raw keys, seed phrases and keystores sign like eth-account; malformed ones are refused."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ipfsmem.errors import FormatError, LimitError, PassphraseError, StorageError, UsageError
from ipfsmem.wallet import message, signers
from tests.support.passphrase_cost import at_full_cost

KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
ACCOUNT = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
JUNK = "test test test test test test test test test test test junk"
# The test vectors of the Web3 Secret Storage definition, version 3: passphrase, then key.
STORAGE_KEY = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
PBKDF2 = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3,
}


@pytest.fixture(scope="module")
def light(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "light.json"
    assert signers.create_keystore(path, "pässwörter", KEY, scrypt_n=2) == ACCOUNT
    return path


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("text", [b"", b"hello", "Überraschung".encode(), b"x" * 1000])
def test_raw_key_signs_like_eth_account(text):
    signer = signers.RawKeySigner(KEY)
    assert signer.address == ACCOUNT
    from eth_account import Account  # takes most of a second, which each worker would wait for
    from eth_account.messages import encode_defunct

    expected = Account.sign_message(encode_defunct(primitive=text), KEY).signature
    assert signer.sign_message(text) == bytes(expected)
    assert len(message.sign_twice(signer, text)) == 64


@pytest.mark.parametrize(
    "key", [b"", bytes(32), KEY[:31], KEY + b"\0", message.ORDER.to_bytes(32, "big"), b"\xff" * 32]
)
def test_invalid_raw_keys_are_refused(key):
    with pytest.raises(UsageError):
        signers.RawKeySigner(key)


def test_seed_phrase_gives_its_accounts():
    assert signers.MnemonicSigner(JUNK).address == ACCOUNT
    assert signers.MnemonicSigner("  " + JUNK.upper().replace(" ", "\n")).address == ACCOUNT
    second = signers.MnemonicSigner(JUNK, "m/44'/60'/0'/0/1")
    assert second.address.hex() == "70997970c51812dc3a010c7d01b50e0d17dc79c8"


@pytest.mark.parametrize(
    "words", ["", "test", JUNK + " junk", JUNK.replace("junk", "jnuk"), "test " * 12, "é " * 12]
)
def test_invalid_seed_phrases_are_refused_and_not_quoted(words):
    with pytest.raises(FormatError) as caught:
        signers.MnemonicSigner(words)
    assert "jnuk" not in str(caught.value)


@pytest.mark.parametrize("path", ["", "m/x", "44'/60'", "m/44'/60'/0'/0/-1", "m/4294967296"])
def test_invalid_account_paths_are_refused(path):
    with pytest.raises(FormatError):
        signers.MnemonicSigner(JUNK, path)


def test_keystore_round_trips(light):
    signer = signers.KeystoreSigner(light, "pässwörter")
    assert signer.address == ACCOUNT
    assert signer.sign_message(b"x") == signers.RawKeySigner(KEY).sign_message(b"x")
    assert stat.S_IMODE(light.stat().st_mode) == 0o600
    # Other programs read it too.
    from eth_account import Account

    assert Account.decrypt(light.read_text(), "pässwörter") == KEY
    assert KEY.hex() not in light.read_text()


def test_default_keystore_parameters_are_those_of_wallets(tmp_path, monkeypatch):
    seen = {}

    def fake(key, password, **options):
        seen.update(options)
        return {}

    monkeypatch.setattr("eth_keyfile.keyfile.create_keyfile_json", fake)
    with at_full_cost():
        signers.create_keystore(tmp_path / "k", "a long secret", KEY)
    assert seen == {"kdf": "scrypt", "iterations": 262144}


def test_keystore_of_the_specification_opens(tmp_path):
    signer = signers.KeystoreSigner(write(tmp_path / "k", PBKDF2), "testpassword")
    assert signer.address == signers.RawKeySigner(STORAGE_KEY).address
    old = {"Crypto": PBKDF2["crypto"], "Version": 3, "address": "0x" + signer.address.hex()}
    assert signers.KeystoreSigner(write(tmp_path / "old", old), "testpassword").address == signer.address


@pytest.mark.parametrize("passphrase", ["wrong", "passwo\u0308rd", "", "\ud800"])
def test_wrong_keystore_passphrase_is_refused(light, passphrase):
    with pytest.raises(PassphraseError):
        signers.KeystoreSigner(light, passphrase)


def test_keystore_is_never_overwritten(light, tmp_path):
    before = light.read_bytes()
    with pytest.raises(StorageError, match="exists"):
        signers.create_keystore(light, "a long secret", KEY, scrypt_n=2)
    assert light.read_bytes() == before
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError):
        signers.create_keystore(link, "a long secret", KEY, scrypt_n=2)
    assert not (tmp_path / "elsewhere").exists()


def test_failing_disk_leaves_no_keystore(tmp_path, monkeypatch):
    with pytest.raises(StorageError):
        signers.create_keystore(tmp_path / "no" / "k", "a long secret", KEY, scrypt_n=2)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        signers.create_keystore(tmp_path / "k", "a long secret", KEY, scrypt_n=2)
    assert not (tmp_path / "k").exists()


def test_keystore_with_a_weak_passphrase_or_key_is_not_created(tmp_path):
    with pytest.raises(PassphraseError):
        signers.create_keystore(tmp_path / "k", "", KEY, scrypt_n=2)
    with pytest.raises(UsageError):
        signers.create_keystore(tmp_path / "k", "a long secret", bytes(32), scrypt_n=2)
    for n in (0, 1, 3, 2**21):
        with pytest.raises(UsageError):
            signers.create_keystore(tmp_path / "k", "a long secret", KEY, scrypt_n=n)
    assert not (tmp_path / "k").exists()


def test_missing_keystore_is_an_error(tmp_path):
    with pytest.raises(StorageError):
        signers.KeystoreSigner(tmp_path / "none", "x")
    with pytest.raises(StorageError):
        signers.KeystoreSigner(tmp_path, "x")


def change(path: str, value: object) -> dict:
    """Return the keystore of the specification with one field changed, or removed for None."""
    out = json.loads(json.dumps(PBKDF2))
    *way, last = path.split(".")
    at = out
    for name in way:
        at = at[name]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return out


SCRYPT = {"dklen": 32, "n": 2, "r": 8, "p": 1, "salt": "00"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 1),
        ("version", 4),
        ("version", "3"),
        ("version", None),
        ("crypto", None),
        ("crypto", []),
        ("crypto.cipher", "aes-128-cbc"),
        ("crypto.cipherparams", {}),
        ("crypto.cipherparams.iv", "00"),
        ("crypto.ciphertext", "zz"),
        ("crypto.ciphertext", ""),
        ("crypto.ciphertext", 7),
        ("crypto.mac", None),
        ("crypto.mac", "00"),
        ("crypto.kdf", "argon2"),
        ("crypto.kdfparams", {}),
        ("crypto.kdfparams.c", 0),
        ("crypto.kdfparams.c", "1"),
        ("crypto.kdfparams.dklen", 16),
        ("crypto.kdfparams.prf", "hmac-md5"),
        ("crypto.kdfparams.salt", "x"),
        ("crypto.kdfparams.salt", "ae 3c"),
        ("crypto.kdfparams.c", 1.5),
        ("address", 5),
    ],
)
def test_malformed_keystores_are_refused(tmp_path, path, value):
    with pytest.raises(FormatError):
        signers.KeystoreSigner(write(tmp_path / "k", change(path, value)), "testpassword")


@pytest.mark.parametrize(
    "params", [{"n": 3}, {"n": 0}, {"n": -2}, {"r": 0}, {"p": 0}, {"dklen": 31}, {"salt": 1}]
)
def test_malformed_scrypt_parameters_are_refused(tmp_path, params):
    broken = change("crypto.kdf", "scrypt")
    broken["crypto"]["kdfparams"] = SCRYPT | params
    with pytest.raises(FormatError):
        signers.KeystoreSigner(write(tmp_path / "k", broken), "x")


def test_excessive_keystore_parameters_are_refused(tmp_path):
    greedy = change("crypto.kdf", "scrypt")
    for params in ({"n": 2**30}, {"r": 2**40}, {"p": 10**9}):
        greedy["crypto"]["kdfparams"] = SCRYPT | params
        with pytest.raises(LimitError):
            signers.KeystoreSigner(write(tmp_path / "k", greedy), "x")
    with pytest.raises(LimitError):
        signers.KeystoreSigner(write(tmp_path / "k", change("crypto.kdfparams.c", 10**9)), "x")
    (tmp_path / "long").write_bytes(b" " * 70_000)
    with pytest.raises(LimitError):
        signers.KeystoreSigner(tmp_path / "long", "x")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"3", b"\xff\xfe", b'{"crypto":' + b"[" * 5000, b'{"version":3e9}']
)
def test_keystore_that_is_not_json_is_refused(tmp_path, data):
    (tmp_path / "k").write_bytes(data)
    with pytest.raises(FormatError):
        signers.KeystoreSigner(tmp_path / "k", "x")


def test_keystore_with_the_key_of_another_account_is_refused(tmp_path, light):
    lying = json.loads(light.read_text()) | {"address": "00" * 20}
    with pytest.raises(FormatError, match="another account"):
        signers.KeystoreSigner(write(tmp_path / "k", lying), "pässwörter")


def test_repr_shows_the_account_only():
    shown = repr(signers.MnemonicSigner(JUNK))
    assert shown == f"MnemonicSigner(0x{ACCOUNT.hex()})"
