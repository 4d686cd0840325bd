"""A vault without a wallet: only the device that created it has the root."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.errors import MembershipError
from ipfsmem.memory import Memory
from ipfsmem.testing import SimProvider
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys


def test_creating_device_can_unlock_and_others_need_the_phrase(tmp_path: Path) -> None:
    cloud = SimProvider()
    a = Memory.create("m", "encrypted-ipfs", provider=cloud, passphrase=False, home=tmp_path / "a")
    words = a.recovery_words
    assert words is not None
    a.write("k", "text")
    asyncio.run(a.sync())
    a.close()
    a = Memory.load("m", provider=cloud, home=tmp_path / "a")
    assert not a.unlocked
    with pytest.raises(MembershipError, match="requires the wallet"):
        asyncio.run(a.members.rotate())
    a.unlock()
    asyncio.run(a.members.rotate())

    root = RootKeys.from_recovery(from_words(" ".join(words)))
    b = Memory.load("m", "encrypted-ipfs", provider=cloud, unlock=root, passphrase=False, home=tmp_path / "b")
    assert b.read("k").file.body == "text"  # type: ignore[union-attr]
    b.close()
    b = Memory.load("m", provider=cloud, home=tmp_path / "b")
    with pytest.raises(MembershipError, match="does not have the owner key"):
        b.unlock()
