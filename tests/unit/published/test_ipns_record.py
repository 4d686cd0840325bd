"""IPNS records: exact bytes, other valid forms, refused forms, and the newest of several."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import libipld
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.content.cid import ipns_name, parse_cid
from ipfsmem.errors import FormatError, IpfsmemError, LimitError, SignatureError, UsageError
from ipfsmem.published import ipns_data, ipns_record
from ipfsmem.seal.primitives import Signer25519
from tests.support.effort import cases

VECTORS: dict[str, Any] = json.loads(Path("fixtures/vectors/ipns.json").read_text())
SEED = b"\x01" * 32
NAME = ipns_name(Signer25519(SEED).public)
NOW = datetime(2026, 11, 21, tzinfo=UTC)
LATER = NOW + timedelta(days=365)
ERRORS = {
    "format": FormatError,
    "limit": LimitError,
    "signature": SignatureError,
    "format or signature": (FormatError, SignatureError),
}


def why(case: dict[str, Any]) -> str:
    return str(case["why"])


def accepted(name: str, encoded: bytes, now: datetime) -> ipns_record.IpnsRecord:
    """Return a record that its name signed and that is not expired: `accepted` in the vectors."""
    record = ipns_record.verify_record(name, encoded)
    if record.has_expired(ipns_record.nanoseconds(now)):
        raise SignatureError("the record ran out")
    return record


@pytest.mark.parametrize("case", VECTORS["make"], ids=why)
def test_records_equal_the_vectors(case: dict[str, Any]) -> None:
    until = ipns_record.parse_record(bytes.fromhex(case["record"])).validity
    made = ipns_record.make_record(
        bytes.fromhex(case["seed"]), case["value"], int(case["sequence"]), until, int(case["ttl_ns"])
    )
    assert made.hex() == case["record"]
    record = accepted(case["name"], made, NOW)
    assert record.data.hex() == case["data"]
    assert (record.value, record.sequence, record.ttl) == (
        case["value"],
        int(case["sequence"]),
        int(case["ttl_ns"]),
    )
    # an independent decoder reads the same five fields, and its canonical encoder writes the same bytes
    fields = libipld.decode_dag_cbor(record.data)
    assert fields == {
        "Value": case["value"].encode(),
        "Validity": case["valid_until"].encode(),
        "ValidityType": 0,
        "Sequence": int(case["sequence"]),
        "TTL": int(case["ttl_ns"]),
    }
    assert libipld.encode_dag_cbor(fields) == record.data


@pytest.mark.parametrize("case", VECTORS["accept"], ids=why)
def test_other_valid_forms_are_accepted(case: dict[str, Any]) -> None:
    record = accepted(case["name"], bytes.fromhex(case["record"]), NOW)
    assert (record.value, str(record.validity)) == (case["value"], case["valid_until_ns"])


@pytest.mark.parametrize("case", VECTORS["refuse"], ids=why)
def test_invalid_records_are_refused(case: dict[str, Any]) -> None:
    now = datetime.fromisoformat(case["now"])
    with pytest.raises(ERRORS[case["error"]]) as caught:
        accepted(case["name"], bytes.fromhex(case["record"]), now)
    if case["error"] == "format":
        assert not isinstance(caught.value, LimitError)


@pytest.mark.parametrize("case", VECTORS["select"], ids=why)
def test_newest_record_is_selected(case: dict[str, Any]) -> None:
    records = [ipns_record.parse_record(bytes.fromhex(record)) for record in case["records"]]
    assert ipns_record.newest_record(records) == records[case["best"]]
    assert ipns_record.newest_record(reversed(records)) == records[case["best"]]


def test_selection_of_no_records_is_none() -> None:
    assert ipns_record.newest_record([]) is None


def test_expired_record_still_shows_its_sequence() -> None:
    record = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 7, NOW)
    assert ipns_record.verify_record(NAME, record).sequence == 7
    with pytest.raises(SignatureError, match="ran out"):
        accepted(NAME, record, NOW)
    assert accepted(NAME, record, NOW - timedelta(microseconds=1)).sequence == 7


def test_time_zones_and_nanoseconds_are_parsed() -> None:
    there = datetime(2026, 11, 21, 2, tzinfo=timezone(timedelta(hours=2)))
    assert ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 1, there) == ipns_record.make_record(
        SEED, "/ipfs/bafkqaaa", 1, NOW
    )
    exact = ipns_record.nanoseconds(NOW) + 1
    assert (
        ipns_record.parse_record(ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 1, exact)).validity == exact
    )
    with pytest.raises(UsageError, match="no time zone"):
        ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 1, datetime(2026, 11, 21))


def test_time_before_year_one_is_refused() -> None:
    for until, fits in (("0001-01-01T00:00:00+01:00", False), ("0001-01-01T00:00:00Z", True)):
        text = until.encode()
        value = b"/ipfs/bafkqaaa"
        data = ipns_data.encode(value, text, 1, 1)
        signature = Signer25519(SEED).sign(b"ipns-signature:" + data)
        record = b"\x42\x40" + signature + b"\x4a" + bytes((len(data),)) + data
        with pytest.raises(SignatureError if fits else FormatError):
            accepted(NAME, record, NOW)


@pytest.mark.parametrize(
    ("value", "sequence", "validity", "ttl"),
    [
        ("/ipfs/nonsense", 1, LATER, 1),
        ("bafkqaaa", 1, LATER, 1),
        ("/ipfs/bafkqaaa/memory", 1, LATER, 1),
        ("/ipns/bafkqaaa", 1, LATER, 1),
        ("", 1, LATER, 1),
        ("/ipfs/bafkqaaa", -1, LATER, 1),
        ("/ipfs/bafkqaaa", 2**63, LATER, 1),
        ("/ipfs/bafkqaaa", 1, 2**90, 1),
        ("/ipfs/bafkqaaa", 1, -(2**66), 1),
        ("/ipfs/bafkqaaa", 1, LATER, -1),
    ],
)
def test_record_with_invalid_fields_is_refused(value: str, sequence: int, validity: Any, ttl: int) -> None:
    with pytest.raises(UsageError):
        ipns_record.make_record(SEED, value, sequence, validity, ttl)


def test_record_target_is_parsed() -> None:
    assert ipns_record.value_target("/ipfs/bafkqaaa") == parse_cid("bafkqaaa")
    assert ipns_record.value_target(f"/ipns/{NAME}") == NAME
    for bad in ("/ipns/example.com", "/ipfs/", "/ipfs/bafkqaaa/x", "/dns/x", "", "/ipfs/\udcff"):
        with pytest.raises(FormatError):
            ipns_record.value_target(bad)


@settings(max_examples=cases(50, 750), deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 253402300799 * 10**9), st.integers(0, 2**63 - 1))
def test_record_round_trips(sequence: int, validity: int, ttl: int) -> None:
    record = ipns_record.verify_record(
        NAME, ipns_record.make_record(SEED, "/ipfs/bafkqaaa", sequence, validity, ttl)
    )
    assert (record.sequence, record.validity, record.ttl) == (sequence, validity, ttl)


@settings(max_examples=cases(100, 1500), deadline=None)
@given(st.data())
def test_damaged_record_raises_our_error(data: st.DataObject) -> None:
    good = ipns_record.make_record(SEED, "/ipfs/bafkqaaa", 300, LATER)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(bad) - 1))
        match data.draw(st.integers(0, 2)):
            case 0:
                bad[at] = data.draw(st.integers(0, 255))
            case 1:
                del bad[at : at + data.draw(st.integers(1, 9))]
                bad = bad or bytearray(b"\0")
            case _:
                bad[at:at] = data.draw(st.binary(max_size=9))
    try:
        record = accepted(NAME, bytes(bad), NOW)
    except IpfsmemError:
        return
    assert (record.value, record.sequence) == ("/ipfs/bafkqaaa", 300)  # then nothing signed was touched


@settings(max_examples=cases(100, 1500), deadline=None)
@given(st.binary(max_size=400))
def test_random_record_raises_our_error(noise: bytes) -> None:
    with pytest.raises(IpfsmemError):
        accepted(NAME, noise, NOW)
