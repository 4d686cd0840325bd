"""A flipped byte in a shared folder is reported, a device that has the block uploads it again, and the next device reads it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from ipfsmem_providers.directory import DirectoryProvider
from ipfsmem_providers.packs.lost_blocks import LOST
from ipfsmem_providers.peer import PeerProvider

from ipfsmem.content.cid import CID, raw_cid
from ipfsmem.http import blocks as serving
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Provider, Repair
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.signers import RawKeySigner
from tests.servers.threaded import serve

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0d"))
TOKEN = "a token of enough length"
Open = Callable[[], Provider]


def device(home: Path, provider: Provider) -> Memory:
    return Memory.load(
        "m", "encrypted-ipfs", provider=provider, unlock=WALLET, passphrase=False, home=home, create=True
    )


def sections(pack: Path) -> list[tuple[CID, int, int]]:
    """Return the blocks of a pack: CID, offset and length."""
    from ipfsmem_providers.packs.index import scan

    with pack.open("rb") as file:
        return [(raw_cid(s.digest), s.offset, len(s.data)) for s in scan(file)]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


@pytest.fixture(params=["directory", "peer"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that opens the folder again, as another process does."""
    folder = tmp_path / "stick"
    folder.mkdir()
    if request.param == "directory":
        return lambda: DirectoryProvider(folder)
    url = serve(lambda: serving.app(DirectoryProvider(folder), token=TOKEN))
    address = url.__enter__()
    request.addfinalizer(lambda: url.__exit__(None, None, None))
    return lambda: PeerProvider(address, {"peer_token": TOKEN})


def test_flipped_byte_is_repaired_by_a_sync_of_a_complete_device(opened: Open, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    a = device(tmp_path / "a", opened())
    texts = {f"k{n}": random.Random(n).randbytes(1_800).hex() for n in range(12)}
    for key, text in texts.items():
        a.write(key, text)
    asyncio.run(a.sync())
    a.write("later", "one more root, so that what is hit lies in an older pack")
    asyncio.run(a.sync())
    pack = max(stick.glob("packs/*.car"), key=lambda path: path.stat().st_size)
    for _, offset, length in sections(pack)[1:]:
        flip(pack, offset + length // 2)
    hit = pack.read_bytes()

    assert not asyncio.run(a.sync()).blocks_sent, "a device that reads nothing notices nothing"
    blind = device(tmp_path / "b", opened())
    assert len(blind.files()) < len(texts) + 1, "nobody can read what is damaged"
    assert list(stick.glob(f"packs/*{LOST}"))
    blind.close()

    done = asyncio.run(a.sync())
    assert done.blocks_sent and "mended" in {notice.kind for notice in done.notices}
    assert pack.read_bytes() == hit, "others read it at this moment: what was hit is not mended in its place"
    c = device(tmp_path / "c", opened())
    assert {key: c.read(key).file.body for key in texts} == texts  # type: ignore[union-attr]
    assert "mended" not in {notice.kind for notice in asyncio.run(a.sync()).notices}, "once is enough"
    a.close(), c.close()


def block(text: str) -> tuple[CID, bytes]:
    data = text.encode()
    return raw_cid(hashlib.sha256(data).digest()), data


BLOCKS = [block(f"block {n} " * 20) for n in range(9)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    asyncio.run(DirectoryProvider(tmp_path).put_car(BLOCKS[0][0], BLOCKS, name="n"))
    return tmp_path


def damage(folder: Path, number: int) -> CID:
    cid, data = BLOCKS[number]
    for pack in folder.glob("packs/*.car"):
        at = pack.read_bytes().find(data)
        if at >= 0:
            flip(pack, at + 7)
    return cid


def test_damage_found_by_one_process_is_known_to_the_others(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cids = [cid for cid, _ in BLOCKS]
    served = DirectoryProvider(folder)
    assert isinstance(served, Repair)
    assert asyncio.run(served.has(cids)) == set(cids) and asyncio.run(served.missing_blocks()) == []
    bad = damage(folder, 4)
    assert asyncio.run(served.has(cids)) == set(cids), "nobody has looked yet"
    with caplog.at_level(logging.WARNING, "ipfsmem.providers"):
        assert bad not in asyncio.run(DirectoryProvider(folder).get_blocks(cids))
    [said] = caplog.records
    assert str(bad) in said.message and "1 of its blocks" in said.message
    assert asyncio.run(served.has(cids)) == set(cids) - {bad}
    assert asyncio.run(served.missing_blocks()) == [bad]
    asyncio.run(served.get_blocks(cids))
    assert len(caplog.records) == 1, "said once"
    asyncio.run(served.put_car(bad, [BLOCKS[4]], name="n"))
    for provider in (served, DirectoryProvider(folder)):
        assert asyncio.run(provider.missing_blocks()) == [] and asyncio.run(provider.has(cids)) == set(cids)
        assert asyncio.run(provider.get_blocks(cids)) == dict(BLOCKS)


def test_all_blocks_lost_by_a_cut_are_named(folder: Path) -> None:
    [pack] = folder.glob("packs/*.car")
    data = pack.read_bytes()
    whole = DirectoryProvider(folder)
    assert asyncio.run(whole.has([BLOCKS[8][0]]))
    pack.write_bytes(data[: data.index(BLOCKS[5][1]) + 3] + bytes(len(data) - data.index(BLOCKS[5][1]) - 3))
    found = asyncio.run(DirectoryProvider(folder).get_blocks([cid for cid, _ in BLOCKS]))
    assert found == dict(BLOCKS[:5])
    assert set(asyncio.run(whole.missing_blocks())) == {cid for cid, _ in BLOCKS[5:]}


def test_damaged_cid_in_a_pack_names_no_new_block(folder: Path) -> None:
    [pack] = folder.glob("packs/*.car")
    cid, data = BLOCKS[3]
    flip(pack, pack.read_bytes().index(data) - 5)  # the digest before the block
    damage(folder, 6)
    provider = DirectoryProvider(folder)
    asyncio.run(provider.get_blocks([each for each, _ in BLOCKS]))
    assert set(asyncio.run(provider.missing_blocks())) <= {cid, BLOCKS[6][0]}


def test_same_pack_stored_again_removes_its_damage_note(folder: Path) -> None:
    damage(folder, 2)
    provider = DirectoryProvider(folder)
    asyncio.run(provider.get_blocks([cid for cid, _ in BLOCKS]))
    assert list(folder.glob(f"packs/*{LOST}"))
    asyncio.run(provider.put_car(BLOCKS[0][0], BLOCKS, name="n"))
    assert not list(folder.glob(f"packs/*{LOST}"))
    assert asyncio.run(provider.has([cid for cid, _ in BLOCKS])) == set(dict(BLOCKS))


@pytest.mark.parametrize("note", [b"", b"\xff" * 99, b"bafyno\n", b"x" * 9_000_000, b"bafkqaaa\n"])
def test_foreign_damage_note_hides_nothing_else(folder: Path, note: bytes) -> None:
    [pack] = folder.glob("packs/*.car")
    pack.with_suffix(LOST).write_bytes(note)
    cids = [cid for cid, _ in BLOCKS]
    provider = DirectoryProvider(folder)
    assert asyncio.run(provider.has(cids)) == set(cids) and asyncio.run(provider.missing_blocks()) == []
    # A note that names a sound block causes one further upload; the block is still read.
    pack.with_suffix(LOST).write_text(f"{cids[0]}\n")
    assert asyncio.run(provider.missing_blocks()) == [cids[0]]
    assert asyncio.run(provider.get_blocks(cids)) == dict(BLOCKS)
