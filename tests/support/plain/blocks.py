"""Sections 6 and 7 of docs/FORMAT.md as far as a reader of small vaults needs them: CIDs, CARs, folders, IPNS records."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from hashlib import sha256

import nacl.bindings
import nacl.exceptions

from tests.support.plain.texts import NotJudged, Refused

RAW, DAG_PB, KEY = 0x55, 0x70, 0x72
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class Missing(Exception):
    """A block is missing or has the wrong content."""


class Nowhere(Missing):
    """A block is missing."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        if at >= len(data) or shift > 62:
            raise Refused("a number that does not end")
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            if byte == 0 and shift:
                raise Refused("a number in a longer form")
            return value, at
        shift += 7


def cid_text(cid: bytes) -> str:
    return "b" + base64.b32encode(cid).decode().lower().rstrip("=")


def parse_cid(text: str) -> bytes:
    """Parse a CID of version 1 in base32, the only form in vaults."""
    if not re.fullmatch(r"b[a-z2-7]+", text):
        raise Refused("no CID in base32")
    body = text[1:].upper()
    return base64.b32decode(body + "=" * (-len(body) % 8))


def raw_cid(digest: str) -> bytes:
    return b"\x01\x55\x12\x20" + bytes.fromhex(digest)


def name_of(public: bytes) -> str:
    """Return the IPNS name of an Ed25519 key."""
    number = int.from_bytes(b"\x01\x72\x00\x24\x08\x01\x12\x20" + public, "big")
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _BASE36[digit] + text
    return "k" + text


def key_of(name: str) -> bytes:
    """Return the Ed25519 key of a name in base36 or base32."""
    data = parse_cid(name) if name.startswith("b") else int(name[1:], 36).to_bytes(40, "big")
    if not data.startswith(b"\x01\x72\x00\x24\x08\x01\x12\x20"):
        raise Refused("no name of an Ed25519 key")
    return data[8:]


def read_car(data: bytes) -> dict[bytes, bytes]:
    size, at = varint(data, 0)
    at += size
    blocks = {}
    while at < len(data):
        size, at = varint(data, at)
        cid, blocks[data[at : at + 36]] = data[at : at + 36], data[at + 36 : at + size]
        assert sha256(blocks[cid]).digest() == cid[4:]
        at += size
    return blocks


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the fields of a protobuf message in order."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 0:
            found.append((tag >> 3, value))
        elif tag & 7 == 2 and at + value <= len(data):
            found.append((tag >> 3, data[at : at + value]))
            at += value
        else:
            raise Refused("a field that is cut off or of an unknown kind")
    return found


class Tree:
    """A root and the available blocks."""

    def __init__(self, root: bytes, blocks: Mapping[bytes, bytes]) -> None:
        self.root, self.blocks = root, blocks

    def _block(self, cid: bytes) -> bytes:
        if cid not in self.blocks:
            raise Nowhere(cid_text(cid))
        return self.blocks[cid]

    def _node(self, cid: bytes) -> tuple[list[tuple[str, bytes]], dict[int, int | bytes]]:
        if cid[1] != DAG_PB:
            raise Missing("a file where a folder should be")
        links, data = [], b""
        try:
            for number, value in _fields(self._block(cid)):
                assert isinstance(value, bytes)
                if number == 2:
                    link = dict(_fields(value))
                    name = link.get(2, b"")
                    assert isinstance(name, bytes) and isinstance(link[1], bytes)
                    links.append((name.decode(), link[1]))
                else:
                    data = value
            message = dict(_fields(data))
        except (Refused, AssertionError, KeyError, UnicodeDecodeError) as error:
            raise Missing(f"no node: {error}") from error
        return links, message

    def _folder(self, cid: bytes) -> dict[str, bytes]:
        links, message = self._node(cid)
        if message.get(1) == 5:
            raise NotJudged("a sharded folder")
        if message.get(1) != 1 or len({name for name, _ in links}) < len(links):
            raise Missing("no folder")
        return dict(links)

    def cid(self, path: str) -> bytes | None:
        """Return the CID at a path; None where the folders on the way exist and have no such name."""
        cid = self.root
        for part in path.split("/"):
            found = self._folder(cid).get(part)
            if found is None:
                return None
            cid = found
        return cid

    def names(self) -> list[str]:
        """Return the names in the root's folder."""
        return list(self._folder(self.root))

    def file(self, path: str) -> bytes | None:
        cid = self.cid(path)
        return None if cid is None else self._data(cid)

    def _data(self, cid: bytes) -> bytes:
        if cid[1] == RAW:
            return self._block(cid)
        links, message = self._node(cid)
        if message.get(1) != 2:
            raise Missing("no file")
        own = message.get(2, b"")
        assert isinstance(own, bytes)
        return own + b"".join(self._data(link) for _, link in links)


def folder_of_one(name: str, data: bytes) -> str:
    """Return the CID of a folder with one small file."""
    cid = raw_cid(sha256(data).hexdigest())
    size, made = len(data), b""
    while size > 127:
        made, size = made + bytes([size & 127 | 128]), size >> 7
    link = b"\x0a\x24" + cid + b"\x12" + bytes([len(name)]) + name.encode() + b"\x18" + made + bytes([size])
    node = b"\x12" + bytes([len(link)]) + link + b"\x0a\x02\x08\x01"
    return cid_text(b"\x01\x70\x12\x20" + sha256(node).digest())


def _cbor(data: bytes, at: int) -> tuple[object, int]:
    kind, short = data[at] >> 5, data[at] & 31
    at += 1
    if short >= 24:
        size = {24: 1, 25: 2, 26: 4, 27: 8}[short]
        short, at = int.from_bytes(data[at : at + size], "big"), at + size
    if kind == 0:
        return short, at
    if kind in (2, 3):
        return data[at : at + short], at + short
    if kind != 5:
        raise Refused("an unknown kind of CBOR")
    found: dict[bytes, object] = {}
    for _ in range(short):
        name, at = _cbor(data, at)
        assert isinstance(name, bytes)
        found[name], at = _cbor(data, at)
    return found, at


def signed_by(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        nacl.bindings.crypto_sign_open(signature + message, public)
    except (nacl.exceptions.CryptoError, ValueError):
        return False
    return len(signature) == 64


def record_value(name: str, record: bytes) -> str:
    """Return the target of a valid record of a name."""
    try:
        fields = dict(_fields(record))
        data, signature = fields[9], fields[8]
        assert isinstance(data, bytes) and isinstance(signature, bytes)
        signed, _ = _cbor(data, 0)
        assert isinstance(signed, dict)
        value = signed[b"Value"]
        assert isinstance(value, bytes)
    except (Refused, KeyError, AssertionError, IndexError) as error:
        raise Refused(f"no record: {error}") from error
    if not signed_by(key_of(name), signature, b"ipns-signature:" + data):
        raise Refused("a record that its name did not sign")
    return value.decode()
