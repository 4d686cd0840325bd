"""The operations on the providers of a vault: list, add, remove, check, test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import replace

from ipfsmem.errors import ConfigError, IncompleteError
from ipfsmem.operation import Cli, Items, OnProgress, View, operation

if TYPE_CHECKING:
    from ipfsmem.provider.contract import Provider
    from ipfsmem.provider.probe import Step
    from ipfsmem.results import ProviderInfo
    from ipfsmem.sync.presence import Presence

#: Types of parameters and results, imported when an interface needs them.
LATE = {
    "Presence": "ipfsmem.sync.presence",
    "Provider": "ipfsmem.provider.contract",
    "ProviderInfo": "ipfsmem.results",
    "Step": "ipfsmem.provider.probe",
}


class ProviderList(Items["ProviderInfo"], frozen=True, kw_only=True):
    """The providers to which the vault is published. It is a sequence of its `providers`."""

    providers: tuple[ProviderInfo, ...]


class ProviderNames(Items[str], frozen=True, kw_only=True):
    """The names of the providers of a vault, without secrets. It is a sequence of its `providers`."""

    providers: tuple[str, ...]


class ProviderAdded(ProviderNames, frozen=True, kw_only=True):
    """The names of the providers of a vault after one was added. `warning`: the risks of storing the vault there; "" without one."""

    warning: str


class ProviderTried(Items["Step"], frozen=True, kw_only=True):
    """The result of a provider test: a sequence of its `steps`. `failed`: number of failed steps. `warning`: the risks of storing a vault
    there; "" without one."""

    steps: tuple[Step, ...]
    provider: str
    failed: int
    warning: str


class ProvidersChecked(Items["Presence"], frozen=True, kw_only=True):
    """The presence of live data at each provider, a sequence of `providers`. `missing`: number of parts that are missing at providers
    without pending uploads."""

    providers: tuple[Presence, ...]
    missing: int

    def raise_if_unknown(self) -> None:
        """Raise IncompleteError if the presence at a provider is unknown."""
        if not self.providers:
            raise IncompleteError(
                "no provider of this vault stores blocks",
                hint="Choose one that does: ipfsmem provider add SPEC",
            )
        unknown = [one for one in self.providers if one.state in ("unchecked", "waiting")]
        if unknown:
            error = IncompleteError(
                f"it is unknown whether everything is at {', '.join(one.provider for one in unknown)}",
                hint="Check again later: ipfsmem provider check",
            )
            error.hint = next((one.hint for one in unknown if one.hint), error.hint)
            raise error


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
    from ipfsmem.open_vault.providers import providers_in_use
    from ipfsmem.provider.contract import shown_spec

    providers = providers_in_use(view.opened.replica, view.syncing)
    return ProviderList(
        providers=tuple(
            replace(one, spec=shown_spec(one.spec), name=shown_spec(one.name)) for one in providers
        )
    )


@operation(
    name="providers.add",
    summary="Add a provider",
    right="admin",
    about="memory",
    raises=("ConfigError: an unknown provider, or one that cannot be opened.",),
    audit="providers add",
    idempotent=True,
)
def add(
    view: View, spec: Annotated[str, Meta(description="The provider: a folder, or a kind with its address.")]
) -> ProviderAdded:
    """Add a provider without contacting it: the next sync publishes the vault there too."""
    from ipfsmem.open_vault.providers import provider_names, remember_providers
    from ipfsmem.provider.contract import lasting_spec, require_address, spec_warning
    from ipfsmem.provider.opening import Providers

    replica, syncing = view.opened.replica, view.syncing
    syncing.require_published()
    require_address(spec)  # the command line looks names of remotes up, and warns
    spec = lasting_spec(spec)
    (opened,) = syncing.pool.open_all([spec])
    if spec not in replica.config.providers:
        syncing.places = Providers((*syncing.places.each, opened))
    remember_providers(replica, [*replica.config.providers, spec])
    names = provider_names(replica, syncing)
    return ProviderAdded(providers=tuple(names), warning=spec_warning(spec))


@operation(
    name="providers.remove",
    summary="Remove a provider; its data stays",
    right="admin",
    about="memory",
    raises=("ConfigError: it is not a provider of the vault.",),
    audit="providers remove",
)
def remove(
    view: View, spec: Annotated[str, Meta(description="The provider, as `providers.list` shows it.")]
) -> ProviderNames:
    """Remove a provider: the vault is no longer published there. Its data stays there."""
    from ipfsmem.open_vault.providers import provider_names, remember_providers
    from ipfsmem.provider.contract import lasting_spec, shown_spec

    replica, syncing = view.opened.replica, view.syncing
    specs = [*replica.config.providers]
    matches = [one for one in specs if one in (spec, lasting_spec(spec))] or [
        one for one in specs if shown_spec(one) == spec
    ]
    if len(matches) != 1:
        raise ConfigError(
            f"{shown_spec(spec)} is {'more than one' if matches else 'not a'} provider of this vault",
            hint=f"Its providers: {', '.join(map(shown_spec, specs)) or 'none'}",
        )
    specs.remove(matches[0])
    remember_providers(replica, specs)
    syncing.places = syncing.pool.open(specs)
    return ProviderNames(providers=tuple(provider_names(replica, syncing)))


@operation(
    name="providers.check",
    summary="Check that each provider has all live data",
    right="read",
    about="memory",
    raises=("ConfigError: no provider is set.",),
)
async def check(
    view: View,
    *,
    repair: Annotated[bool, Meta(description="Upload missing blocks that are on this device.")] = False,
    full: Annotated[
        bool,
        Meta(description="Read every block instead of asking for it, also of older kept versions."),
    ] = False,
    progress: OnProgress = None,
) -> ProvidersChecked:
    """Check that each provider has everything that a new device would need.

    The check asks for every block and reads a sample; with `full` it reads all blocks, which takes as
    long as downloading the vault. `repair` also uploads blocks that were given up earlier. The error of
    a provider is in its row, not raised.
    """
    from ipfsmem.sync.engine import check
    from ipfsmem.sync.progress import no_progress

    places = view.syncing.published_at()
    checks = await check(
        view.opened.replica,
        places.open,
        repair=repair,
        full=full,
        not_opened=places.not_opened,
        progress=progress or no_progress,
    )
    return ProvidersChecked(
        providers=tuple(checks), missing=sum(one.missing for one in checks if one.state != "waiting")
    )


@operation(
    name="providers.test",
    summary="Test a provider",
    right="read",
    about="memory",
    raises=("ConfigError: an unknown provider, or one that cannot be opened.",),
    command="provider test",
)
async def test(
    view: View,
    provider: Annotated[str | Provider, Meta(description="The provider."), Cli(metavar="SPEC")],
) -> ProviderTried:
    """Test `provider` with real calls: upload, listing, reading back, names, unpinning. It uploads no memories."""
    from ipfsmem.provider.contract import spec_warning
    from ipfsmem.provider.opening import ProviderPool
    from ipfsmem.provider.probe import OVERALL, probe

    environment = view.opened.replica.environment
    pool = ProviderPool(view.syncing.pool.home)
    (opened,) = pool.open_all([provider])
    warning = spec_warning(provider) if isinstance(provider, str) else ""
    try:
        steps = await probe(opened, now_ms=environment.now(), random=environment.random)
    finally:
        await pool.aclose()
    failed = sum(step.outcome == "failed" and step.what != OVERALL for step in steps)
    name = provider if isinstance(provider, str) else provider.name
    return ProviderTried(steps=tuple(steps), provider=name, failed=failed, warning=warning)
