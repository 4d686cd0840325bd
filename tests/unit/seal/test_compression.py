"""Compressed memories: one verdict for every stream, and the permitted contents of a sealed one (format section 3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipfsmem.errors import OpenError
from ipfsmem.seal import objects
from ipfsmem.seal.compression import MAX_INFLATED, deflate, inflate
from ipfsmem.seal.objects import OVERHEAD, Sealer, deflate_if_smaller, epoch_key, padded_size
from tests.unit.seal.make_deflate_vectors import make

FILE = Path(__file__).parents[3] / "fixtures/vectors/deflate.json"
V = json.loads(FILE.read_text())
TAG = bytes.fromhex(V["vault_tag"])
SEALER = Sealer(epoch_key(V["epoch"], bytes.fromhex(V["ek"]), TAG), TAG)
PROSE = b"The user wants the answer first and the reasons after it, in whole sentences.\n"


def payload(row: dict) -> bytes | None:
    spec = row["payload"]
    if spec is None:
        return None
    return bytes.fromhex(spec["hex"]) if "hex" in spec else spec["text"].encode() * spec["times"]


def name(row: dict) -> str:
    return row["name"]


def test_vector_file_equals_the_generated_one():
    assert make() == V


@pytest.mark.parametrize("row", V["streams"], ids=name)
def test_streams_inflate_as_in_the_vectors(row):
    stream, right = bytes.fromhex(row["stream"]), payload(row)
    if right is None:
        with pytest.raises(OpenError) as caught:
            inflate(stream)
        assert str(caught.value) == str(OpenError()) and caught.value.__cause__ is None
    else:
        assert inflate(stream) == right


@pytest.mark.parametrize("row", V["objects"], ids=name)
def test_compressed_objects_open_as_in_the_vectors(row):
    data, right = bytes.fromhex(row["object"]), payload(row)
    if right is None:
        with pytest.raises(OpenError) as caught:
            SEALER.open(row["type"], V["ctx"], data)
        assert str(caught.value) == str(OpenError()) and caught.value.__cause__ is None
    else:
        assert SEALER.open(row["type"], V["ctx"], data) == right


@pytest.mark.parametrize("row", [row for row in V["streams"] if len(row["stream"]) <= 2 * 508], ids=name)
def test_stream_inside_an_object_has_the_same_verdict(row):
    sealed = SEALER.seal_deflated(V["ctx"], bytes.fromhex(row["stream"]))
    right = payload(row)
    if right is None:
        with pytest.raises(OpenError):
            SEALER.open(objects.MEMORY, V["ctx"], sealed)
    else:
        assert SEALER.open(objects.MEMORY, V["ctx"], sealed) == right


def test_incompressible_text_is_stored_uncompressed():
    assert deflate_if_smaller(b"a" * 508) is None  # one bucket either way
    stream = deflate_if_smaller(b"a" * 509)
    assert stream is not None and len(stream) < 30
    noise = objects.hkdf_expand(bytes(32), b"noise", 32)
    assert (
        deflate_if_smaller(b"".join(objects.hkdf_expand(noise, bytes((n,)), 32) for n in range(64))) is None
    )
    assert deflate_if_smaller(b"a" * MAX_INFLATED) is not None
    assert deflate_if_smaller(b"a" * (MAX_INFLATED + 1)) is None


def test_compressed_sealed_memory_is_smaller_and_opens():
    text = PROSE * 40
    stream = deflate_if_smaller(text)
    assert stream is not None
    sealed = SEALER.seal_deflated("tone", stream)
    assert len(sealed) == 512 + OVERHEAD < padded_size(4 + len(text)) + OVERHEAD
    assert SEALER.open(objects.MEMORY, "tone", sealed) == text
    for kind in objects.TYPES - {objects.MEMORY}:
        with pytest.raises(OpenError):
            SEALER.open(kind, "tone", sealed)


@pytest.mark.parametrize("level", range(10))
def test_output_of_every_compression_level_inflates(level):
    for text in (PROSE * 9, bytes(range(256)) * 90, b"a" * MAX_INFLATED):
        assert inflate(deflate(text, level)) == text


def test_endless_stream_uses_bounded_memory():
    import tracemalloc

    bomb = deflate(bytes(64 * MAX_INFLATED), 9)
    tracemalloc.start()
    with pytest.raises(OpenError):
        inflate(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MAX_INFLATED
