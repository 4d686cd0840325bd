"""Laws of sealed objects: round trips, changed bytes or expectations do not open, and padding follows the
rule."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipfsmem.errors import OpenError
from ipfsmem.seal.objects import OVERHEAD, TYPES, Sealer, deflate_if_smaller, epoch_key, padded_size
from tests.support.effort import cases

kinds = st.sampled_from(sorted(TYPES))
contexts = st.text(max_size=80).filter(lambda text: text.isascii()) | st.text(max_size=20)
payloads = st.binary(max_size=1200) | st.builds(bytes, st.integers(0, 30_000))
keys = st.binary(min_size=32, max_size=32)
tags = st.binary(min_size=16, max_size=16)
epochs = st.integers(0, 2**32 - 1)
modest = settings(max_examples=cases(20, 300), deadline=None)


def make(epoch: int, key: bytes, tag: bytes) -> Sealer:
    return Sealer(epoch_key(epoch, key, tag), tag)


@modest
@given(kinds, contexts, payloads, keys, epochs, tags)
def test_sealed_object_round_trips_with_equal_bytes(kind, ctx, payload, key, epoch, tag):
    sealed = make(epoch, key, tag).seal(kind, ctx, payload)
    assert len(sealed) == padded_size(len(payload) + 4) + OVERHEAD
    other_device = make(epoch, key, tag)
    assert other_device.open(kind, ctx, sealed) == payload
    assert other_device.seal(kind, ctx, payload) == sealed


@modest
@given(kinds, contexts, st.binary(max_size=600), st.data())
def test_changed_bytes_do_not_open(kind, ctx, payload, data):
    sealer = make(1, bytes(32), bytes(16))
    sealed = sealer.seal(kind, ctx, payload)
    at = data.draw(st.integers(0, len(sealed) - 1))
    changed = sealed[:at] + bytes((sealed[at] ^ data.draw(st.integers(1, 255)),)) + sealed[at + 1 :]
    deflate_if_smaller = sealed[: data.draw(st.integers(0, len(sealed) - 1))]
    longer = sealed + data.draw(st.binary(min_size=1, max_size=600))
    for broken in (changed, deflate_if_smaller, longer):
        with pytest.raises(OpenError):
            sealer.open(kind, ctx, broken)


@modest
@given(
    st.tuples(kinds, contexts, epochs, keys, tags),
    st.tuples(kinds, contexts, epochs, keys, tags),
)
def test_changed_expectations_do_not_open(one, two):
    kind, ctx, epoch, key, tag = one
    sealed = make(epoch, key, tag).seal(kind, ctx, b"payload")
    for changed in ({0}, {1}, {2}, {3}, {4}, set(range(5))):
        other = tuple(b if i in changed else a for i, (a, b) in enumerate(zip(one, two, strict=True)))
        if other == one:
            continue
        kind, ctx, epoch, key, tag = other
        with pytest.raises(OpenError):
            make(epoch, key, tag).open(kind, ctx, sealed)


@modest
@given(st.binary(max_size=2000))
def test_random_bytes_never_open_or_crash(noise):
    sealer = make(1, bytes(32), bytes(16))
    for data in (noise, b"IPM1" + noise, b"IPM1" + noise.ljust(552, b"\0")):
        with pytest.raises(OpenError):
            sealer.open(3, "key", data)


@modest
@given(st.integers(0, 2**20))
def test_bucket_sizes_follow_the_rule(n):
    bucket = padded_size(n)
    assert bucket >= max(n, 512)
    assert padded_size(bucket) == bucket
    assert n <= 8192 or bucket <= n * 1.12
    assert padded_size(n + 1) >= bucket


texts = st.builds(
    lambda words, times: " ".join(words).encode() * times,
    st.lists(
        st.sampled_from(
            ["the", "user", "wants", "a", "short", "answer", "and", "no", "list", "at", "all", "ünd"]
        ),
        max_size=300,
    ),
    st.integers(1, 60),
)


@modest
@given(
    texts | st.binary(max_size=3000),
    st.integers(0, 9),
    st.sampled_from(
        [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]
    ),
    st.integers(9, 15),
    st.lists(st.integers(0, 3000), max_size=3),
)
def test_text_sealed_by_any_compressor_opens(text, level, strategy, window, pauses):
    box = make(1, bytes(32), bytes(16))
    compressor = zlib.compressobj(level, zlib.DEFLATED, -window, 8, strategy)
    stream, at = b"", 0
    for pause in sorted(pauses):
        # An empty stored block in the middle, as programs make that send what they have.
        stream += compressor.compress(text[at:pause]) + compressor.flush(zlib.Z_SYNC_FLUSH)
        at = max(at, pause)
    stream += compressor.compress(text[at:]) + compressor.flush()
    sealed = box.seal_deflated("key", stream)
    if padded_size(4 + len(stream)) < padded_size(4 + len(text)):
        assert box.open(3, "key", sealed) == text
    else:
        with pytest.raises(OpenError):
            box.open(3, "key", sealed)


@modest
@given(texts)
def test_object_sealed_by_a_writer_opens(text):
    box = make(1, bytes(32), bytes(16))
    stream = deflate_if_smaller(text)
    sealed = box.seal(3, "key", text) if stream is None else box.seal_deflated("key", stream)
    assert len(sealed) <= padded_size(4 + len(text)) + OVERHEAD
    assert box.open(3, "key", sealed) == text
