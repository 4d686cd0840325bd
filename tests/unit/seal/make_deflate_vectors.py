"""Writes fixtures/vectors/deflate.json: raw deflate streams with their verdict, and sealed memories that
contain them.

Run it only when the format changes: `python -m tests.unit.seal.make_deflate_vectors`. `deflate_streams`
builds the streams bit by bit, pycryptodome the objects by format section 3: no code under test is used."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from Crypto.Cipher import ChaCha20_Poly1305
from Crypto.Hash import BLAKE2b

from tests.unit.seal.deflate_streams import bounds, cases, long

OUT = Path(__file__).parents[3] / "fixtures" / "vectors" / "deflate.json"
TAG = bytes.fromhex("3973bff87388964db243992eeb7c6506")
EK = bytes(range(32))
CTX = "feedback_tone"
DEFLATED = 0x8000_0000


def seal(
    stream: bytes, *, form: int = DEFLATED, kind: int = 3, bucket: int | None = None, tail: bytes = b""
) -> bytes:
    """Return an object around `stream` as a member could make it; `form` is added to the length."""
    text = (form + len(stream)).to_bytes(4, "big") + stream + tail
    text = text.ljust(bucket or pad(4 + len(stream)), b"\0")
    scope = b"\0" + (1).to_bytes(4, "big") + bytes((kind,))
    prk = hmac.digest(TAG, EK, "sha256")

    def key(name: bytes) -> bytes:
        return hmac.digest(prk, name + scope + b"\1", "sha256")

    aad = (
        b"IPM1" + bytes((kind, 1)) + (1).to_bytes(4, "big") + TAG + len(CTX).to_bytes(2, "big") + CTX.encode()
    )
    hashed = BLAKE2b.new(digest_bits=192, key=key(b"ipfsmem/v1/obj-nonce"))
    nonce = hashed.update(len(aad).to_bytes(4, "big") + aad + text).digest()
    cipher = ChaCha20_Poly1305.new(key=key(b"ipfsmem/v1/obj-enc"), nonce=nonce)
    cipher.update(aad)
    return b"IPM1" + nonce + b"".join(cipher.encrypt_and_digest(text))


def pad(n: int) -> int:
    """The bucket of section 3."""
    if n <= 8192:
        return max(512, 1 << (n - 1).bit_length())
    unit = 1 << (n.bit_length() - 1 - (n.bit_length() - 1).bit_length())
    return -(-n // unit) * unit


def of(count: int | None) -> dict[str, Any] | None:
    return None if count is None else {"text": "a", "times": count}


def make() -> dict[str, Any]:
    """The content of the file."""
    known = [
        (case.name, case.stream, None if case.payload is None else len(case.payload)) for case in cases()
    ]
    streams = [
        {"name": name, "stream": stream.hex(), "payload": of(count)}
        for name, stream, count in known + bounds()
    ]
    good = cases()[0].stream
    assert len(good) < 500
    objects: list[tuple[str, bytes, int | None, int]] = [
        ("a text of 600 bytes in a bucket of 512", seal(good), 600, 3),
        ("509 bytes, which need 1024 uncompressed", seal(long(509)), 509, 3),
        ("508 bytes, which need 512 uncompressed too", seal(long(508)), None, 3),
        ("600 bytes, in a bucket of 1024", seal(good, bucket=1024), None, 3),
        ("a stored block of 600 bytes: 1024, as uncompressed", seal(stored(600)), None, 3),
        ("bit 30 beside bit 31", seal(good, form=0xC000_0000), None, 3),
        ("bit 30 alone", seal(good, form=0x4000_0000), None, 3),
        ("bit 24 beside bit 31", seal(good, form=0x8100_0000), None, 3),
        ("a length of nothing", seal(b""), None, 3),
        ("a length beyond the object", seal(good, form=DEFLATED + 512), None, 3),
        ("a length that leaves out the last byte", seal(good, form=DEFLATED - 1), None, 3),
        ("a byte of the padding that is not zero", seal(good, tail=b"\0\1"), None, 3),
        ("a byte after the end, within the length", seal(good + b"\0"), None, 3),
        ("the bit is not set: the stream is the text", seal(good, form=0), -1, 3),
        *((f"type {kind}", seal(good, kind=kind), None, kind) for kind in (1, 2, 4, 6, 7, 8)),
        ("as long as a memory file may be", seal(long(983_040)), 983_040, 3),
        ("one byte longer", seal(long(983_041)), None, 3),
    ]
    rows = []
    for name, data, count, kind in objects:
        payload = {"hex": good.hex()} if count == -1 else of(count)
        row = {"name": name, "type": kind, "object": data.hex(), "payload": payload}
        row["sha256"] = hashlib.sha256(data).hexdigest()
        rows.append(row)
    return {
        "about": "Format 3, compressed memories: for opening only. `streams`: raw deflate, and what it comes to (text repeated"
        " `times`) or null when it is refused. `objects`: sealed with right keys under `ek`, epoch 1, ctx `feedback_tone`, as"
        " the type of the row; null again: the one error.",
        "ek": EK.hex(),
        "vault_tag": TAG.hex(),
        "epoch": 1,
        "ctx": CTX,
        "streams": streams,
        "objects": rows,
    }


def stored(count: int) -> bytes:
    """One stored block of `a`."""
    return b"\1" + count.to_bytes(2, "little") + (count ^ 0xFFFF).to_bytes(2, "little") + b"a" * count


if __name__ == "__main__":
    OUT.write_text(json.dumps(make(), indent=1, ensure_ascii=False) + "\n", "utf-8")
