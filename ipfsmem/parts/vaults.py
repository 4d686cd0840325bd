"""`memory.vaults`: further vaults of the wallet, whose names its encrypted vault `default` stores."""

from __future__ import annotations

import builtins

from ipfsmem.bundle.program_events import FurtherVault
from ipfsmem.errors import UsageError
from ipfsmem.parts.part import MemoryPart
from ipfsmem.vault.vaults import further_vaults, keep_name
from ipfsmem.wallet.message import check_key_number, check_vault


class MemoryVaults(MemoryPart):
    """The known further vaults. Each is separate and needs one more signature."""

    def list(self) -> builtins.list[FurtherVault]:
        """Return the further vaults that this vault lists."""
        return further_vaults(self._replica)

    def add(self, name: str, key_number: int = 1) -> FurtherVault:
        """List a further vault of the wallet, so that one signature finds it. Raises UsageError."""
        config = self._replica.config
        vault = config.vault
        if not config.mode.sealed or vault is None or vault.address is None:
            raise UsageError("only an encrypted vault of a wallet stores the names of further vaults")
        check_vault(name)
        check_key_number(key_number)
        further = FurtherVault(name, key_number, vault.address)
        keep_name(self._replica, further)
        return further
