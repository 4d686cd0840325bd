"""A device without a sealing key continues to write, and publishes only after it can seal."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from ipfsmem.memory import Memory
from ipfsmem.ring import operations
from ipfsmem.testing import SimProvider
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import load

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x07"))
device = partial(load, wallet=WALLET)


def test_device_without_sealing_key_writes_and_seals_before_publishing(tmp_path: Path) -> None:
    cloud = SimProvider()
    a = device(tmp_path, "a", cloud)
    a.write("first", "under the first key")
    asyncio.run(a.sync())
    before = a.replica.ring
    assert before is not None
    b = device(tmp_path, "b", cloud)
    # A holder of the wallet rotates from a ring that does not know B yet, so B does not get the key.
    root = WALLET.root(twice=False)
    rotated = operations.rotate(before, root.admin, bytes([9]) * 32)
    with b.replica.transaction():
        assert b.replica.ring is not None
        b.replica.set_ring(b.replica.ring.join(type(before)(before.vault, rotated.statements, ())))
    b.lock()
    assert b.replica.ring.view.sealing is None

    b.write("second", "canary written while locked")
    b.note("locked", text="canary event")
    report = asyncio.run(b.sync())
    assert [n.kind for n in report.notices].count("cannot-publish") == 1
    assert b.read("second").file.body == "canary written while locked"  # type: ignore[union-attr]
    b.close()
    b = Memory.load("m", home=tmp_path / "b", provider=cloud)
    assert b.read("second").file.body == "canary written while locked"  # type: ignore[union-attr]

    b.unlock(WALLET)
    report = asyncio.run(b.sync())
    assert report.published
    entry = b.replica.store.entry("m/second")
    sealing = b.replica.ring.view.sealing  # type: ignore[union-attr]
    assert sealing is not None
    assert [value.loc.ek for value in entry.values() if value.loc] == [sealing.id]
    asyncio.run(a.sync())
    assert a.read("second").file.body == "canary written while locked"  # type: ignore[union-attr]
    assert not cloud.saw(b"canary")
