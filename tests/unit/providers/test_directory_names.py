"""The signed names of a shared folder: what was read once is believed only as long as nothing changed it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.cid import ipns_name, raw_cid
from ipfsmem.errors import ConfigError
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519

SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
RECORD = ipns_record.make_record(SEED, f"/ipfs/{raw_cid(bytes(32))}", 1, 2_500_000_000_000_000_000)


def test_a_record_that_the_disk_damaged_is_put_again_by_a_program_that_runs_on(tmp_path: Path) -> None:
    """It was believed from memory, so it was called the same and never put again, and a new device found no name."""
    running = DirectoryProvider(str(tmp_path))
    asyncio.run(running.put_name(NAME, RECORD))
    assert asyncio.run(running.get_name(NAME)) == RECORD
    (file,) = (tmp_path / "names").glob("*.ipns-record")
    file.write_bytes(b"damaged" * 9)
    assert asyncio.run(running.get_name(NAME)) is None
    asyncio.run(running.put_name(NAME, RECORD))
    assert asyncio.run(running.get_name(NAME)) == RECORD
    assert asyncio.run(DirectoryProvider(str(tmp_path)).get_name(NAME)) == RECORD


@pytest.mark.parametrize("stall", ["soon", "-1", -1, "nan"])
def test_a_patience_that_is_no_number_of_seconds_is_refused(tmp_path: Path, stall: object) -> None:
    with pytest.raises(ConfigError, match="not a number of seconds"):
        DirectoryProvider(str(tmp_path), {"stall": stall})
