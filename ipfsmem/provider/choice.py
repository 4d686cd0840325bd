"""The user's choice of providers: one or several, by spec or open."""

from __future__ import annotations

from collections.abc import Sequence

from ipfsmem.provider.contract import Provider, lasting_spec

#: One provider or several: specs such as a folder's path or `pinata`, or open providers.
ProviderChoice = str | Provider | Sequence[str | Provider] | None


def each_of(provider: ProviderChoice) -> list[str | Provider]:
    """Return the chosen providers as a list."""
    if provider is None:
        return []
    return [provider] if isinstance(provider, str | Provider) else list(provider)


def specs_of(provider: ProviderChoice) -> tuple[str, ...]:
    """Return the specs to store in the configuration; an open provider cannot be stored."""
    return tuple(dict.fromkeys(lasting_spec(one) for one in each_of(provider) if isinstance(one, str)))
