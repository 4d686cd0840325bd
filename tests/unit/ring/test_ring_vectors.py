"""fixtures/vectors/ring.json: reproducible byte for byte, and readable by another implementation."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ipfsmem.errors import FormatError, LimitError, OpenError, SignatureError
from ipfsmem.ring.keyring import Ring, parse_keyring
from ipfsmem.ring.operations import read_enrolment_request
from ipfsmem.ring.statements import member_id, open_envelope
from tests.support.ring_vectors import FILE, build, view_of

VECTORS: dict[str, Any] = json.loads(FILE.read_text())
VAULT = bytes.fromhex(VECTORS["vault"])
PARTIES = {one["name"]: one for one in VECTORS["parties"]}
RINGS = {one["name"]: one for one in VECTORS["rings"]}
ERRORS = {"format": FormatError, "signature": SignatureError, "open": OpenError}


def _secret(name: str) -> bytes:
    return bytes.fromhex(PARTIES[name]["box_secret"])


def _open(name: str) -> Ring:
    case = RINGS[name]
    keyring = parse_keyring(case["keyring"].encode())
    secrets = [_secret(who) for who in case["opened_by"][:1]]
    return keyring.unlock(secrets).ring()


def test_vector_file_equals_the_generated_one() -> None:
    assert build() == VECTORS


@pytest.mark.parametrize("name", RINGS)
def test_ring_is_opened_as_in_the_vectors(name: str) -> None:
    case = RINGS[name]
    for who in case["opened_by"] or [None]:
        keyring = parse_keyring(case["keyring"].encode())
        assert (keyring.vault == VAULT) != keyring.plain
        ring = keyring.unlock([_secret(who)] if who else ()).ring()
        assert view_of(ring) == case["view"]
        assert msgspec.structs.asdict(ring.room()) == case["room"]
        assert [{"epoch": key.epoch, "id": key.id, "key": key.key.hex()} for key in ring.keys] == case["eks"]
        assert ring.serialise() == case["keyring"].encode()
        assert ring.plain == (not case["opened_by"])
    for who in case["not_opened_by"]:
        with pytest.raises(OpenError):
            parse_keyring(case["keyring"].encode()).unlock(_secret(who))


@pytest.mark.parametrize("case", VECTORS["joins"], ids=lambda case: case["result"])
def test_joined_rings_equal_the_vectors(case: dict[str, str]) -> None:
    a, b = _open(case["a"]), _open(case["b"])
    expected = RINGS[case["result"]]["keyring"].encode()
    assert a.join(b).serialise() == expected
    assert b.join(a).serialise() == expected


@pytest.mark.parametrize("case", VECTORS["refused_joins"], ids=lambda case: case["name"])
def test_join_over_the_limit_is_refused(case: dict[str, str]) -> None:
    a, b = (parse_keyring(case[one].encode()).unlock(_secret(case["by"])).ring() for one in "ab")
    with pytest.raises(LimitError):
        a.join(b)


@pytest.mark.parametrize("case", VECTORS["evaluations"], ids=lambda case: case["name"])
def test_evaluation_equals_the_vectors_in_any_order(case: dict[str, Any]) -> None:
    table = VECTORS["statements"]
    statements = [open_envelope(table[name]["k"], table[name]["s"], VAULT) for name in case["statements"]]
    assert [st.hash for st in statements] == case["statements"]
    assert view_of(Ring(VAULT, statements, ())) == case["view"]
    assert view_of(Ring(VAULT, statements[::-1], ())) == case["view"]


@pytest.mark.parametrize("case", VECTORS["refused_keyrings"], ids=lambda case: case["name"])
def test_invalid_key_rings_are_refused(case: dict[str, str]) -> None:
    with pytest.raises(ERRORS[case["error"]]) as caught:
        parse_keyring(case["keyring"].encode(), VAULT).unlock(_secret("laptop"))
    assert type(caught.value) is ERRORS[case["error"]]


def test_members_and_request_equal_the_vectors() -> None:
    for one in PARTIES.values():
        assert member_id(bytes.fromhex(one["sign_public"])) == one["id"]
    asked = read_enrolment_request(VECTORS["request"]["text"].encode(), VAULT)
    who = PARTIES[VECTORS["request"]["device"]]
    assert (asked.id, asked.box.hex(), asked.label) == (who["id"], who["box_public"], who["name"])


def test_known_values_of_the_format_are_reproduced() -> None:
    # Format section 9: the device whose seed is 32 bytes 01.
    assert (
        member_id(bytes.fromhex("8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"))
        == "34750f98bd59fcfc"
    )
    assert VECTORS["vault"] == "0cdbf32a546254927d096c673030fe2f"
