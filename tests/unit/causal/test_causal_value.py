"""Values and entries equal the shared vectors: encoding, signatures, limits and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipfsmem.causal.tree import build_tree
from ipfsmem.causal.value import (
    DeviceCounter,
    Entry,
    Value,
    check_dots,
    check_entry,
    check_value,
    decode_entry,
    dot,
    encode_entry,
    identity,
    same_identity,
    seen_message,
    sign_seen,
    sign_value,
    split_dot,
    verify_seen,
    verify_value,
)
from ipfsmem.errors import FormatError, LimitError, UsageError
from ipfsmem.seal.primitives import Signer25519

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures/vectors/values.json").read_text())
VAULT, PUBLIC, DEV = bytes.fromhex(VECTORS["vault"]), bytes.fromhex(VECTORS["public"]), VECTORS["device"]
SIGNER = Signer25519(bytes.fromhex(VECTORS["seed"]))


def value_of(data: Any) -> Value:
    return msgspec.convert(data, Value)


def test_vector_file_contains_the_known_answers_of_the_format() -> None:
    first, second = VECTORS["signed"][:2]
    assert (
        first["value"]["s"]
        == "CGEQWdwH1PzKk3eY813vIOKUOR87I2hLze3rujT09Pl3Iaxg6w-y1wSf5GKXKlim-TzrMbbhULczRmaxQvh7Bw"
    )
    assert (
        second["value"]["s"]
        == "CMhvAlYVqWCM6VwN0gA0D_abJtmzd_cSzrjMpotydyWZBPyzqmGSP2Wkevc8UHdb3xTFcbBNA9ClT3hIWx7CCQ"
    )
    assert (
        VECTORS["seen"]["s"]
        == "_kDJGzMH77JPPYh4E_MAzdGDdTTCxlZPDOusYcxE0dyCvVSNAKN0yumRIbSjKfhSdlRh9el7ch9eD1YEC2IwAQ"
    )
    assert VECTORS["state"]["digest"] == "fc4943df6744453ad96eabf13cbf26fc90f3d403b594f8afdfeb9544784893d2"
    assert VECTORS["state"]["node_bytes"] == 551


def test_signed_values_equal_the_vectors() -> None:
    for case in VECTORS["signed"]:
        value = value_of(case["value"])
        assert identity(case["entry"], case["dot"], value, VAULT).hex() == case["message"]
        bare = msgspec.structs.replace(value, s="")
        assert sign_value(SIGNER, case["entry"], case["dot"], bare, VAULT) == value
        check_entry(case["entry"], {case["dot"]: value})
        check_value(case["entry"], case["dot"], bare, published=False)
        assert verify_value(PUBLIC, case["entry"], case["dot"], value, VAULT)
        assert encode_entry({case["dot"]: value}).decode() == case["json"]
        assert decode_entry(case["entry"], case["json"].encode()) == {case["dot"]: value}
    entries = VECTORS["state"]["entries"]
    texts = {e: encode_entry(msgspec.convert(entry, Entry)) for e, entry in entries.items()}
    assert build_tree(texts).tree.digest.hex() == VECTORS["state"]["digest"]


def test_every_field_except_the_location_is_signed() -> None:
    first = VECTORS["signed"][0]
    moved = value_of(VECTORS["location_is_not_signed"])
    assert verify_value(PUBLIC, first["entry"], first["dot"], moved, VAULT)
    assert same_identity(moved, value_of(first["value"]))
    for case in VECTORS["not_valid"]:
        assert not verify_value(PUBLIC, case["entry"], case["dot"], value_of(case["value"]), VAULT), case[
            "why"
        ]
    assert not verify_value(PUBLIC, first["entry"], first["dot"], value_of(first["value"]), bytes(16))


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["why"])
def test_invalid_values_are_refused(case: Any) -> None:
    with pytest.raises(FormatError):
        check_entry(case["entry"], {case["dot"]: value_of(case["value"])})


def test_object_size_is_limited_to_one_mebibyte() -> None:
    first = VECTORS["signed"][0]
    value = value_of(first["value"])
    assert value.loc is not None
    largest = msgspec.structs.replace(value, loc=msgspec.structs.replace(value.loc, size=1_048_576))
    check_value(first["entry"], first["dot"], largest)
    larger = msgspec.structs.replace(value, loc=msgspec.structs.replace(value.loc, size=1_048_577))
    with pytest.raises(FormatError, match="loc"):
        check_value(first["entry"], first["dot"], larger)


@pytest.mark.parametrize("case", VECTORS["malformed_entries"], ids=lambda case: case["why"])
def test_malformed_entries_are_refused(case: Any) -> None:
    with pytest.raises(FormatError, match="m/feedback_tone"):
        decode_entry("m/feedback_tone", case["json"].encode())


def test_unpublished_values_need_neither_signature_nor_location() -> None:
    value = Value(b=(), body="1" * 64, h="0" * 16, kind="live")
    check_value("m/k", dot(DEV, 1), value, published=False)
    assert encode_entry({dot(DEV, 1): value}) == (
        f'{{"{DEV}-1":{{"b":[],"body":"{"1" * 64}","h":"{"0" * 16}","kind":"live"}}}}'.encode()
    )
    with pytest.raises(FormatError, match="loc is missing"):
        check_value("m/k", dot(DEV, 1), value)


def test_entry_has_at_most_four_dots_of_each_device() -> None:
    entry = msgspec.convert(VECTORS["five_dots_of_one_device"], Entry)
    with pytest.raises(LimitError, match=DEV):
        check_entry("m/k", entry)
    value = next(iter(entry.values()))
    check_dots("m/k", {dot(f"{dev:016x}", n): value for dev in range(64) for n in range(1, 5)})
    with pytest.raises(FormatError, match="no value"):
        check_entry("m/k", {})


def test_dots_are_split_and_checked() -> None:
    assert split_dot(dot(DEV, 7)) == (DEV, 7)
    for dev, n in ((DEV, 0), (DEV, 2**53), (DEV[1:], 1), (DEV.upper(), 1)):
        with pytest.raises(FormatError):
            dot(dev, n)
    for text in (f"{DEV}-01", f"{DEV}-+1", f"{DEV}1", f"{DEV}-1\n", f"{DEV}-١", f"{DEV}-9007199254740992"):
        with pytest.raises(FormatError, match="dot"):
            split_dot(text)


def test_seen_statement_is_signed_and_verified() -> None:
    case = VECTORS["seen"]
    assert seen_message(VAULT, DEV, case["n"], case["r"]).hex() == case["message"]
    seen = sign_seen(SIGNER, VAULT, DEV, case["n"], case["r"])
    assert seen == DeviceCounter(case["n"], case["r"], case["s"])
    assert verify_seen(PUBLIC, VAULT, DEV, seen)
    assert not verify_seen(PUBLIC, VAULT, "0" * 16, seen)
    assert not verify_seen(PUBLIC, bytes(16), DEV, seen)
    for wrong in VECTORS["seen_not_valid"]:
        assert not verify_seen(PUBLIC, VAULT, DEV, DeviceCounter(wrong["n"], wrong["r"], wrong["s"])), wrong[
            "why"
        ]
    with pytest.raises(UsageError):
        seen_message(b"", DEV, 1, case["r"])
    with pytest.raises(FormatError):
        sign_seen(SIGNER, VAULT, DEV, 2**53, case["r"])
