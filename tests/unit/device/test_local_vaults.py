"""Vault names on one device: the wallet vault of each, and no two with the same one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipfsmem.config import VaultConfig
from ipfsmem.device.local_vaults import local_vaults, vault_label
from ipfsmem.errors import ConfigError, NoVaultError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.recovery_words import from_words
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x41"))


def make(home: Path, vault_name: str, provider: Path | None = None, unlock: Unlock | None = WALLET) -> Memory:
    return Memory.create(
        vault_name,
        "encrypted-ipfs",
        provider=str(provider) if provider else None,
        unlock=unlock,
        passphrase=False,
        home=home,
    )


def vault(memory: Memory) -> VaultConfig:
    found = memory.replica.config.vault
    assert found is not None
    return found


def test_each_vault_name_has_its_own_vault(tmp_path: Path) -> None:
    """The first one is `default` in the wallet, each further one has its own name."""
    stick = tmp_path / "stick"
    stick.mkdir()
    given = {"provider": str(stick), "unlock": WALLET, "passphrase": False, "create": True}
    alex = Memory.load("alex", "encrypted-ipfs", home=tmp_path / "a", **given)  # type: ignore[arg-type]
    bob = Memory.load("bob", "encrypted-ipfs", home=tmp_path / "a", **given)  # type: ignore[arg-type]
    assert (vault(alex).name, vault(bob).name) == ("default", "bob")
    assert vault(alex).tag != vault(bob).tag
    alex.write("tone", "of alex")
    asyncio.run(alex.sync())
    asyncio.run(bob.sync())
    assert bob.read("tone") is None
    # On another device each is restored under its own label, whatever its local name.
    again = Memory.load("home", "encrypted-ipfs", home=tmp_path / "b", **given)  # type: ignore[arg-type]
    assert again.read("tone") is not None and vault(again).tag == vault(alex).tag
    other = Memory.load("bob", "encrypted-ipfs", home=tmp_path / "b", **given)  # type: ignore[arg-type]
    assert vault(other).tag == vault(bob).tag and other.restored is not None


def test_name_invalid_in_a_wallet_requires_a_wallet_vault_name(tmp_path: Path) -> None:
    make(tmp_path, "my_first")
    with pytest.raises(UsageError, match="my_second") as caught:
        make(tmp_path, "my_second")
    assert "--wallet-vault NAME" in caught.value.hint
    assert [*local_vaults(tmp_path)] == ["my_first"]
    named = Unlock(WALLET.signer, "second")
    assert vault(make(tmp_path, "my_second", unlock=named)).name == "second"
    assert vault_label(tmp_path, "third", None) == "third"


def test_two_vault_names_never_share_a_vault(tmp_path: Path) -> None:
    """At creation, and when restored by the wallet or the phrase."""
    stick = tmp_path / "stick"
    stick.mkdir()
    first = make(tmp_path / "a", "alex", stick)
    asyncio.run(first.sync())
    words = RootKeys.from_recovery(from_words(" ".join(first.recovery_words or ())))
    label = Unlock(WALLET.signer, "default")
    with pytest.raises(ConfigError, match="alex on this device is the same vault"):
        make(tmp_path / "a", "bob", stick, unlock=label)
    for key in (label, words):
        with pytest.raises(ConfigError, match="alex on this device is the same vault"):
            asyncio.run(
                Memory.recover("bob", provider=str(stick), unlock=key, passphrase=False, home=tmp_path / "a")
            )
    # The other kind of the same label has the same anchor and would move it.
    with pytest.raises(ConfigError, match="is the same vault"):
        Memory.create("bob", "ipfs", unlock=label, passphrase=False, home=tmp_path / "a")
    assert [*local_vaults(tmp_path / "a")] == ["alex"] and not (
        tmp_path / "a" / "bob" / "device.key"
    ).exists()


def test_local_vaults_and_other_folders_use_no_wallet_vault(tmp_path: Path) -> None:
    Memory.create("notes", "local", home=tmp_path).close()
    (tmp_path / "wallet.json").write_text("{}")
    (tmp_path / "not.a.vault_name").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "ipfsmem.json").write_text("{")
    assert vault(make(tmp_path, "alex")).name == "default"
    assert [*local_vaults(tmp_path)] == ["alex", "notes"]
    assert vault(make(tmp_path, "lone", unlock=None)).tag != vault(make(tmp_path, "alone", unlock=None)).tag


def test_vault_remembers_its_wallet_vault_name(tmp_path: Path) -> None:
    """Only the wallet is needed to unlock it."""
    make(tmp_path, "alex")
    bob = make(tmp_path, "bob", unlock=Unlock(WALLET.signer, None, 7))
    bob.close()
    bob = Memory.load("bob", home=tmp_path, unlock=WALLET)
    assert bob.unlocked and (vault(bob).name, vault(bob).key_number) == ("bob", 7)


def test_further_vault_is_searched_under_its_own_name(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    asyncio.run(make(tmp_path / "a", "alex", stick).sync())
    make(tmp_path / "b", "other")
    with pytest.raises(NoVaultError):
        asyncio.run(
            Memory.recover("alex", provider=str(stick), unlock=WALLET, passphrase=False, home=tmp_path / "b")
        )


def test_one_signature_lists_the_further_vaults(tmp_path: Path) -> None:
    """Their names are sealed in `default` and on its sheet."""
    stick = tmp_path / "stick"
    stick.mkdir()
    alex = make(tmp_path / "a", "alex", stick)
    bob = make(tmp_path / "a", "bob", stick)
    make(tmp_path / "a", "carl", stick, unlock=Unlock(WALLET.signer, "carls", 3))
    make(tmp_path / "a", "lone", unlock=None)
    make(tmp_path / "a", "other", unlock=Unlock(RawKeySigner(bytes(31) + b"\x42")))
    assert not bob.unlisted
    assert [(one.name, one.key_number) for one in alex.vaults.list()] == [("bob", 1), ("carls", 3)]
    for memory in (alex, bob):
        asyncio.run(memory.sync())
    for path in stick.rglob("*"):
        assert not path.is_file() or b"carls" not in path.read_bytes()
    # Another device has only the wallet.
    there = asyncio.run(
        Memory.recover("x", provider=str(stick), unlock=WALLET, passphrase=False, home=tmp_path / "b")
    )
    sheet = there.members.recovery_sheet()
    assert [one.name for one in there.vaults.list()] == ["bob", "carls"] == [one.name for one in sheet.vaults]
    assert "--vault carls --wallet FILE --key-number 3" in sheet.vaults[1].with_wallet
    again = asyncio.run(
        Memory.recover("bob", provider=str(stick), unlock=WALLET, passphrase=False, home=tmp_path / "b")
    )
    assert vault(again).tag == vault(bob).tag
    assert len(there.timeline.read()) == 2, "what is listed is not listed again"


def test_vault_missing_from_the_first_ones_list_names_how_to_add_it(tmp_path: Path) -> None:
    Memory.create("alex", "encrypted-ipfs", unlock=WALLET, passphrase="the first one", home=tmp_path).close()
    bob = Memory.create("bob", "encrypted-ipfs", unlock=WALLET, passphrase="another one", home=tmp_path)
    assert "ipfsmem key vaults --add bob --key-number 1 --vault alex" in bob.unlisted
    alex = Memory.load("alex", passphrase="the first one", home=tmp_path)
    assert not alex.vaults.list()
    alex.vaults.add("bob")
    alex.vaults.add("bob")
    assert [one.name for one in alex.vaults.list()] == ["bob"] and len(alex.timeline.read()) == 1
    with pytest.raises(UsageError):
        alex.vaults.add("no label")
    lone = Memory.create("lone", "encrypted-ipfs", passphrase=False, home=tmp_path / "other")
    with pytest.raises(UsageError):
        lone.vaults.add("bob")


def test_public_vault_lists_no_vault_names(tmp_path: Path) -> None:
    first = Memory.create("page", "ipfs", unlock=WALLET, home=tmp_path)
    second = make(tmp_path, "work")
    assert not first.vaults.list() and not first.timeline.read() and not second.unlisted
