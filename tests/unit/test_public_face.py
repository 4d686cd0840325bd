"""The public names: pinned here, all of them there, and free to import."""

from __future__ import annotations

import subprocess
import sys

import ipfsmem


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
