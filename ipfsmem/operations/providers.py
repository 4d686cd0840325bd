"""The operation `providers.list`: where a vault is published."""

from __future__ import annotations

from msgspec.structs import replace

from ipfsmem.operation import Items, View, operation
from ipfsmem.results import ProviderInfo


class ProviderList(Items[ProviderInfo], frozen=True, kw_only=True):
    """The providers to which the vault is published. It is a sequence of its `providers`."""

    providers: tuple[ProviderInfo, ...]


@operation(
    name="providers.list",
    summary="List the providers of this vault",
    right="read",
    about="memory",
    command="provider list",
    http="GET /v1/providers",
)
def list_(view: View) -> ProviderList:
    """List the providers of this vault: capabilities, and the version that this device published there last."""
    from ipfsmem.parts.providers import providers_in_use
    from ipfsmem.provider.contract import shown_spec

    found = providers_in_use(view.opened.replica, view.syncing)
    return ProviderList(
        providers=tuple(replace(one, spec=shown_spec(one.spec), name=shown_spec(one.name)) for one in found)
    )
