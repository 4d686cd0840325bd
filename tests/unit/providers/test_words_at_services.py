"""A recovery phrase and an account at a service without names suffice to restore a vault and to use it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from ipfsmem.sync.names import pin_name
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.unit.providers.services_lab import account


@pytest.mark.parametrize(
    "kind", ["pinata-car", "pinata-free", "pinata-legacy", "filebase-s3", "filebase-rpc"]
)
def test_recovery_phrase_and_an_account_restore_the_vault(tmp_path: Path, kind: str) -> None:
    with account(kind) as there:
        assert not there.open().capabilities.names
        a = Memory.create("m", "encrypted-ipfs", provider=there.open(), passphrase=False, home=tmp_path / "a")
        assert a.recovery_words is not None
        words = RootKeys.from_recovery(from_words(" ".join(a.recovery_words)))
        a.write("tone", "x")
        asyncio.run(a.sync())
        a.unlock()
        asyncio.run(a.members.rotate())
        a.write("role", "y")
        asyncio.run(a.sync())
        assert len(asyncio.run(there.open().pins(pin_name(words.head_public)))) == 1
        b = asyncio.run(
            Memory.recover("m", provider=there.open(), unlock=words, passphrase=False, home=tmp_path / "b")
        )
        assert b.files() == a.files()
        b.write("from-b", "z")
        asyncio.run(b.sync())
        asyncio.run(a.sync())
        assert a.files() == b.files() and "from-b" in a.files()
        assert len(asyncio.run(there.open().pins(pin_name(words.head_public)))) == 1
