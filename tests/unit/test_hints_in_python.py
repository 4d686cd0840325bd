"""Hints for Python callers, and for situations that no command can cause, are followed."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ipfsmem.errors import UsageError
from ipfsmem.files.pack import pack_tree
from ipfsmem.memory import Memory
from ipfsmem.vault.owner import Unlock
from ipfsmem.wallet.root_keys import RootKeys
from ipfsmem.wallet.signers import RawKeySigner
from tests.support.hints import Refused
from tests.support.scope_lab import blob

WALLET = Unlock(RawKeySigner(bytes(31) + b"\x0b"))


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    (tmp_path / "stick").mkdir()
    return tmp_path / "stick"


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Memory]:
    with Memory.create("m", "local", home=tmp_path / "local") as memory:
        yield memory


@pytest.fixture
def sealed(tmp_path: Path, stick: Path) -> Iterator[Memory]:
    """A published vault of a wallet that is locked again."""
    options: dict[str, Any] = {"home": tmp_path / "sealed", "provider": str(stick), "passphrase": False}
    with Memory.create("m", "encrypted-ipfs", unlock=WALLET, **options) as memory:
        asyncio.run(memory.sync())
    with Memory.load("m", home=tmp_path / "sealed") as memory:
        yield memory


def test_hint_about_a_path_as_the_provider_works(stick: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"home": tmp_path / "new", "unlock": WALLET, "passphrase": False}
    with Refused("Give the path of a folder as a text, or an address such as git:PATH."):
        Memory.create("m", "encrypted-ipfs", provider=stick, **options)
    Memory.create("m", "encrypted-ipfs", provider=str(stick), **options).close()


def test_hint_about_a_missing_vault_works(sealed: Memory, stick: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"home": tmp_path / "new", "provider": str(stick)}
    with Refused("Pass the wallet or the recovery phrase, or create a new vault with: ipfsmem init."):
        Memory.load("m", "encrypted-ipfs", **options)
    Memory.load("m", "encrypted-ipfs", unlock=WALLET, passphrase=False, **options).close()


def test_hints_about_modes_and_strategies_work(local: Memory, stick: Path, tmp_path: Path) -> None:
    with Refused("local, ipfs or encrypted-ipfs."):
        Memory.create("other", "none", home=tmp_path)
    with Refused("ipfs or encrypted-ipfs."):
        asyncio.run(Memory.recover("other", provider=str(stick), unlock=WALLET, mode="local", home=tmp_path))
    (tmp_path / "note.md").write_text("x\n")
    with pytest.raises(UsageError, match=r"import_: strategy must be merge or replace \(got 'both'\)"):
        local.bundles.import_(tmp_path / "note.md", strategy="both")  # type: ignore[arg-type]
    for strategy in ("merge", "replace"):
        local.bundles.import_(tmp_path / "note.md", strategy=strategy)  # type: ignore[arg-type]
    assert b"x" in local.read("note").data


def test_owner_method_without_the_owner_key_has_a_hint(sealed: Memory) -> None:
    with Refused("Pass --wallet or the recovery phrase first (in Python: unlock())."):
        asyncio.run(sealed.members.new_words())
    with Refused("Pass the wallet or the recovery phrase."):
        sealed.unlock()
    sealed.unlock(WALLET)
    assert len(asyncio.run(sealed.members.new_words()).words) == 24


def test_hint_about_too_many_concurrent_texts_works(local: Memory) -> None:
    for number in range(4):
        local.write("tone", f"text {number}", seen=())
    with Refused("Read the memory and its alternatives, then write with that reading."):
        local.write("tone", "text 4", seen=())
    (item,) = local.conflicts()
    local.write("tone", "all of it", seen=item)
    assert not local.conflicts() and b"all of it" in local.read("tone").data


def test_hint_about_a_text_forgotten_meanwhile_works(local: Memory) -> None:
    local.write("tone", "x")
    read = local.read("tone")
    local.forget("tone")
    with Refused("To create it again, write without seen."):
        local.write("tone", "y", seen=read)
    local.write("tone", "y")
    assert b"y" in local.read("tone").data


def test_hints_about_keep_and_approve_work(local: Memory) -> None:
    local.write("tone", "own")
    for number in range(2):
        local.bundles.import_(blob({"tone.md": f"theirs {number}\n"}), foreign=True)
    with Refused("Look: ipfsmem conflicts VALUE"):
        local.resolve("tone", keep=True, seen=())
    with Refused("List them: ipfsmem conflicts VALUE"):
        local.approve("tone")
    (item,) = local.conflicts()
    local.approve("tone", alternative=item.copies[0].file)
    (item,) = local.conflicts()
    local.resolve("tone", keep=True, seen=item)
    assert not local.conflicts() and b"theirs" in local.read("tone").data


def test_hint_about_texts_with_similar_hashes_works(local: Memory) -> None:
    """A collision of the first eight digits."""
    known: dict[str, str] = {}
    for number in range(1_000_000):
        text = f"{number}\n"
        found = sha256(text.encode()).hexdigest()
        if found[:8] in known:
            break
        known[found[:8]] = text
    for one in (known[found[:8]], text):
        local.write_text("tone", one.encode(), seen=())
    with Refused("Pass more digits of the SHA-256."):
        local.restore("tone", sha256=found[:8])
    at = next(at for at in range(8, 64) if sha256(known[found[:8]].encode()).hexdigest()[at] != found[at])
    assert local.restore("tone", sha256=found[: at + 1]).data == text.encode()


class Signs:
    """A wallet whose signatures `how` changes; `of`: its address."""

    def __init__(self, how: Callable[[bytes], bytes], of: int = 11) -> None:
        self.address = RawKeySigner(bytes(31) + bytes([of])).address
        self._signer, self._how = RawKeySigner(bytes(31) + b"\x0b"), how

    def sign_message(self, text: bytes) -> bytes:
        return self._how(self._signer.sign_message(text))


CONTRACT = (
    "A contract account (Safe, Coinbase Smart Wallet, other ERC-4337 accounts) or a passkey has no signature that keys"
    " could be made of. Use an ordinary account, or make the vault without a wallet and keep its recovery phrase."
)
OTHER_ACCOUNT = (
    "Select that account in the wallet and sign again. A contract account signs with its owner's key and cannot be used:"
    " take an ordinary account, or make the vault without a wallet and keep its recovery phrase."
)


def make(name: str, home: Path, unlock: Unlock | RootKeys | None) -> Memory:
    return Memory.create(name, "encrypted-ipfs", unlock=unlock, passphrase=False, home=home)


def test_hints_about_unusable_wallets_work(tmp_path: Path) -> None:
    with Refused(CONTRACT):
        make("m", tmp_path, Unlock(Signs(lambda sig: sig + bytes(100))))
    with Refused(OTHER_ACCOUNT):
        make("m", tmp_path, Unlock(Signs(lambda sig: sig, of=12)))
    with Refused(
        "Compact signatures (ERC-2098) leave out the recovery byte. Switch the signer to 65-byte signatures, or make the"
        " vault without a wallet and keep its recovery phrase."
    ):
        make("m", tmp_path, Unlock(Signs(lambda sig: sig[:64])))
    with Refused(
        "Use a wallet with deterministic signatures, or create the vault without a wallet and keep its recovery phrase."
    ):
        make("m", tmp_path, Unlock(Signs(lambda sig: sig[:64] + b"\x05")))
    make("wallet", tmp_path, WALLET).close()
    with make("none", tmp_path, None) as memory:
        assert memory.recovery_words is not None


def test_file_changed_or_unreadable_while_packing_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text("a")
    real = os.open

    def refuses(error: int) -> Callable[..., int]:
        def opens(path: Any, *given: Any, **more: Any) -> int:
            if os.fspath(path) == os.fsencode(tmp_path / "a.md"):
                raise OSError(error, os.strerror(error))
            return real(path, *given, **more)

        return opens

    with monkeypatch.context() as patch, Refused("Try again when nothing else changes the folder."):
        patch.setattr(os, "open", refuses(errno.ENOENT))
        pack_tree(tmp_path)
    with monkeypatch.context() as patch, Refused("Check that it is there and may be read."):
        patch.setattr(os, "open", refuses(errno.EACCES))
        pack_tree(tmp_path)
    assert pack_tree(tmp_path).root
