"""The signed names of a shared folder: a cached record is used only while its file is unchanged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider

from ipfsmem.content.cid import ipns_name, raw_cid
from ipfsmem.errors import ConfigError, UnreadError
from ipfsmem.published import ipns_record
from ipfsmem.seal.primitives import Signer25519
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import load, says

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0c"))
SEED = b"\x07" * 32
NAME = ipns_name(Signer25519(SEED).public)
OTHER = ipns_name(Signer25519(b"\x08" * 32).public)
RECORD = ipns_record.make_record(SEED, f"/ipfs/{raw_cid(bytes(32))}", 1, 2_500_000_000_000_000_000)


def test_damaged_name_record_is_rewritten_by_a_running_process(tmp_path: Path) -> None:
    running = DirectoryProvider(str(tmp_path))
    asyncio.run(running.put_name(NAME, RECORD))
    assert asyncio.run(running.get_name(NAME)) == RECORD
    (file,) = (tmp_path / "names").glob("*.ipns-record")
    file.write_bytes(b"damaged" * 9)
    assert asyncio.run(running.get_name(NAME)) is None
    asyncio.run(running.put_name(NAME, RECORD))
    assert asyncio.run(running.get_name(NAME)) == RECORD
    assert asyncio.run(DirectoryProvider(str(tmp_path)).get_name(NAME)) == RECORD


STAND_INS = [
    ".{}.icloud",
    "{}.nextcloud",
    "{}.owncloud",
    ".syncthing.{}.tmp",
    "{}.part",
    ".{}.Xq3aZ1",
    "{}.!sync",
]


@pytest.mark.parametrize("shape", STAND_INS)
def test_name_record_placeholder_is_reported_unread_until_record_exists(tmp_path: Path, shape: str) -> None:
    asyncio.run(DirectoryProvider(str(tmp_path)).put_name(NAME, RECORD))
    (file,) = (tmp_path / "names").glob("*.ipns-record")
    placeholder = file.with_name(shape.format(file.name))
    placeholder.write_bytes(b"bplist00")
    provider = DirectoryProvider(str(tmp_path))
    assert asyncio.run(provider.get_name(NAME)) == RECORD
    assert provider.unread() == []
    file.unlink()
    assert asyncio.run(provider.get_name(NAME)) is None
    assert provider.unread() == [placeholder.name]
    assert asyncio.run(provider.get_name(OTHER)) is None
    assert provider.unread() == [placeholder.name]
    file.write_bytes(RECORD)
    placeholder.unlink()
    assert asyncio.run(provider.get_name(NAME)) == RECORD
    assert provider.unread() == []


@pytest.mark.parametrize("shape", ["._{}", "{}:Zone.Identifier", "{} (conflicted copy)"])
def test_file_next_to_a_name_record_is_not_its_placeholder(tmp_path: Path, shape: str) -> None:
    provider = DirectoryProvider(str(tmp_path))
    asyncio.run(provider.put_name(NAME, RECORD))
    (file,) = (tmp_path / "names").glob("*.ipns-record")
    file.rename(file.with_name(shape.format(file.name)))
    assert asyncio.run(provider.get_name(NAME)) is None
    assert provider.unread() == []


def test_sync_with_placeholder_of_another_name_record_is_not_up_to_date(tmp_path: Path) -> None:
    stick = DirectoryProvider(str(tmp_path / "stick"), {"create": True})
    with load(tmp_path, "a", stick, wallet=WALLET) as a, load(tmp_path, "b", stick, wallet=WALLET) as b:
        a.write("tone", "Be direct.")
        for memory in (a, b, a):
            report = asyncio.run(memory.sync())
        assert report.exit_code == 0
        name = ipns_name(b.replica.device.sign_public)
        (file,) = (tmp_path / "stick" / "names").glob(f"{name}.*")
        placeholder = file.rename(file.with_name(f".{file.name}.icloud"))
        report = asyncio.run(a.sync())
        assert report.exit_code == UnreadError.exit_code
        assert placeholder.name in says(report, "record-unread")


@pytest.mark.parametrize("stall", ["soon", "-1", -1, "nan"])
def test_invalid_timeout_of_a_folder_is_refused(tmp_path: Path, stall: object) -> None:
    with pytest.raises(ConfigError, match="not a number of seconds"):
        DirectoryProvider(str(tmp_path), {"stall": stall})
