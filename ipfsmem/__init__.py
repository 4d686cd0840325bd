"""Private, portable memory for AI agents.

The public face: these names and the classes in `ipfsmem.errors`; everything else may change without notice. They are
imported when they are first used, so that `import ipfsmem` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipfsmem.local_memory import Status
    from ipfsmem.memory import Memory
    from ipfsmem.opening import Unlock
    from ipfsmem.replica.replica import World
    from ipfsmem.seal.derive import RootKeys
    from ipfsmem.seal.signers import KeystoreSigner, MnemonicSigner, RawKeySigner, WalletSigner
    from ipfsmem.storage.memories import Listed
    from ipfsmem.storage.readings import Reading
    from ipfsmem.sync.provider import Provider, open_provider
    from ipfsmem.sync.report import SyncReport

__all__ = [
    "KeystoreSigner",
    "Listed",
    "Memory",
    "MnemonicSigner",
    "Provider",
    "RawKeySigner",
    "Reading",
    "RootKeys",
    "Status",
    "SyncReport",
    "Unlock",
    "WalletSigner",
    "World",
    "open_provider",
]

_WHERE = {
    "KeystoreSigner": "seal.signers",
    "Listed": "storage.memories",
    "Memory": "memory",
    "MnemonicSigner": "seal.signers",
    "Provider": "sync.provider",
    "RawKeySigner": "seal.signers",
    "Reading": "storage.readings",
    "RootKeys": "seal.derive",
    "Status": "local_memory",
    "SyncReport": "sync.report",
    "Unlock": "opening",
    "WalletSigner": "seal.signers",
    "World": "replica.replica",
    "open_provider": "sync.provider",
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
    return [*__all__, "__version__", "errors"]
