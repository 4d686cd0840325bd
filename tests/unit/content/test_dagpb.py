"""dag-pb nodes and UnixFS messages: the shared vectors, both ways."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.content.cid import parse_cid, raw_cid
from ipfsmem.content.dagpb import (
    BlockLink,
    UnixFS,
    decode_node,
    decode_unixfs,
    encode_unixfs,
)
from ipfsmem.content.limits import BLOCK_MAX
from ipfsmem.errors import FormatError, LimitError
from tests.support.content_lab import encode_node, pb_cid

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "vectors" / "dagpb.json").read_text("utf-8")
)


def links_of(vector: dict[str, Any]) -> list[BlockLink]:
    return [BlockLink(link["name"], parse_cid(link["cid"]), link["tsize"]) for link in vector["links"]]


def data_of(vector: dict[str, Any]) -> bytes | None:
    return None if vector["data"] is None else bytes.fromhex(vector["data"])


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["about"])
def test_nodes_are_encoded_and_decoded_as_in_the_vectors(vector: dict[str, Any]) -> None:
    links, data = links_of(vector), data_of(vector)
    block = encode_node(links, data)
    assert block.hex() == vector["block"]
    assert str(pb_cid(hashlib.sha256(block).digest())) == vector["cid"]
    node = decode_node(block)
    assert node.data == data
    assert list(node.links) == sorted(links, key=lambda link: link.name.encode())


@pytest.mark.parametrize("vector", VECTORS["accepted"], ids=lambda vector: vector["about"])
def test_valid_nodes_of_other_writers_are_accepted(vector: dict[str, Any]) -> None:
    node = decode_node(bytes.fromhex(vector["block"]))
    assert list(node.links) == links_of(vector) and node.data == data_of(vector)


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["about"])
def test_invalid_nodes_are_refused(vector: dict[str, str]) -> None:
    with pytest.raises(FormatError):
        decode_node(bytes.fromhex(vector["block"]))


def test_block_limit_applies_before_decoding() -> None:
    with pytest.raises(LimitError):
        decode_node(bytes(BLOCK_MAX + 1))


def test_node_name_must_be_unicode() -> None:
    with pytest.raises(FormatError, match="Unicode"):
        encode_node([BlockLink("\udcff", raw_cid(bytes(32)), 0)], None)


@pytest.mark.parametrize("vector", VECTORS["unixfs"], ids=lambda vector: vector["about"])
def test_unixfs_messages_are_encoded_and_decoded_as_in_the_vectors(vector: dict[str, Any]) -> None:
    message = UnixFS(
        vector["type"],
        bytes.fromhex(vector["data"]),
        vector["filesize"],
        tuple(vector["blocksizes"]),
        vector["hash_type"],
        vector["fanout"],
    )
    assert encode_unixfs(message).hex() == vector["message"]
    assert decode_unixfs(bytes.fromhex(vector["message"])) == message


@pytest.mark.parametrize("vector", VECTORS["unixfs_accepted"], ids=lambda vector: vector["about"])
def test_unixfs_messages_of_other_writers_are_decoded(vector: dict[str, Any]) -> None:
    message = decode_unixfs(bytes.fromhex(vector["message"]))
    assert (message.type, message.filesize, list(message.blocksizes)) == (
        vector["type"],
        vector["filesize"],
        vector["blocksizes"],
    )


@pytest.mark.parametrize("vector", VECTORS["unixfs_refused"], ids=lambda vector: vector["about"])
def test_invalid_unixfs_messages_are_refused(vector: dict[str, str]) -> None:
    with pytest.raises(FormatError):
        decode_unixfs(bytes.fromhex(vector["message"]))
