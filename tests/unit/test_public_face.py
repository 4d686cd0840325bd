"""The public names: fixed here, present, and cheap to import."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import ipfsmem
import ipfsmem.errors
import ipfsmem.results
from ipfsmem.open_vault.method_group import MethodGroup


def test_public_names_are_complete() -> None:
    assert ipfsmem.__all__ == [
        "Environment", "Home", "KeystoreSigner", "Memory", "MemoryRecord", "MemorySummary", "MnemonicSigner", "Provider", "RawKeySigner", "RootKeys",
        "Status", "SyncReport", "Unlock", "WalletSigner", "open_provider",
    ]  # fmt: skip
    for name in ipfsmem.__all__:
        assert getattr(ipfsmem, name).__name__ == name
    assert ipfsmem.__version__


def test_importing_the_package_imports_no_submodule() -> None:
    program = "import sys, ipfsmem; print([m for m in sys.modules if m.startswith('ipfsmem.')])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_parts_of_a_vault_are_objects_with_their_own_methods(tmp_path: Path) -> None:
    with ipfsmem.Memory.create("alex", "local", home=tmp_path) as memory:
        memory.scopes.make("work", title="Work")
        memory.scope("work").write("tone", "direct")
        assert [(one.scope, one.title) for one in memory.scopes.list()] == [("work", "Work")]
        assert memory.scope("work").scopes.forget("work").forgotten == 1 and memory.scopes.names() == []
        (gone,) = memory.scopes.list(forgotten=True)
        assert gone.scope == "work" and gone.card is None
        assert memory.scopes.show("work").forgotten and memory.scopes.names(forgotten=True) == ["work"]


def test_text_and_hash_have_their_own_attributes(tmp_path: Path) -> None:
    with ipfsmem.Memory.create("alex", "local", home=tmp_path) as memory:
        written = memory.write("tone", "direct")
        assert written.text.endswith("direct\n") and written.text.encode() == written.data
        assert [one.sha256 for one in memory.list()] == [written.sha256]


def test_python_page_names_each_group_of_operations(tmp_path: Path) -> None:
    told = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text("utf-8")
    with ipfsmem.Memory.create("alex", "local", home=tmp_path) as memory:
        parts = [
            name
            for name in dir(memory)
            if not name.startswith("_") and isinstance(getattr(memory, name, None), MethodGroup)
        ]
        assert len(parts) == 20
        for name in parts:
            assert f"`memory.{name}`" in told
        assert memory.scopes.names() == [] and not memory.vaults.list()
        memory.folders.attach(tmp_path / "plain")
        assert {Path(one.path).name for one in memory.folders.list()} == {"memory", "plain"}
        with pytest.raises(ipfsmem.errors.UsageError, match="encrypted vault of a wallet"):
            memory.vaults.add("work")
    assert ipfsmem.results.Status.__struct_fields__[0] == "vault_name"


def test_memory_names_its_vault_also_by_the_former_attribute(tmp_path: Path) -> None:
    with ipfsmem.Memory.create("alex", "local", home=tmp_path) as memory:
        assert memory.vault == memory.scope("notes").vault == "alex"
        assert memory.vault_name == "alex"
    assert memory.vault == "alex"  # also when it is closed


def test_wallet_alone_unlocks_and_other_objects_are_refused(tmp_path: Path) -> None:
    wallet = ipfsmem.RawKeySigner(b"\x21" * 32)
    where = {"provider": str(tmp_path / "stick"), "passphrase": False, "home": tmp_path / "home"}
    (tmp_path / "stick").mkdir()
    with ipfsmem.Memory.load("alex", "encrypted-ipfs", unlock=wallet, create=True, **where) as memory:
        made = memory.replica.config.vault
        memory.lock()
        memory.unlock(wallet)
        assert memory.unlocked and made is not None and made.address == "0x" + wallet.address.hex()
    with ipfsmem.Memory.load("alex", "encrypted-ipfs", unlock=ipfsmem.Unlock(wallet), **where) as memory:
        for wrong in ("0x21", wallet.address, object(), ipfsmem.Unlock("wallet.json")):  # type: ignore[arg-type]
            with pytest.raises(ipfsmem.errors.UsageError, match="cannot unlock a vault") as said:
                memory.unlock(wrong)  # type: ignore[arg-type]
            assert "KeystoreSigner" in said.value.hint
    with pytest.raises(ipfsmem.errors.UsageError, match="cannot unlock a vault"):
        ipfsmem.Memory.create("other", "encrypted-ipfs", unlock="wallet.json", **where)  # type: ignore[arg-type]
    assert not (tmp_path / "home" / "other").exists()


@pytest.mark.parametrize("brought", [False, True])
def test_aload_does_not_block_the_event_loop(tmp_path: Path, brought: bool) -> None:
    """Whether the vault is here, created or restored."""
    threads = set()

    class Slow(ipfsmem.RawKeySigner):
        def sign_message(self, text: bytes) -> bytes:
            threads.add(threading.get_ident())
            return super().sign_message(text)

    (tmp_path / "stick").mkdir()
    where: dict[str, Any] = {
        "provider": str(tmp_path / "stick"),
        "unlock": Slow(b"\x22" * 32),
        "passphrase": False,
    }

    async def work() -> None:
        async with await ipfsmem.Memory.aload(
            "alex", "encrypted-ipfs", home=tmp_path / "a", create=True, **where
        ) as memory:
            memory.write("tone", "direct")
            await memory.sync()
        home = tmp_path / ("b" if brought else "a")
        async with await ipfsmem.Memory.aload("alex", "encrypted-ipfs", home=home, **where) as memory:
            assert memory.read("tone") is not None and (memory.restored is not None) == brought

    asyncio.run(work())
    assert threads and threading.get_ident() not in threads


def test_home_defines_the_label_and_the_clock(tmp_path: Path) -> None:
    home = ipfsmem.Home(
        folder=tmp_path, label="desk", environment=ipfsmem.Environment(lambda: 1_800_000_000_000)
    )
    with ipfsmem.Memory.create("alex", "local", home=home) as memory:
        assert memory.replica.config.label == "desk" and memory.replica.folder == tmp_path / "alex"
        assert memory.note("waved")["ts"].startswith("2027-01-15")
    with pytest.raises(
        ipfsmem.errors.UsageError, match="home is a Home or a text or a Path or None, not int"
    ):
        ipfsmem.Memory.load("alex", home=5)  # type: ignore[arg-type]
