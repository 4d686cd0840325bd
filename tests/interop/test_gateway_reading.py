"""Our tree and CAR readers with the real Go gateway, and random folders with the Go importer."""

from __future__ import annotations

import random
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ipfsmem.content.car import car_bytes, read_car
from ipfsmem.content.cid import CID
from ipfsmem.content.reader import Reader, drive, verify_block
from ipfsmem.content.tree import BuiltTree, build_tree
from ipfsmem.errors import NotFoundError
from tests.interop import trees
from tests.interop.counterparts import gopeer, gopeer_program

pytestmark = pytest.mark.interop

FILES = {
    "memory/a.md": b"one",
    "memory/caf\u00e9 \u65e5\u672c.md": b"two",
    "memory/big.bin": trees.chacha20("gateway", (1 << 20) + 7),
    **{f"many/entry_{n:06d}": b"x" for n in range(5000)},
}


@pytest.fixture(scope="module")
def tree() -> BuiltTree:
    return build_tree(FILES)


@pytest.fixture(scope="module")
def gateway(tree: BuiltTree, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    car = tmp_path_factory.mktemp("gateway") / "tree.car"
    car.write_bytes(car_bytes([tree.cid], tree.blocks))
    process = subprocess.Popen([gopeer_program(), "gateway", car], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url, root = process.stdout.readline().split()
        assert root == str(tree.cid)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def ask(url: str, accept: str) -> bytes:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        data: bytes = answer.read()
        return data


def test_paths_are_read_block_by_block_from_a_go_gateway(gateway: str, tree: BuiltTree) -> None:
    def get(cids: list[CID]) -> Mapping[CID, bytes]:
        found = {}
        for cid in cids:
            try:
                found[cid] = ask(f"{gateway}/ipfs/{cid}?format=raw", "application/vnd.ipld.raw")
            except urllib.error.HTTPError:
                continue
        return found

    reader = Reader()
    for path in ("memory/caf\u00e9 \u65e5\u672c.md", "memory/big.bin", "many/entry_004321"):
        found = drive(reader.resolve(tree.cid, path), get)
        assert drive(reader.read_file(found.cid), get) == FILES[path]
    with pytest.raises(NotFoundError):
        drive(reader.resolve(tree.cid, "many/entry_005000"), get)


def test_car_of_the_gateway_is_the_tree(gateway: str, tree: BuiltTree) -> None:
    data = ask(f"{gateway}/ipfs/{tree.cid}?format=car&dag-scope=all&car-dups=n", "application/vnd.ipld.car")
    assert dict(read_car(data)) == dict(tree.blocks)
    for cid, block in read_car(data):
        verify_block(cid, block)


def test_gateway_shows_our_files(gateway: str, tree: BuiltTree) -> None:
    assert ask(f"{gateway}/ipfs/{tree.cid}/memory/big.bin", "*/*") == FILES["memory/big.bin"]
    assert ask(f"{gateway}/ipfs/{tree.cid}/many/entry_000042", "*/*") == b"x"


@pytest.mark.parametrize("seed", range(3))
def test_random_folders_have_the_same_root(seed: int, tmp_path: Path) -> None:
    """Names of many lengths and scripts, around the size where folders become sharded."""
    gopeer_program()  # a skipped test creates nothing before
    rng = random.Random(seed)
    files: dict[str, bytes] = {}
    for _ in range((500, 2600, 4200)[seed]):
        alphabet = rng.choice(
            ("abc", "\u00e4\u00f6\u00fc\u00df", "\u65e5\u672c\u8a9e", "\U0001f9e0\U0001f525", " -_.!~")
        )
        name = "".join(rng.choices(alphabet + "0123456789", k=rng.randint(2, 40)))
        if name.strip("."):
            files[f"t/{name}"] = str(rng.randint(0, 9)).encode()
    trees.write(
        {"folder": [{"path": path, "text": data.decode()} for path, data in files.items()]}, tmp_path / "r"
    )
    assert gopeer("cid", tmp_path / "r") == str(build_tree(files).cid)
