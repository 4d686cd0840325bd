"""Descriptions of a provider: its purpose, the effects of missing capabilities, and whether returned data equals sent data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import pytest

from ipfsmem.content.cid import CID
from ipfsmem.content.tree import build_tree
from ipfsmem.provider.abilities import good_for, limits
from ipfsmem.provider.contract import Block, Capabilities
from ipfsmem.provider.probe import OVERALL, probe
from ipfsmem.testing import SeededRandom, SimCloud, SimProvider
from tests.unit.providers.sick_lab import KINDS, bench

#: Providers without some capabilities, and their names.
PARTIAL = {"pinning_service": "pins only", "gateway": "read only", "routing": "names only"}

LIMITED = {*PARTIAL, "pinata-car", "pinata-free", "pinata-legacy", "filebase-s3", "filebase-rpc"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_provider_is_described_by_its_purpose(kind: str, tmp_path: Path) -> None:
    with bench(kind, tmp_path / "here") as at:
        can = at.open().capabilities
        assert good_for(can) == PARTIAL.get(kind, "full")
        assert bool(limits(can)) == (kind in LIMITED)


def test_every_combination_of_capabilities_has_a_description() -> None:
    fields = ("put", "partial_car", "keeps_root", "blocks", "pin", "list", "unpin", "names", "durable")
    for bits in range(1 << len(fields)):
        can = Capabilities(**{field: bool(bits >> n & 1) for n, field in enumerate(fields)})
        said = "; ".join([good_for(can), *limits(can)])
        assert said and not any(word in said for word in ("partial_car", "keeps_root", "capabilit"))
        assert (good_for(can) == "full") == (can.put and can.blocks and (can.names or can.list))
        if good_for(can) != "full":
            assert limits(can) or good_for(can) == "nothing" or not can.put


def _steps(provider: SimProvider) -> dict[str, str]:
    steps = asyncio.run(probe(provider, now_ms=1_800_000_000_000, random=SeededRandom(1)))
    return {step.what: f"{step.outcome}: {step.text}" for step in steps}


def _one_file(files: dict[str, bytes]) -> dict[str, bytes]:
    return dict(list(files.items())[:1])


def _other_bytes(files: dict[str, bytes]) -> dict[str, bytes]:
    return {**files, "folder/data.bin": b"other"}


@pytest.mark.parametrize(
    ("keep", "words"), [(_one_file, "came back not"), (_other_bytes, "with other bytes")]
)
def test_returned_blocks_are_compared_with_sent_ones(
    keep: Callable[[dict[str, bytes]], dict[str, bytes]], words: str
) -> None:
    """Hashes alone do not detect a service that stores only a part."""
    from ipfsmem.content.fetch import drive, from_mapping
    from ipfsmem.content.reader import Reader

    class Keeps(SimProvider):
        async def put_car(self, root: CID, blocks: Iterable[Block], *, name: str) -> CID:
            files = drive(Reader().read_tree(root), from_mapping(dict(blocks)))
            made = build_tree(keep(files))
            return await super().put_car(made.cid, made.blocks, name=name)

    can = msgspec.structs.replace(SimProvider(SimCloud()).capabilities, keeps_root=False, has=False)
    said = _steps(Keeps(capabilities=can))
    assert words in said["fetch blocks"] and said["fetch blocks"].startswith("failed")
    assert said[OVERALL] == "failed: unreliable: fetch blocks failed"


def test_missing_capabilities_are_described_in_plain_words() -> None:
    class Silent(SimProvider):
        async def get_blocks(self, cids: Sequence[CID]) -> dict[CID, bytes]:
            raise AssertionError

    can = Capabilities(put=True, list=True, unpin=True, pin=True)
    said = _steps(Silent(capabilities=can))[OVERALL]
    assert said.startswith(
        "ok: write only; nothing can be read back from it: a new device needs another provider"
    )
    assert "each publish uploads everything again" in said
