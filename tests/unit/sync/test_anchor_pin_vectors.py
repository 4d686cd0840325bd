"""fixtures/vectors/anchor_pins.json: the pinned root of a further anchor is valid as a whole or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipfsmem.canonical import unb64
from ipfsmem.content.cid import parse_cid
from ipfsmem.content.fetch import drive
from ipfsmem.content.reader import Reader
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import IpfsmemError
from ipfsmem.sync.anchor_pins import AnchorRoot, read_anchor_root, ring_tree
from ipfsmem.sync.names import pin_name
from tests.support.anchor_pin_vectors import FILE, build

VECTORS = json.loads(FILE.read_text("utf-8"))
ANCHOR = bytes.fromhex(VECTORS["anchor"])


def read(files: dict[str, bytes]) -> AnchorRoot:
    tree = build_tree(files)
    blocks = dict(tree.blocks)
    return drive(
        read_anchor_root(Reader(), tree.cid, ANCHOR), lambda cids: {cid: blocks[cid] for cid in cids}
    )


def files_of(entry: dict[str, Any]) -> dict[str, bytes]:
    records = {f"{name}.ipns": unb64(record, name) for name, record in entry["records"].items()}
    return {"keyring.json": VECTORS["keyrings"][entry["keyring"]].encode(), **records}


def test_vector_file_equals_the_generated_one() -> None:
    assert build() == VECTORS
    assert pin_name(ANCHOR) == VECTORS["pin_name"]


@pytest.mark.parametrize("entry", VECTORS["roots"], ids=lambda entry: entry["name"])
def test_each_root_is_read_as_in_the_vectors(entry: dict[str, Any]) -> None:
    files = files_of(entry)
    assert build_tree(files).cid == parse_cid(entry["root"])
    if "refused" in entry:
        with pytest.raises(IpfsmemError):
            read(files)
        return
    found = read(files)
    assert str(ring_tree(found.keyring).cid) == entry["ring_root"]
    assert list(found.records) == entry["leads_by"]
    assert str(found.tree().cid) == entry["pinned_as"]


@pytest.mark.parametrize("path", sorted(files_of(VECTORS["roots"][0])))
def test_changed_byte_of_an_anchor_pin_is_detected(path: str) -> None:
    files = files_of(VECTORS["roots"][0])
    whole = read(files)
    data = files[path]
    for at in range(0, len(data), max(1, len(data) // 150)):
        changed = bytearray(data)
        changed[at] ^= 1
        try:
            found = read({**files, path: bytes(changed)})
        except IpfsmemError:
            continue
        # An obsolete signature, which is not verified, may differ without effect.
        assert path.endswith(".ipns") and found.keyring == whole.keyring
