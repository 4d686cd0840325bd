"""The file of a device's secret: round trips, passphrases, damage and forged parameters."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ipfsmem.canonical import encode
from ipfsmem.errors import FormatError, LimitError, PassphraseError, UsageError
from ipfsmem.seal import secret_file
from ipfsmem.seal.secret_file import is_protected, protect, unprotect
from tests.support.passphrase_cost import at_full_cost

SALT, NONCE = bytes(range(16)), bytes(range(24))
SECRET = b"\xa5" * 64
LIGHT = {"memory_kib": 8, "passes": 1}


def light(passphrase: str | None = "pass", secret: bytes = SECRET) -> bytes:
    return protect(secret, passphrase, salt=SALT, nonce=NONCE, **LIGHT)


def with_sum(value: dict) -> bytes:
    """Return the file with a valid checksum, as a forger would write it."""
    return secret_file._with_checksum(secret_file.msgspec.convert(value | {"sum": ""}, secret_file._File))


def test_default_parameters_are_those_of_the_format():
    with at_full_cost():
        data = protect(SECRET, "pass", salt=SALT, nonce=NONCE)
    assert json.loads(data)["argon2"] == {"memory_kib": 65536, "passes": 3, "salt": "AAECAwQFBgcICQoLDA0ODw"}
    assert unprotect(data, "pass") == SECRET


@pytest.mark.parametrize("secret", [b"", b"x", SECRET, bytes(secret_file.MAX_SECRET)])
@pytest.mark.parametrize("passphrase", [None, "pass", "é"])
def test_secret_file_round_trips(secret, passphrase):
    data = light(passphrase, secret)
    assert unprotect(data, passphrase) == secret
    assert is_protected(data) is (passphrase is not None)
    assert len(data) <= secret_file.MAX_FILE
    assert encode(json.loads(data)) == data


def test_secret_file_equals_one_of_another_library():
    from Crypto.Cipher import ChaCha20_Poly1305
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    from ipfsmem.canonical import unb64

    file = json.loads(light("ﬁsh"))
    key = Argon2id(salt=SALT, length=32, iterations=1, lanes=1, memory_cost=8).derive(b"fish")
    cipher = ChaCha20_Poly1305.new(key=key, nonce=NONCE)
    cipher.update(encode({"argon2": file["argon2"], "nonce": file["nonce"], "v": 1}))
    box = unb64(file["box"], "box")
    assert cipher.decrypt_and_verify(box[:-16], box[-16:]) == SECRET


def test_unprotected_secret_file_is_marked():
    data = light(None)
    assert set(json.loads(data)) == {"clear", "sum", "v"}
    assert unprotect(data, "needless") == SECRET


@pytest.mark.parametrize("passphrase", ["Pass", "pass ", "", "\ud800", None])
def test_wrong_passphrase_is_refused(passphrase):
    with pytest.raises(PassphraseError):
        unprotect(light(), passphrase)


def test_empty_passphrase_is_refused():
    with pytest.raises(PassphraseError):
        light("")


@pytest.mark.parametrize("passphrase", [None, "pass"])
def test_damaged_secret_file_is_a_format_error(passphrase):
    data = light(passphrase, b"k" * 8)
    for i in range(len(data)):
        for broken in (data[:i], data[:i] + data[i + 1 :], data[:i] + bytes((data[i] ^ 1,)) + data[i + 1 :]):
            with pytest.raises(FormatError):
                unprotect(broken, passphrase)
    with pytest.raises(FormatError):
        unprotect(data + b"\n", passphrase)


def test_forged_parameters_are_refused():
    file = json.loads(light())
    for change, error in [
        ({"memory_kib": 2**21}, LimitError),
        ({"memory_kib": 0}, LimitError),
        ({"memory_kib": 1}, FormatError),
        ({"passes": 17}, LimitError),
        ({"passes": 0}, LimitError),
        ({"passes": 2}, PassphraseError),
        ({"salt": "AA"}, FormatError),
        ({"salt": "!"}, FormatError),
    ]:
        with pytest.raises(error):
            unprotect(with_sum(file | {"argon2": file["argon2"] | change}), "pass")


def test_forged_fields_are_refused():
    file = json.loads(light())
    for change in [
        {"v": 2},
        {"clear": "AA"},
        {"box": "AA"},
        {"nonce": "AA"},
        {"box": None},
        {"argon2": None},
        {"nonce": None},
    ]:
        with pytest.raises(FormatError):
            unprotect(with_sum(file | change), "pass")
    for data in (b"", b"{}", b"[]", b"null", b"[" * 9999, b"\xff", encode(file | {"more": 1})):
        with pytest.raises(FormatError):
            unprotect(data, "pass")
    with pytest.raises(LimitError):
        unprotect(b" " * 70_000, "pass")


def test_invalid_sizes_are_refused():
    with pytest.raises(UsageError):
        protect(bytes(secret_file.MAX_SECRET + 1), "x", salt=SALT, nonce=NONCE)
    with pytest.raises(UsageError):
        protect(b"", "x", salt=SALT[1:], nonce=NONCE)
    with pytest.raises(UsageError):
        protect(b"", "x", salt=SALT, nonce=NONCE[1:])
    with pytest.raises(UsageError):
        protect(b"", "x", salt=SALT, nonce=NONCE, passes=17)


def test_another_process_opens_the_secret_file():
    program = (
        "import sys; from ipfsmem.seal.secret_file import unprotect;"
        "sys.stdout.buffer.write(unprotect(sys.stdin.buffer.read(), 'pass'))"
    )
    done = subprocess.run([sys.executable, "-c", program], input=light(), capture_output=True, check=True)
    assert done.stdout == SECRET
