"""Untrusted bytes and fields give a checked entry or one of our errors."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.causal.clock import MAX_AHEAD_MS, ZERO, hlc_after_seeing, hlc_ms, next_hlc
from ipfsmem.causal.value import Loc, Value, check_entry, decode_entry, encode_entry, verify_value
from ipfsmem.errors import FormatError

near = st.sampled_from(
    ["", "0" * 16, "0" * 32, "0" * 64, "A" * 86, "live", "forgotten", "t/2026-04-14/", "m/k"]
)
text = st.one_of(near, st.text(max_size=20))
locs = st.one_of(st.none(), st.builds(Loc, text, text, st.integers()))
values = st.builds(
    Value,
    b=st.lists(text, max_size=5).map(tuple),
    body=st.none() | text,
    h=text,
    kind=text,
    loc=locs,
    base=locs,
    s=text,
)
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60), JSON.map(msgspec.json.encode), values.map(lambda v: encode_entry({"d": v}))
    )
)
def test_foreign_entries_are_checked_or_refused(data: bytes) -> None:
    try:
        entry = decode_entry("m/k", data)
        assert encode_entry(entry) == data
        check_entry("m/k", entry)
    except FormatError:
        pass


def test_deep_nesting_raises_our_error() -> None:
    for deep in (b'{"a":' * 100_000, b"[" * 100_000, b'{"\xff":1}', b'{"a":"\\ud800"}'):
        try:
            decode_entry("m/k", deep)
        except FormatError:
            continue
        raise AssertionError(deep[:10])


@settings(deadline=None)
@given(text, text, values)
def test_any_value_is_checked_without_other_errors(name: str, dot: str, value: Value) -> None:
    try:
        check_entry(name, {dot: value})
    except FormatError:
        pass
    assert not verify_value(bytes(32), name, dot, value, bytes(16))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**49), st.integers(0, 2**64 - 1)), max_size=20))
def test_clock_grows_and_stays_near(steps: list[tuple[bool, int, int]]) -> None:
    last, latest = ZERO, 0
    for tick, now, seen in steps:
        before = last
        latest = max(latest, min(now, 2**48 - 1))
        if not tick:
            last = hlc_after_seeing(last, f"{seen:016x}", now)
            assert last >= before
        elif int(before, 16) < 2**64 - 1:
            last = next_hlc(last, now)
            assert last > before
        assert hlc_ms(last) <= latest + MAX_AHEAD_MS + 1
