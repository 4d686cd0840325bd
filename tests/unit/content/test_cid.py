"""CIDs as text and bytes, and IPNS names: the shared vectors, and agreement with the multiformats library."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import multiformats
import pytest

from ipfsmem.content.cid import (
    CID,
    RAW,
    decode_cid,
    ipns_name,
    parse_cid,
    public_of_ipns_name,
    raw_cid,
    read_cid,
    read_varint,
    varint,
)
from ipfsmem.errors import FormatError, LimitError

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "vectors" / "cids.json").read_text("utf-8")
)
EMPTY = hashlib.sha256(b"").digest()


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["about"])
def test_cid_is_converted_between_text_and_bytes(vector: dict[str, Any]) -> None:
    cid = CID(vector["version"], vector["codec"], bytes.fromhex(vector["multihash"]))
    assert str(cid) == vector["text"]
    assert bytes(cid).hex() == cid.encode().hex() == vector["bytes"]
    assert parse_cid(vector["text"]) == decode_cid(bytes(cid)) == cid
    assert read_cid(b"xy" + bytes(cid) + b"z", 2) == (cid, 2 + len(bytes(cid)))
    assert cid.multihash == varint(cid.hash_code) + varint(len(cid.digest)) + cid.digest
    assert len({cid, parse_cid(vector["text"])}) == 1


@pytest.mark.parametrize("vector", VECTORS["same_cid"], ids=lambda vector: vector["base"])
def test_cid_in_another_base_is_equal(vector: dict[str, str]) -> None:
    assert parse_cid(vector["text"]) == raw_cid(EMPTY)


@pytest.mark.parametrize("vector", VECTORS["refused_text"], ids=lambda vector: vector["about"])
def test_invalid_cid_text_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(FormatError):
        parse_cid(vector["text"])


@pytest.mark.parametrize("vector", VECTORS["refused_bytes"], ids=lambda vector: vector["about"])
def test_invalid_cid_bytes_are_refused(vector: dict[str, str]) -> None:
    with pytest.raises(FormatError):
        decode_cid(bytes.fromhex(vector["bytes"]))


def test_wrong_last_character_of_a_cid_is_refused() -> None:
    text = str(raw_cid(EMPTY))
    accepted = []
    for char in "abcdefghijklmnopqrstuvwxyz234567":
        try:
            accepted.append(str(parse_cid(text[:-1] + char)))
        except FormatError:
            continue
    # Two spare bits: 8 of the 32 last characters are canonical, each for another CID.
    assert text in accepted and len(accepted) == len(set(accepted)) == 8


def test_large_identity_cid_exceeds_the_limit() -> None:
    with pytest.raises(LimitError, match="65 bytes"):
        decode_cid(b"\x01\x55\x00\x41" + bytes(65))


def test_cid_has_its_hash_code_and_digest() -> None:
    assert raw_cid(EMPTY) == CID(1, RAW, b"\x12\x20" + EMPTY)
    assert raw_cid(EMPTY).digest == EMPTY and raw_cid(EMPTY).hash_code == 0x12
    inline = CID(1, RAW, b"\0\5hello")
    assert inline.digest == b"hello" and inline.hash_code == 0
    assert repr(inline) == f"CID('{inline}')"


@pytest.mark.parametrize("vector", VECTORS["ipns_names"])
def test_ipns_names_are_converted_to_and_from_keys(vector: dict[str, str]) -> None:
    public = bytes.fromhex(vector["ed25519_public"])
    assert ipns_name(public) == vector["name"]
    assert public_of_ipns_name(vector["name"]) == public
    assert vector["name"].startswith("k51qzi5uqu5d") and len(vector["name"]) == 62
    # The same key in another base is the same name.
    assert public_of_ipns_name(str(multiformats.CID.decode(vector["name"]).encode("base32"))) == public


@pytest.mark.parametrize("vector", VECTORS["refused_ipns_names"], ids=lambda vector: vector["about"])
def test_invalid_ipns_names_are_refused(vector: dict[str, str]) -> None:
    with pytest.raises(FormatError):
        public_of_ipns_name(vector["name"])


def test_ipns_name_needs_32_bytes() -> None:
    with pytest.raises(FormatError, match="31"):
        ipns_name(bytes(31))


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16383, 16384, 2**32, 2**63 - 1])
def test_varint_is_encoded_and_decoded(value: int) -> None:
    encoded = varint(value)
    assert encoded == multiformats.varint.encode(value)
    assert read_varint(b"\xff" + encoded + b"\x01", 1) == (value, 1 + len(encoded))
    with pytest.raises(FormatError):
        read_varint(encoded[:-1], 0)


@pytest.mark.parametrize("data", [b"\x80\x00", b"\xff\x00", b"\x80" * 9 + b"\x01", b""])
def test_invalid_varint_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_varint(data, 0)


def test_hot_modules_import_few_others() -> None:
    """The start time of `ipfsmem format cid` has a budget, so it allows no heavy import."""
    code = "import sys, ipfsmem.files.pack; print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in (
        "multiformats",
        "msgspec",
        "aiohttp",
        "nacl",
        "cryptography",
        "eth_account",
        "sqlite3",
        "click",
    ):
        assert f"'{heavy}'" not in modules


@pytest.mark.parametrize(("base", "asked"), [("base32", False), ("base58btc", True), ("base64url", True)])
def test_foreign_cids_are_decoded_by_the_library(base: str, asked: bool) -> None:
    ours = raw_cid(b"\x01" * 32)
    text = str(multiformats.CID.decode(str(ours)).encode(base))
    code = (
        "import sys; from ipfsmem.content.cid import parse_cid; "
        f"print(parse_cid({text!r}), 'multiformats' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(ours), str(asked)]
