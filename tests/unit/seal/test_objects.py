"""Sealed objects equal the vectors and the examples of the format; invalid ones do not open."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import rich.pretty
from Crypto.Cipher import ChaCha20_Poly1305
from Crypto.Hash import BLAKE2b
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ipfsmem.errors import LimitError, OpenError, UsageError
from ipfsmem.seal import objects
from ipfsmem.seal.objects import EpochKey, Sealer, ek_id, epoch_key, padded_size

V = json.loads((Path(__file__).parents[3] / "fixtures/vectors/objects.json").read_text())
EK = bytes(range(32))
TAG = bytes.fromhex("3973bff87388964db243992eeb7c6506")


def sealer(epoch: int = 1, ek: bytes = EK, tag: bytes = TAG) -> Sealer:
    return Sealer(epoch_key(epoch, ek, tag), tag)


def payload(spec: dict) -> bytes:
    return spec["text"].encode() * spec.get("times", 1)


def label(row: dict) -> str:
    return f"{row['type']}-{row['epoch']}-{row['ctx'][:12]}-{row['size']}"


def test_sealed_memory_equals_the_example_of_the_format():
    sealed = sealer().seal(objects.MEMORY, "feedback_tone", b"User prefers direct critique.\n")
    assert len(sealed) == 556
    assert sealed[:32].hex() == "49504d3197e3d9622d8cb7e7a70d2a8c4c5a7e3b1d2cb07003554cc4e16165fe"
    assert (
        hashlib.sha256(sealed).hexdigest()
        == "06436720eaf8a833057ccc1782ddae7a88ad068d515ea2faed3d4e5e9ec3b6c2"
    )


def test_sealed_large_memory_equals_the_example_of_the_format():
    sealed = sealer().seal(objects.MEMORY, "feedback_tone", b"a" * 20_000)
    assert len(sealed) == 20_524
    assert (
        hashlib.sha256(sealed).hexdigest()
        == "34b434af434c83fdbb22f7071f84d5de7d000472a5042c68f57315ea0df9ef9a"
    )


def test_sealed_segment_equals_the_example_of_the_format():
    sealed = sealer(2).seal(objects.SEGMENT, "2026-04-14/00aabbccddeeff11/0", b"")
    assert len(sealed) == 556
    assert (
        hashlib.sha256(sealed).hexdigest()
        == "fce62b0e2ece730b42ccc2960b7020bc5e815989854caeeda76e898168328a38"
    )


def test_epoch_key_id_equals_the_example_of_the_format():
    assert ek_id(1, EK, TAG) == epoch_key(1, EK, TAG).id == "d3f4f36ce76c1012"
    assert ek_id(2, EK, TAG) == epoch_key(2, EK, TAG).id == "c9958c9a8989d0b3"


@pytest.mark.parametrize("row", V["ek_ids"])
def test_epoch_key_ids_equal_the_vectors(row):
    assert ek_id(row["epoch"], bytes.fromhex(row["ek"]), bytes.fromhex(row["vault_tag"])) == row["id"]


@pytest.mark.parametrize("row", V["sealed"], ids=label)
def test_sealed_objects_equal_the_vectors(row):
    box = sealer(row["epoch"])
    sealed = box.seal(row["type"], row["ctx"], payload(row["payload"]))
    assert hashlib.sha256(sealed).hexdigest() == row["sha256"]
    assert len(sealed) == row["size"]
    if "object" in row:
        assert sealed.hex() == row["object"]
    assert box.open(row["type"], row["ctx"].encode(), sealed) == payload(row["payload"])


@pytest.mark.parametrize("row", V["refused"], ids=lambda row: row["name"])
def test_invalid_objects_do_not_open(row):
    box = sealer(row["epoch"], bytes.fromhex(row["ek"]), bytes.fromhex(row["vault_tag"]))
    with pytest.raises(OpenError) as caught:
        box.open(row["type"], row["ctx"], bytes.fromhex(row["object"]))
    assert str(caught.value) == str(OpenError())
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("n", "size"), V["pad"])
def test_padded_sizes_equal_the_vectors(n, size):
    assert padded_size(n) == size


def test_padded_size_follows_the_formula():
    """Padmé with floating point logarithms, as the paper writes it."""
    from math import ceil, floor, log2

    for n in [*range(8193, 9000), *range(2**14 - 3, 2**14 + 3), 2**20 - 1, 123_456, 999_999]:
        e = floor(log2(n))
        unit = 2 ** (e - (floor(log2(e)) + 1))
        assert padded_size(n) == ceil(n / unit) * unit
    assert [padded_size(n) for n in (0, 512, 513, 1024, 1025, 8192)] == [512, 512, 1024, 1024, 2048, 8192]
    assert len({padded_size(n) for n in range(4, 65537)}) == 53


@pytest.mark.parametrize("size", [0, 30, 508, 509, 9000])
def test_object_equals_one_built_with_other_libraries(size):
    ctx, epoch, kind, body = b"some_key", 0x01020304, 3, b"x" * size

    def key(name: bytes) -> bytes:
        info = name + b"\0" + epoch.to_bytes(4, "big") + bytes((kind,))
        return HKDF(hashes.SHA256(), 32, TAG, info).derive(EK)

    aad = b"IPM1" + bytes((kind, 1)) + epoch.to_bytes(4, "big") + TAG + len(ctx).to_bytes(2, "big") + ctx
    text = (len(body).to_bytes(4, "big") + body).ljust(padded_size(4 + size), b"\0")
    digest = BLAKE2b.new(digest_bits=192, key=key(b"ipfsmem/v1/obj-nonce"))
    nonce = digest.update(len(aad).to_bytes(4, "big") + aad + text).digest()
    cipher = ChaCha20_Poly1305.new(key=key(b"ipfsmem/v1/obj-enc"), nonce=nonce)
    cipher.update(aad)
    whole = b"IPM1" + nonce + b"".join(cipher.encrypt_and_digest(text))
    assert sealer(epoch).seal(kind, ctx, body) == whole


def test_object_size_is_limited():
    box = sealer()
    # The last bucket, 63 times 16 KiB, that leaves room for the 44 bytes around it in 1 MiB.
    most = V["largest_payload"]
    assert most == 63 * 16384 - 4
    sealed = box.seal(objects.MEMORY, "k", bytes(most))
    assert len(sealed) == 63 * 16384 + 44 < objects.MAX_OBJECT
    assert box.open(objects.MEMORY, "k", sealed) == bytes(most)
    with pytest.raises(LimitError):
        box.seal(objects.MEMORY, "k", bytes(most + 1))
    with pytest.raises(OpenError):
        box.open(objects.MEMORY, "k", b"IPM1" + bytes(objects.MAX_OBJECT))


def test_invalid_seal_calls_are_refused():
    box = sealer()
    for kind in (0, 5, 9, 255, 256, -1):
        with pytest.raises(UsageError):
            box.seal(kind, "", b"")
        with pytest.raises(UsageError):
            box.open(kind, "", b"")
    with pytest.raises(UsageError):
        box.seal(objects.MEMORY, "k" * 65_536, b"")
    with pytest.raises(UsageError):
        box.seal(objects.MEMORY, "\ud800", b"")
    for epoch, ek, tag in [(-1, EK, TAG), (2**32, EK, TAG), (1, EK[1:], TAG), (1, EK, TAG + b"\0")]:
        with pytest.raises(UsageError):
            epoch_key(epoch, ek, tag)
    with pytest.raises(UsageError):
        Sealer(EpochKey(1, b"short", "00"), TAG)


def test_keys_are_absent_from_repr():
    key = epoch_key(3, EK, TAG)
    shown = f"{key} {key!r} {Sealer(key, TAG)!r} {rich.pretty.pretty_repr(key)} {(key,)}"
    assert repr(EK) not in shown
    assert EK.hex() not in shown
    assert key.id in shown
