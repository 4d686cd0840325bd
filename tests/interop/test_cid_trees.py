"""Our root CIDs and CARs against the Go library and the JavaScript importer, on every tree of the vectors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.content.car import read_car
from ipfsmem.files.pack import pack_tree
from tests.interop import trees
from tests.interop.counterparts import gopeer, node

pytestmark = pytest.mark.interop
VECTORS = trees.load()


@pytest.mark.parametrize("vector", VECTORS["trees"], ids=lambda vector: vector["name"])
def test_root_is_the_same_in_go_and_javascript(vector: dict[str, Any], tmp_path: Path) -> None:
    source, car = tmp_path / "source", tmp_path / "out.car"
    trees.write(vector, source)
    with car.open("wb") as out:
        packed = pack_tree(source, out)
    assert str(packed.root) == vector["cid"]
    assert car.stat().st_size == packed.car_size

    # Go: imports the same, finds the CAR complete and without an extra block, unpacks the same bytes.
    assert gopeer("cid", source) == vector["cid"]
    blocks = sum(1 for _ in read_car(car.read_bytes()))
    assert gopeer("verify", car) == f"{vector['cid']} {blocks}"
    gopeer("unpack", car, tmp_path / "unpacked")
    expected = trees.with_folders(trees.files(vector))
    assert trees.read(tmp_path / "unpacked") == expected

    # JavaScript: the same three.
    assert node("cid.mjs", source) == vector["cid"]
    read = json.loads(node("readcar.mjs", car))
    assert read["root"] == vector["cid"]
    hashes = {
        path: None if data is None else hashlib.sha256(data).hexdigest() for path, data in expected.items()
    }
    assert dict(read["rows"]) == hashes

    # And in reverse: we read what Go packed.
    assert gopeer("pack", source, tmp_path / "go.car") == vector["cid"]
    assert dict(read_car((tmp_path / "go.car").read_bytes())) == dict(read_car(car.read_bytes()))


@pytest.mark.slow
def test_file_of_over_1024_chunks_has_the_same_cid_everywhere(tmp_path: Path) -> None:
    (vector,) = [vector for vector in VECTORS["large"] if "zeros" in vector["file"]]
    source = tmp_path / "zeros"
    with source.open("wb") as sparse:
        sparse.truncate(vector["file"]["zeros"])
    assert str(pack_tree(source).root) == vector["cid"]
    assert gopeer("cid", source) == vector["cid"]
    assert node("cid.mjs", source) == vector["cid"]


def test_go_refuses_a_damaged_car(tmp_path: Path) -> None:
    source, car = tmp_path / "source", tmp_path / "out.car"
    trees.write(VECTORS["trees"][3], source)
    with car.open("wb") as out:
        pack_tree(source, out)
    data = bytearray(car.read_bytes())
    data[-1] ^= 1
    car.write_bytes(data)
    with pytest.raises(AssertionError, match=r"mismatch|hash"):
        gopeer("verify", car)
