"""The operations on the further vaults of a wallet, whose names its encrypted vault `default` stores: list, add."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ipfsmem.bundle.program_events import FurtherVault
from ipfsmem.errors import UsageError
from ipfsmem.operation import Items, View, operation
from ipfsmem.wallet.message import MAX_KEY_NUMBER


class VaultNames(Items[FurtherVault], frozen=True, kw_only=True):
    """The further vaults of a wallet by name. It is a sequence of its `vaults`."""

    vaults: tuple[FurtherVault, ...]


@operation(
    name="vaults.list",
    summary="List further vaults of this vault's wallet",
    right="read",
    about="memory",
    command="key vaults",
)
def list_(view: View) -> VaultNames:
    """List the further vaults of this vault's wallet.

    The vault `default` stores their names, encrypted, so that you can find them after restoring it.
    Each is separate and needs one more signature.
    """
    from ipfsmem.vault.vaults import further_vaults

    return VaultNames(vaults=tuple(further_vaults(view.opened.replica)))


@operation(
    name="vaults.add",
    summary="Store the name of another vault of this vault's wallet",
    right="admin",
    about="memory",
    raises=("UsageError: the vault is not an encrypted one of a wallet, or `name` is invalid.",),
    audit="keys vaults",
    command="",
    idempotent=True,
)
def add(
    view: View,
    name: Annotated[str, Meta(description="Its name in the signed text.")],
    key_number: Annotated[int, Meta(ge=1, le=MAX_KEY_NUMBER, description="Its key number.")] = 1,
) -> FurtherVault:
    """Store the name of another vault of this vault's wallet, so that one signature finds it."""
    from ipfsmem.vault.vaults import keep_name
    from ipfsmem.wallet.message import check_vault

    config = view.opened.replica.config
    vault = config.vault
    if not config.mode.sealed or vault is None or vault.address is None:
        raise UsageError("only an encrypted vault of a wallet stores the names of further vaults")
    check_vault(name)
    further = FurtherVault(name=name, key_number=key_number, address=vault.address)
    keep_name(view.opened.replica, further)
    return further
