"""Root keys of wallets, recovery phrases and vaults without a wallet equal the vectors."""

from __future__ import annotations

import json
import pprint
from pathlib import Path

import pytest
import rich.pretty
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ipfsmem.errors import PassphraseError, UsageError, WrongWalletError
from ipfsmem.wallet.root_keys import RootKeys, require_admin, vault_tag

ROOT = Path(__file__).parents[3] / "fixtures/vectors"
V = json.loads((ROOT / "derivation.json").read_text())
RECOVERY = json.loads((ROOT / "recovery.json").read_text())["recovery"]
ACCOUNT = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
RS = bytes.fromhex(V["wallet"][0]["rs"])


def same(keys: RootKeys, row: dict) -> None:
    for name in ("admin_seed", "admin_public", "head_seed", "head_public", "box_secret", "box_public"):
        assert getattr(keys, name).hex() == row[name], name
    if "check" in row:
        assert keys.check is not None
        assert (keys.check.hex(), keys.vault_tag.hex()) == (row["check"], row["vault_tag"])
        assert keys.tag(plain=True).hex() == row["plain_vault_tag"]


def test_root_keys_equal_the_example_of_the_format():
    rs = (
        "2cd11952b00cbbd3f81bcf944e2b9633f1e0aaffbfe026f455fb4c164bc823e1"
        "576b1992eecde3712bd6f3969acbc767ea5cc06c4aedac6853194ce1a611621e"
    )
    keys = RootKeys.from_signature(bytes.fromhex(rs), ACCOUNT, "default", 1)
    assert keys.kind == "wallet"
    assert keys.admin_public.hex() == "f35735900859a4ad182aa6e8852722c266f6188ba6ccd6c33dbbe36aef6671e7"
    assert keys.head_public.hex() == "a011fc2b40496ea03980f4883b74dcdcae1db1ef91dfec5bf4e7048030cbded9"
    assert keys.box_public.hex() == "fa807d595bf506efa6e1ef5cec93d74eef8757ac349990e9f4342e64939f7b7d"
    assert keys.check == bytes.fromhex("dcade9376024a26b")
    assert keys.vault_tag.hex() == "3973bff87388964db243992eeb7c6506"
    assert keys.tag(plain=True).hex() == "3917eeda997d4077b7d1051d46a7239b"


def test_recovery_keys_equal_the_example_of_the_format():
    keys = RootKeys.from_recovery(b"\x02" * 32)
    assert keys.kind == "recovery"
    assert keys.admin_public.hex() == "235eef9922bfc4a6d675f4d8ed2753ea7fe92d76486bfff0aa8ffd075b3ad575"
    assert keys.head_public.hex() == "1aecdf8cce7d6d6bee6e022e3aa96c8e66a8883a3a36d16ffae106eeaeb612ce"
    assert keys.box_public.hex() == "12d88bdda6ac82c0e2232cdcd481b10394239db8adeb5ca8153118e701e4167e"
    assert keys.check is None
    with pytest.raises(UsageError):
        _ = keys.vault_tag


def test_walletless_keys_equal_the_example_of_the_format():
    keys = RootKeys.from_random(b"\x03" * 64, "default", 1)
    assert keys.kind == "random"
    assert keys.admin_public.hex() == "bf199cd7fcaf2ead2ea4054c50908b12780d15ab2bb80dc7fbd759236a45cc43"
    assert keys.vault_tag.hex() == "0cdbf32a546254927d096c673030fe2f"


@pytest.mark.parametrize("row", V["wallet"])
def test_wallet_keys_equal_the_vectors(row):
    keys = RootKeys.from_signature(
        bytes.fromhex(row["rs"]),
        bytes.fromhex(row["address"]),
        row["vault"],
        row["key_number"],
        row["passphrase"],
    )
    same(keys, row)


@pytest.mark.parametrize("row", V["walletless"])
def test_walletless_keys_equal_the_vectors(row):
    same(RootKeys.from_random(bytes.fromhex(row["secret"]), row["vault"], row["key_number"]), row)


@pytest.mark.parametrize("row", RECOVERY)
def test_recovery_keys_equal_the_vectors(row):
    same(RootKeys.from_recovery(bytes.fromhex(row["secret"])), row)


def test_equivalent_spellings_of_a_passphrase_give_equal_keys():
    by_phrase = {row["passphrase"]: row["admin_public"] for row in V["wallet"] if row["vault"] == "default"}
    assert by_phrase["pass"] == by_phrase["\uff50\uff41\uff53\uff53"]
    assert by_phrase["caf\u00e9"] == by_phrase["cafe\u0301"]
    assert len({by_phrase[p] for p in (None, "pass", "caf\u00e9", " ", "correct horse battery staple")}) == 5


def test_derivation_equals_another_library():
    """The whole of 2.3 with `cryptography`, passphrase included."""
    salt_hash = hashes.Hash(hashes.SHA256())
    salt_hash.update(b"ipfsmem/v1/pp" + ACCOUNT + b"work")
    stretched = Argon2id(
        salt=salt_hash.finalize()[:16], length=32, iterations=3, lanes=1, memory_cost=65536
    ).derive(b"secret")
    keys = RootKeys.from_signature(RS, ACCOUNT, "work", 258, "secret")
    got = {b"admin": keys.admin_seed, b"head": keys.head_seed, b"box": keys.box_secret, b"check": keys.check}
    for label, value in got.items():
        info = b"ipfsmem/v1/" + label + b"\0" + ACCOUNT + b"\0\4work" + b"\0\0\1\2"
        whole = HKDF(hashes.SHA256(), 32, b"ipfsmem/v1/wallet-root", info).derive(RS + stretched)
        assert value == (whole[:8] if label == b"check" else whole)


@pytest.mark.parametrize("phrase", V["refused_passphrases"])
def test_invalid_passphrases_are_refused(phrase):
    with pytest.raises(PassphraseError):
        RootKeys.from_signature(RS, ACCOUNT, "default", 1, phrase)


def test_invalid_sizes_and_labels_are_refused():
    for rs, address, vault, number in [
        (RS[:-1], ACCOUNT, "default", 1),
        (RS + b"\x1c", ACCOUNT, "default", 1),
        (RS, ACCOUNT[1:], "default", 1),
        (RS, ACCOUNT, "De", 1),
        (RS, ACCOUNT, "default", 0),
        (RS, ACCOUNT, "default", 2**31),
    ]:
        with pytest.raises(UsageError):
            RootKeys.from_signature(rs, address, vault, number)
    with pytest.raises(UsageError):
        RootKeys.from_random(bytes(63), "default", 1)
    with pytest.raises(UsageError):
        RootKeys.from_recovery(bytes(31))
    with pytest.raises(UsageError):
        vault_tag(bytes(31), plain=False)


def test_secrets_are_absent_from_repr():
    keys = RootKeys.from_signature(RS, ACCOUNT, "default", 1)
    shown = f"{keys} {keys!r} {pprint.pformat(keys)} {rich.pretty.pretty_repr(keys)} {[keys]}"
    for secret in (keys.admin_seed, keys.head_seed, keys.box_secret):
        assert secret.hex() not in shown
        assert repr(secret) not in shown


def test_admin_key_of_another_wallet_is_refused():
    keys = RootKeys.from_signature(RS, ACCOUNT, "default", 1)
    require_admin(keys, keys.admin_public)
    with pytest.raises(WrongWalletError, match="passphrase"):
        require_admin(keys, bytes(32))
