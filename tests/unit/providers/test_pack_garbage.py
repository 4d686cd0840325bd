"""The cost of scanning a pack that contains garbage, in reads, and the blocks still found in it."""

from __future__ import annotations

import io

import pytest
from ipfsmem_providers.packs.index import JUNK_MAX, scan

from ipfsmem.content.car import car_bytes
from ipfsmem.content.tree import build_tree
from ipfsmem.errors import FormatError

TREE = build_tree({f"{number}.md": f"text {number}".encode() for number in range(50)})
PACK = car_bytes([TREE.cid], TREE.blocks)
TAIL = 1 << 20


class Counting(io.BytesIO):
    """A file that counts how often it is read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x01",
        b"\x00",
        b"\x02",
        b"\x03\x01",
        b"\x24" + b"\x01" * 36,
        b"\x7f",
        b"\xff",
        b"\x80\x01",
        b"\x81\x80",
    ],
    ids=lambda garbage: garbage[:4].hex(),
)
@pytest.mark.parametrize("inside", [False, True], ids=["behind", "inside"])
def test_scan_of_garbage_makes_bounded_reads(garbage: bytes, inside: bool) -> None:
    blocks = len(TREE.blocks)
    file = Counting(PACK + garbage * (TAIL // len(garbage)) + (PACK[60:] if inside else b""))
    found = []
    with pytest.raises(FormatError):
        for section in scan(file):
            found.append(section)
    assert sum(section.sound for section in found) == blocks
    assert file.reads <= 12 * (JUNK_MAX + 2 * blocks)


def test_scan_skips_invalid_sections() -> None:
    after_header = PACK[1 + PACK[0] :]
    file = io.BytesIO(PACK + b"\x01\x01" * 3 + after_header)
    found = list(scan(file))
    assert sum(section.sound for section in found) == 2 * len(TREE.blocks)
    assert sum(not section.sound for section in found) == 3
