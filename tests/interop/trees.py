"""Trees of fixtures/vectors/cid_trees.json, written to a disk or built in memory.

Their rules are explained in that file; they are few, so that any language can follow them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"


def load() -> dict[str, Any]:
    """Return the vectors of the file."""
    data: dict[str, Any] = json.loads((VECTORS / "cid_trees.json").read_text("utf-8"))
    return data


def content(rule: dict[str, Any]) -> bytes:
    """Return the bytes of one file by its rule."""
    if "text" in rule:
        return str(rule["text"]).encode()
    if "zeros" in rule:
        return bytes(rule["zeros"])
    if "sha256_stream" in rule:
        seed, size = rule["sha256_stream"]["seed"].encode(), rule["sha256_stream"]["size"]
        blocks = (hashlib.sha256(seed + n.to_bytes(8, "big")).digest() for n in range(-(-size // 32)))
        return b"".join(blocks)[:size]
    return chacha20(rule["chacha20"]["seed"], rule["chacha20"]["size"])


def chacha20(seed: str, size: int) -> bytes:
    """Keystream of ChaCha20 with the SHA-256 of `seed` as key and a zero nonce (IPIP-0499's inputs)."""
    return _keystream(seed).update(bytes(size))


def _keystream(seed: str) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    return Cipher(ChaCha20(hashlib.sha256(seed.encode()).digest(), bytes(16)), None).encryptor()


class KeystreamFile:
    """A file of ChaCha20 keystream that is never held completely; may return fewer bytes than requested,
    as pipes do."""

    def __init__(self, seed: str, size: int, most: int = 1 << 20) -> None:
        self._stream = _keystream(seed)
        self._left = size
        self._zeros = memoryview(bytes(most))

    def read(self, size: int, /) -> bytes:
        taken = min(size, self._left, len(self._zeros))
        self._left -= taken
        data: bytes = self._stream.update(self._zeros[:taken])
        return data


def files(tree: dict[str, Any]) -> dict[str, bytes | None]:
    """Return path and bytes of everything in a tree, None for an explicit folder; path "" is the root
    itself."""
    if "file" in tree:
        return {"": content(tree["file"])}
    found: dict[str, bytes | None] = {"": None}
    for rule in tree["folder"]:
        if "names" in rule:
            data = content(rule)
            for name in names(rule["names"]):
                found[rule.get("path", "") + name] = data
        else:
            found[rule["path"]] = None if rule.get("empty_folder") else content(rule)
    return found


def names(rule: dict[str, Any]) -> list[str]:
    """Names of many files by rule."""
    if "list" in rule:
        return list(rule["list"])
    if "prefix" in rule:
        return [f"{rule['prefix']}{n:0{rule['digits']}d}" for n in range(rule["count"])]
    alphabet = "abcdefghijklmnopqrstuvwxyz01234567890-_"
    lengths = [length for count, length in rule["lengths"] for _ in range(count)]
    stream = chacha20(rule["keystream"], sum(lengths))
    out = []
    at = 0
    for length in lengths:
        out.append("".join(alphabet[byte % len(alphabet)] for byte in stream[at : at + length]))
        at += length
    return out


def write(tree: dict[str, Any], at: Path) -> None:
    """Write a tree to disk; `at` must not exist."""
    for path, data in files(tree).items():
        target = at / path if path else at
        if data is None:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def read(at: Path) -> dict[str, bytes | None]:
    """Return the files on disk in the form of `files`, with every folder."""
    if at.is_file():
        return {"": at.read_bytes()}
    found: dict[str, bytes | None] = {"": None}
    for path in at.rglob("*"):
        found[path.relative_to(at).as_posix()] = path.read_bytes() if path.is_file() else None
    return found


def with_folders(tree: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """Return the files with the folders that follow from their paths."""
    out = dict(tree)
    for path in tree:
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            out.setdefault("/".join(parts[:count]), None)
    return out
