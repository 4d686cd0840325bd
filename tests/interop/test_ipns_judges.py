"""Our IPNS records with the Go and the JavaScript library: all accept, refuse and prefer the same records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.published import ipns_record
from tests.interop.counterparts import gopeer, node

pytestmark = pytest.mark.interop
VECTORS: dict[str, Any] = json.loads(Path("fixtures/vectors/ipns.json").read_text())

# Records that a library accepts and we refuse, and why.
GO_TAKES = {
    "signature twice": "protobuf lets the last one win; two readers could see two records",
    "data twice": "protobuf lets the last one win",
    "V1 sequence differs, no V1 value": "V1 fields are ignored unless a V1 value or signature is there",
    "a V1 time to live that differs, no V1 value": "the same",
}
JS_TAKES = GO_TAKES | {
    "V1 value without the other V1 fields": "absent V1 fields are not compared",
    "a V1 signature alone: then all V1 fields count": "absent V1 fields are not compared",
    "value twice in the signed data": "any CBOR passes, the last key wins",
    "no sequence in the signed data": "the sequence is undefined",
    "sequence is text": "any CBOR passes",
    "sequence not in shortest form": "any CBOR passes",
    "indefinite map": "any CBOR passes",
    "a 13th month": "JavaScript's dates roll over or are invalid, which compares as not expired",
}
# Records that we accept and a library refuses.
JS_REFUSES = {
    "V1 fields that are zero left out beside a V1 value": "an absent number is no zero there; protobuf's writers leave zeros out",
}


def why(case: dict[str, Any]) -> str:
    return str(case["why"])


def file_of(case: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "record"
    path.write_bytes(bytes.fromhex(case["record"]))
    return path


@pytest.mark.parametrize("case", [*VECTORS["make"], *VECTORS["accept"]], ids=why)
def test_records_are_accepted_with_the_same_meaning(case: dict[str, Any], tmp_path: Path) -> None:
    record = ipns_record.parse_record(bytes.fromhex(case["record"]))
    path = file_of(case, tmp_path)
    value, sequence, validity, ttl = gopeer("ipns-verify", case["name"], path).split(" ")
    assert (value, int(sequence), int(ttl)) == (record.value, record.sequence, record.ttl)
    assert ipns_record._parse_time(validity) == record.validity
    if case["why"] in JS_REFUSES:
        with pytest.raises(AssertionError):
            node("ipns-verify.mjs", case["name"], path)
        return
    value, sequence, validity, ttl = node("ipns-verify.mjs", case["name"], path).split(" ")
    assert (value, int(sequence), int(ttl)) == (record.value, record.sequence, record.ttl)
    assert ipns_record._parse_time(validity) == record.validity


@pytest.mark.parametrize("case", VECTORS["refuse"], ids=why)
def test_invalid_records_are_refused_by_all_libraries(case: dict[str, Any], tmp_path: Path) -> None:
    if case["why"] == "runs out at this very nanosecond":
        pytest.skip("the judges use today's date")
    path = file_of(case, tmp_path)
    for judge, takes in (
        (lambda: gopeer("ipns-verify", case["name"], path), GO_TAKES),
        (lambda: node("ipns-verify.mjs", case["name"], path), JS_TAKES),
    ):
        if case["why"] in takes:
            judge()
        else:
            with pytest.raises(AssertionError):
                judge()


@pytest.mark.parametrize("case", VECTORS["select"], ids=why)
def test_newest_record_is_the_same_in_go(case: dict[str, Any], tmp_path: Path) -> None:
    paths = []
    for number, record in enumerate(case["records"]):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(bytes.fromhex(record))
    assert gopeer("ipns-select", VECTORS["make"][0]["name"], *paths) == str(case["best"])
