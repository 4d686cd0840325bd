"""DAG-CBOR: values round-trip, links stay links, noise is refused, and another library agrees."""

from __future__ import annotations

import hashlib
from typing import Any

import libipld
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipfsmem_providers.web3storage import dag_cbor

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.errors import FormatError
from tests.support.content_lab import pb_cid
from tests.support.effort import cases

cids = st.builds(
    lambda data, kind: kind(hashlib.sha256(data).digest()),
    st.binary(max_size=4),
    st.sampled_from([raw_cid, pb_cid]),
)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
plain = st.none() | st.booleans() | st.integers(-(2**64), 2**64 - 1) | texts | st.binary(max_size=40)
values = st.recursive(
    plain | cids,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


@given(values)
@settings(max_examples=cases(50, 750))
def test_encoded_value_decodes_to_itself(value: Any) -> None:
    data = dag_cbor.encode(value)
    assert dag_cbor.decode(data) == value
    assert dag_cbor.encode(dag_cbor.decode(data)) == data


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
        max_leaves=20,
    )
)
@settings(max_examples=cases(30, 500))
def test_encoding_equals_another_library(value: Any) -> None:
    assert libipld.encode_dag_cbor(value) == dag_cbor.encode(value)


@given(st.binary(max_size=60))
@settings(max_examples=cases(60, 1000))
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        dag_cbor.decode(data)
    except FormatError:
        pass


@given(values, st.data())
@settings(max_examples=cases(30, 500))
def test_truncated_cbor_is_refused(value: Any, data: st.DataObject) -> None:
    whole = dag_cbor.encode(value)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(FormatError):
        dag_cbor.decode(whole[:cut])


def test_bytes_that_look_like_a_cid_stay_bytes() -> None:
    multihash = b"\x12\x20" + bytes(32)
    cid = CID(1, 0x71, multihash)
    back = dag_cbor.decode(dag_cbor.encode({"a": cid.encode(), "b": multihash, "c": cid}))
    assert type(back["a"]) is bytes and type(back["b"]) is bytes and isinstance(back["c"], CID)


def test_deep_and_unusual_values_are_encoded_or_refused() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for value in (deep, 1.5, object(), {1: 2}, {"a": {b"x": 1}}, "\ud800", 2**64):
        with pytest.raises(FormatError):
            dag_cbor.encode(value)
    for data in (
        b"\x81" * 5000,
        b"\x9f\xff",
        b"\xd8\x2b\x00",
        b"\xd8\x2a\x41\x01",
        b"\xa2\x61a\x01\x61a\x02",
        b"\xbb" + b"\xff" * 8,
        b"\x61\xff",
        b"\xf8\x20",
        b"\x01\x01",
    ):
        with pytest.raises(FormatError):
            dag_cbor.decode(data)


def test_json_form_is_sorted_and_marks_links_and_bytes() -> None:
    value = {"b": b"\x01\x02\x03", "aa": [raw_cid(bytes(32)), None], "a": {"é": 'x"\n'}}
    text = dag_cbor.encode_json(value).decode()
    assert text == (
        '{"a":{"é":"x\\"\\n"},"aa":[{"/":"bafkreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},null],'
        '"b":{"/":{"bytes":"AQID"}}}'
    )
