"""`memory.vaults`: further vaults of this memory's wallet, whose names its vault `default` keeps when it is sealed."""

from __future__ import annotations

import builtins

from ipfsmem.bundle.program_events import FurtherVault
from ipfsmem.errors import UsageError
from ipfsmem.parts.part import MemoryPart
from ipfsmem.vault.vaults import further_vaults, keep_name
from ipfsmem.wallet.message import check_key_number, check_vault


class MemoryVaults(MemoryPart):
    """The further vaults that an open memory knows of. Each is a memory of its own and takes one more signature."""

    def list(self) -> builtins.list[FurtherVault]:
        """Further vaults of this wallet whose names this memory keeps."""
        return further_vaults(self._replica)

    def add(self, name: str, key_number: int = 1) -> FurtherVault:
        """Keep the name of a further vault of this memory's wallet, so that one signature lists it. Raises UsageError."""
        config = self._replica.config
        vault = config.vault
        if not config.mode.sealed or vault is None or vault.address is None:
            raise UsageError("only an encrypted vault of a wallet stores the names of further vaults")
        check_vault(name)
        check_key_number(key_number)
        further = FurtherVault(name, key_number, vault.address)
        keep_name(self._replica, further)
        return further
