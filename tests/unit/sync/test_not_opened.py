"""A provider that cannot be opened is unread: data that only it may have is neither refused nor damaged nor gone."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import msgspec
import pytest

from ipfsmem.content.cid import raw_cid
from ipfsmem.errors import ProviderRefused
from ipfsmem.memory import Memory
from ipfsmem.provider.contract import Capabilities, Provider
from ipfsmem.provider.opening import NotOpened, Providers
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.device_lab import ROOT, Lab, all_texts, kinds, load

device = partial(load, wallet=Unlock(RawKeySigner(bytes(31) + b"\x08")))
CLOSED = NotOpened(
    "pinata",
    "PINATA_JWT is not set",
    "Make a key at app.pinata.cloud, API Keys, and set PINATA_JWT to its JWT.",
)
PROBLEM = "pinata cannot be used: PINATA_JWT is not set"
ONLY_NAMES = Capabilities(put=False, names=True, durable=False)


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINATA_JWT", raising=False)


def beside_closed(memory: Memory, *opened: Provider) -> None:
    """Configure the vault with these providers and one that cannot be opened."""
    memory._syncing.places = Providers((*opened, CLOSED))


@pytest.mark.parametrize("unlock", [None, ROOT], ids=["everyday", "unlocked"])
def test_newer_own_version_at_a_closed_provider_stops_a_sync(lab: Lab, unlock: RootKeys | None) -> None:
    """As on a device restored from a backup."""
    _, b, _ = lab.three()
    lab.save("b", "backup")
    b.write("later", "published after the backup")
    lab.sync(b)
    b = lab.put_back("b", "backup", unlock=unlock)
    before = b.device
    beside_closed(b, SimProvider(lab.cloud, clock=lab.clock, name="names", capabilities=ONLY_NAMES))
    with pytest.raises(ProviderRefused, match=PROBLEM) as caught:
        lab.sync(b)
    assert caught.value.hint == CLOSED.hint and b.device == before


def test_head_only_at_a_closed_provider_is_left_unread(lab: Lab) -> None:
    a, b, _ = lab.three()
    a.write("far", "only at the one that is closed")
    lab.sync(a)
    other = SimCloud()
    other.names = {name: [*records] for name, records in lab.cloud.names.items()}
    beside_closed(b, SimProvider(other, clock=lab.clock, name="other"))
    b.write("mine", "written here")
    report = lab.sync(b)
    assert report.published and (report.damaged, report.unread, report.exit_code) == (0, 1, 45)
    assert not kinds(report) & {"damaged", "head-refused"}
    b._syncing.places = Providers((SimProvider(other, clock=lab.clock, name="other"), lab.provider("b")))
    assert lab.sync(b).exit_code == 0 and all_texts(b) == {"only at the one that is closed", "written here"}


def test_head_with_a_text_at_a_closed_provider_is_left_unread(lab: Lab) -> None:
    a, b, _ = lab.three()
    a.write("far", "the text")
    lab.sync(a)
    with a.replica.reading():
        (text,) = [raw_cid(digest) for digest in a.replica.store.object_digests()]
    other = SimCloud()
    other.names = lab.cloud.names
    other.blocks = {cid: data for cid, data in lab.cloud.blocks.items() if cid != text}
    beside_closed(b, SimProvider(other, clock=lab.clock, name="other"))
    report = lab.sync(b)
    assert (report.not_fetched, report.unread, report.damaged) == (0, 1, 0)


def test_move_does_not_call_unread_versions_gone(tmp_path: Path) -> None:
    lists = msgspec.structs.replace(FULL, names=False)
    old = SimProvider(SimCloud(), name="old", capabilities=lists)
    a = device(tmp_path, "a", old)
    texts = []
    for n in range(5):
        a.write("k", f"only in root {n}")
        asyncio.run(a.sync())
        texts += [value.loc for value in a.replica.store.entry("m/k").values()]
    b = device(tmp_path, "b", old)
    assert texts[2] is not None
    del old.cloud.blocks[raw_cid(bytes.fromhex(texts[2].sha))]
    beside_closed(b, old)
    moved = asyncio.run(b.providers.move(SimProvider(SimCloud(), name="new", capabilities=lists))).moved
    # Two versions need it: the one that has it, and the next, whose text was made from it.
    assert len(moved.incomplete) == 2 and PROBLEM in moved.down


def test_missing_upload_target_names_the_closed_provider(lab: Lab) -> None:
    a = lab.create("a")
    lab.sync(a)
    a.write("tone", "direct")
    beside_closed(a, SimProvider(lab.cloud, clock=lab.clock, name="names", capabilities=ONLY_NAMES))
    with pytest.raises(ProviderRefused, match=PROBLEM):
        lab.sync(a)
