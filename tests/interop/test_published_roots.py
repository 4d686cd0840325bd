"""Published roots checked by other programs: each is complete, and importing its files again gives the same
CID.

Sealed and plain, after edits that patched folders in place: an importer that starts from the files does
not know their history, so equal CIDs show that the incremental layout leaves no trace."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Literal

import pytest

from ipfsmem.memory import Memory
from ipfsmem.testing import SimProvider
from tests.interop import trees
from tests.interop.counterparts import gopeer, gopeer_program, node

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
def test_importing_the_files_of_a_patched_root_gives_its_cid(
    mode: Literal["encrypted-ipfs", "ipfs"], tmp_path: Path
) -> None:
    gopeer_program()  # a skipped test creates nothing before
    with Memory.create(
        "m", mode, provider=SimProvider(), passphrase=False, public_ok=True, home=tmp_path / "home"
    ) as memory:
        memory.bundles.import_(
            json.dumps(
                {
                    "version": "memory/0.1",
                    "files": {f"k{n}.md": f"text {n}\n" * (n % 40 + 1) for n in range(400)},
                }
            )
        )
        asyncio.run(memory.sync())
        for n in range(0, 60, 3):
            memory.write(f"k{n}", f"changed {n}")
        for n in range(100, 380):
            memory.forget(f"k{n}", reason="prune")
        memory.write("new", "ünïcödé")
        root = asyncio.run(memory.sync()).root
        assert root is not None
        car = tmp_path / "root.car"
        with car.open("wb") as out:
            memory.bundles.export_published(out)
    judged, _, count = gopeer("verify", car).partition(" ")
    assert judged == root and int(count) > 50
    gopeer("unpack", car, tmp_path / "unpacked")
    assert gopeer("cid", tmp_path / "unpacked") == root
    assert node("cid.mjs", tmp_path / "unpacked") == root
    assert json.loads(node("readcar.mjs", car))["root"] == root
    files = trees.read(tmp_path / "unpacked")
    if mode == "ipfs":
        assert files["memory/new.md"] is not None and "ünïcödé" in files["memory/new.md"].decode()
    else:
        assert {"keyring.json", "head.ipm"} <= files.keys()
