"""A root from the key sheet, when names and lists are lost: with the phrase or the wallet it restores the vault."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from ipfsmem.errors import (
    FormatError,
    IpfsmemError,
    NotFoundError,
    NoVaultError,
    OtherKindError,
    WrongWalletError,
)
from ipfsmem.memory import Memory
from ipfsmem.testing import SimCloud, SimProvider
from ipfsmem.testing.simulator import FULL
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from tests.support.device_lab import body, restore

WALLET = RootKeys.from_random(b"\x03" * 64, "default", 1)
STRANGER = RootKeys.from_random(b"\x04" * 64, "default", 1)
#: It stores blocks, and has neither names nor lists.
MUTE = msgspec.structs.replace(FULL, names=False, list=False)


def at(cloud: SimCloud) -> SimProvider:
    return SimProvider(cloud, capabilities=MUTE)


def make(home: Path, cloud: SimCloud, mode: str = "encrypted-ipfs") -> tuple[Memory, RootKeys, str]:
    memory = Memory.create(
        "m",
        mode,
        provider=SimProvider(cloud),
        unlock=WALLET,
        passphrase=False,
        public_ok=True,
        home=home / "a",
    )
    memory.write("tone", "x")
    root = asyncio.run(memory.sync()).root
    assert memory.recovery_words is not None and root is not None
    return memory, RootKeys.from_recovery(from_words(" ".join(memory.recovery_words))), root


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
def test_root_of_another_mode_is_refused(tmp_path: Path, mode: str) -> None:
    """The caller states the mode, whatever the root claims."""
    cloud = SimCloud()
    _, words, root = make(tmp_path, cloud, mode)
    other = "ipfs" if mode == "encrypted-ipfs" else "encrypted-ipfs"
    for key in (WALLET, words):
        with pytest.raises(OtherKindError, match=f"has mode {mode}"):
            restore(tmp_path, "b", at(cloud), key, other, root)
    assert not (tmp_path / "b" / "m" / "ipfsmem.json").exists()


@pytest.mark.parametrize("mode", ["encrypted-ipfs", "ipfs"])
def test_phrase_wallet_and_later_phrases_restore_from_a_root(tmp_path: Path, mode: str) -> None:
    cloud = SimCloud()
    a, words, _ = make(tmp_path, cloud, mode)
    later = RootKeys.from_recovery(from_words(" ".join(asyncio.run(a.members.new_words()).words)))
    root = asyncio.run(a.sync()).root
    assert root is not None
    for name, key in (("words", words), ("wallet", WALLET), ("later", later)):
        with pytest.raises(NoVaultError):
            restore(tmp_path, name, at(cloud), key, mode)
        b = restore(tmp_path, name, at(cloud), key, mode, root)
        assert body(b, "tone") == "x" and b.replica.config.vault is not None
        assert b.replica.config.vault.tag == WALLET.tag(plain=b.mode == "ipfs").hex()
        b.write(name, "still goes on")
        assert asyncio.run(b.sync()).published


def test_given_root_is_used_next_to_names_with_older_heads(tmp_path: Path) -> None:
    """The anchor is found, but not the newest device's name."""
    cloud = SimCloud()
    a, words, _ = make(tmp_path, cloud)
    names = {name: [*each] for name, each in cloud.names.items()}
    a.write("role", "newer")
    root = asyncio.run(a.sync()).root

    def old() -> SimProvider:
        lagging = SimCloud()
        lagging.blocks = dict(cloud.blocks)
        lagging.names = {name: [*each] for name, each in names.items()}
        return SimProvider(lagging)

    assert restore(tmp_path, "b", old(), words).read("role") is None
    assert body(restore(tmp_path, "c", old(), words, root=root), "role") == "newer"


def test_root_of_another_vault_is_refused(tmp_path: Path) -> None:
    cloud = SimCloud()
    a, words, root = make(tmp_path, cloud)
    wrong: list[tuple[RootKeys, str, type[IpfsmemError]]] = [
        (STRANGER, root, WrongWalletError),
        (words, "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", NotFoundError),
        (words, "not a cid", FormatError),
    ]
    for key, text, error in wrong:
        with pytest.raises(error):
            restore(tmp_path, "b", at(cloud), key, root=text)
        assert not (tmp_path / "b" / "m" / "ipfsmem.json").exists()
    made = asyncio.run(a.members.new_words())
    asyncio.run(a.members.revoke(made.id))
    revoked = RootKeys.from_recovery(from_words(" ".join(made.words)))
    newest = asyncio.run(a.sync()).root
    with pytest.raises(WrongWalletError, match="this recovery phrase was revoked"):
        restore(tmp_path, "b", at(cloud), revoked, root=newest)
