"""Two devices on one folder in any order of calls, with merges, lost caches and returning old files:
everything acknowledged can be read by both, and by a third that opens the folder."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.packs import index as pack_index
from ipfsmem_providers.packs import store as pack_store

from ipfsmem.content.cid import CID, ipns_name, raw_cid
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.testing import MockClock
from tests.support.effort import cases, longest

T = TypeVar("T")
SEEDS = [bytes([n]) * 32 for n in (1, 2)]
NAMES = [ipns_name(Signer25519(seed).public) for seed in SEEDS]
DATA = [f"block {n} ".encode() * (1 + n * n) for n in range(24)]
CIDS = [raw_cid(hashlib.sha256(data).digest()) for data in DATA]

device = st.integers(0, 1)
some = st.lists(st.integers(0, len(DATA) - 1), min_size=1, max_size=6)


class Folder(RuleBasedStateMachine):
    """The model is three plain collections."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ipfsmem-machine-"))
        self.patches = [
            mock.patch.object(pack_store.Packs, "max_packs", 3),
            mock.patch.object(pack_index, "_SMALL", 200),
        ]
        for patch in self.patches:
            patch.start()
        self.clock = MockClock()
        self.devices = [self.open(), self.open()]
        self.blocks: dict[CID, bytes] = {}
        self.pins: set[tuple[CID, str]] = set()
        self.sequences: dict[str, int] = {}
        self.seen: dict[str, bytes] = {}

    def open(self) -> DirectoryProvider:
        return DirectoryProvider(self.folder, clock=self.clock)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.folder.glob(pattern))

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()
        shutil.rmtree(self.folder)

    @rule(device=device, some=some)
    def publish(self, device: int, some: list[int]) -> None:
        blocks = [(CIDS[n], DATA[n]) for n in some]
        self.run(self.devices[device].put_car(blocks[0][0], blocks, name="n"))
        self.blocks.update(blocks)

    @rule(device=device, some=some)
    def publish_what_is_new(self, device: int, some: list[int]) -> None:
        known = self.run(self.devices[device].has([CIDS[n] for n in some]))
        blocks = [(CIDS[n], DATA[n]) for n in some if CIDS[n] not in known]
        self.run(self.devices[device].put_car(CIDS[some[0]], blocks, name="n"))
        self.blocks.update((CIDS[n], DATA[n]) for n in some)

    @rule(device=device, n=st.integers(0, 3), name=st.sampled_from(["a", "b"]))
    def pin(self, device: int, n: int, name: str) -> None:
        self.run(self.devices[device].pin(CIDS[n], name))
        self.pins.add((CIDS[n], name))

    @rule(device=device, n=st.integers(0, 9))
    def unpin(self, device: int, n: int) -> None:
        pins = self.run(self.devices[device].pins("a"))
        if pins:
            pin = pins[n % len(pins)]
            self.run(self.devices[device].unpin(pin))
            self.pins.remove((pin.cid, pin.name))

    @rule(device=device, which=st.integers(0, 1), sequence=st.integers(0, 9))
    def name(self, device: int, which: int, sequence: int) -> None:
        record = ipns_record.make_record(
            SEEDS[which], "/ipfs/bafkqaaa", sequence, datetime(2036, 1, 1, tzinfo=UTC)
        )
        self.run(self.devices[device].put_name(NAMES[which], record))
        self.sequences[NAMES[which]] = max(sequence, self.sequences.get(NAMES[which], 0))

    @rule(n=st.integers(0, 20))
    def remember_a_file(self, n: int) -> None:
        files = self.files("packs/*.car") + self.files("names/*")
        if files:
            path = files[n % len(files)]
            self.seen[str(path)] = path.read_bytes()

    @rule(n=st.integers(0, 20))
    def an_old_file_comes_back(self, n: int) -> None:
        """A sync program that did not hear of the removal yet."""
        if self.seen:
            path = sorted(self.seen)[n % len(self.seen)]
            Path(path).write_bytes(self.seen[path])

    @rule(n=st.integers(0, 20), at=st.integers(0, 5000), how=st.sampled_from(["gone", "cut", "flipped"]))
    def an_index_is_damaged(self, n: int, at: int, how: str) -> None:
        indexes = self.files("packs/*.idx")
        if indexes:
            path = indexes[n % len(indexes)]
            data = bytearray(path.read_bytes())
            match how:
                case "gone":
                    path.unlink()
                case "cut":
                    path.write_bytes(data[: at % len(data)])
                case _:
                    data[at % len(data)] ^= 4
                    path.write_bytes(data)

    @rule(device=device)
    def a_device_starts_again(self, device: int) -> None:
        self.devices[device] = self.open()

    @invariant()
    def nothing_is_lost(self) -> None:
        for provider in (*self.devices, self.open()):
            assert self.run(provider.get_blocks(CIDS)) == self.blocks
            for name in ("a", "b"):
                pins = {(pin.cid, pin.name) for pin in self.run(provider.pins(name))}
                assert pins == {pin for pin in self.pins if pin[1] == name}
            for key, sequence in self.sequences.items():
                record = self.run(provider.get_name(key))
                assert record is not None
                assert ipns_record.parse_record(record).sequence == sequence


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=cases(8, 100), stateful_step_count=longest(20, 25))
