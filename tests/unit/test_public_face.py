"""The public names: pinned here, all of them there, and free to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ipfsmem
import ipfsmem.errors
import ipfsmem.results


def test_the_public_names_are_these_and_exist() -> None:
    assert ipfsmem.__all__ == [
        "KeystoreSigner", "Listed", "Memory", "MnemonicSigner", "Provider", "RawKeySigner", "Reading", "RootKeys",
        "Status", "SyncReport", "Unlock", "WalletSigner", "World", "open_provider",
    ]  # fmt: skip
    for name in ipfsmem.__all__:
        assert getattr(ipfsmem, name).__name__ == name
    assert ipfsmem.__version__


def test_importing_the_package_imports_nothing_of_it() -> None:
    program = "import sys, ipfsmem; print([m for m in sys.modules if m.startswith('ipfsmem.')])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_the_parts_of_a_memory_are_objects_with_their_own_methods(tmp_path: Path) -> None:
    with ipfsmem.Memory.create("alex", "local", home=tmp_path) as memory:
        memory.scopes.make("work", title="Work")
        memory.scope("work").write("tone", "direct")
        assert [(one.token, one.title) for one in memory.scopes.list()] == [("work", "Work")]
        assert memory.scope("work").scopes.forget("work") == 1 and memory.scopes.list() == []
        (gone,) = memory.scopes.list(forgotten=True)
        assert gone.forgotten and memory.scopes.get("work") == gone


def test_a_text_and_its_hash_go_by_their_own_words(tmp_path: Path) -> None:
    """Finding U18: a reading had no `text`, and `body` of a listed memory was a hash."""
    with ipfsmem.Memory.create("alex", "local", home=tmp_path) as memory:
        written = memory.write("tone", "direct")
        assert written.text.endswith("direct\n") and written.text.encode() == written.data
        assert [one.sha256 for one in memory.list()] == [written.sha256]


def test_what_the_readme_says_of_the_parts_is_so(tmp_path: Path) -> None:
    told = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    with ipfsmem.Memory.create("alex", "local", home=tmp_path) as memory:
        parts = [name for name in vars(memory) if not name.startswith("_")]
        assert len(parts) == 9
        for name in parts:
            assert f"`memory.{name}`" in told
        assert memory.scopes.list() == [] and memory.vaults.list() == []
        memory.folders.attach(tmp_path / "plain")
        assert {Path(one.path).name for one in memory.folders.list()} == {"memory", "plain"}
        with pytest.raises(ipfsmem.errors.UsageError, match="encrypted memory of a wallet"):
            memory.vaults.add("work")
    assert memory.folders.list() == []
    assert "`ipfsmem.results`" in told and ipfsmem.results.Status.__struct_fields__[0] == "namespace"
