"""Private, portable memory for AI agents.

The public face: these names, the methods of `Memory` with the fields of their results, and the classes in `ipfsmem.errors`; everything else may change
without notice, also the module of a result. They are imported when they are first used, so that `import ipfsmem` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # that of `typing`, which is imported when something here is
if TYPE_CHECKING:
    from typing import Any

    from ipfsmem.device.replica import Environment
    from ipfsmem.memories.memory_reader import MemorySummary
    from ipfsmem.memories.memory_records import MemoryRecord
    from ipfsmem.memory import Memory
    from ipfsmem.provider.contract import Provider, open_provider
    from ipfsmem.results import Status
    from ipfsmem.sync.report import SyncReport
    from ipfsmem.vault.home import Home
    from ipfsmem.vault.owner import Unlock
    from ipfsmem.wallet.message import WalletSigner
    from ipfsmem.wallet.root_keys import RootKeys
    from ipfsmem.wallet.signers import KeystoreSigner, MnemonicSigner, RawKeySigner

__all__ = [
    "Environment",
    "Home",
    "KeystoreSigner",
    "Memory",
    "MemoryRecord",
    "MemorySummary",
    "MnemonicSigner",
    "Provider",
    "RawKeySigner",
    "RootKeys",
    "Status",
    "SyncReport",
    "Unlock",
    "WalletSigner",
    "open_provider",
]

_WHERE = {
    "Environment": "device.replica",
    "Home": "vault.home",
    "KeystoreSigner": "wallet.signers",
    "Memory": "memory",
    "MemoryRecord": "memories.memory_records",
    "MemorySummary": "memories.memory_reader",
    "MnemonicSigner": "wallet.signers",
    "Provider": "provider.contract",
    "RawKeySigner": "wallet.signers",
    "RootKeys": "wallet.root_keys",
    "Status": "results",
    "SyncReport": "sync.report",
    "Unlock": "vault.owner",
    "WalletSigner": "wallet.message",
    "open_provider": "provider.contract",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version  # 20 ms that most commands need not pay

        try:
            return version("ipfsmem")
        except PackageNotFoundError:
            return "0"
    if name in _WHERE:
        return getattr(import_module(f"ipfsmem.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'ipfsmem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "errors", "results"]
