"""The user's choice of providers: one or several, by spec or open."""

from __future__ import annotations

from collections.abc import Sequence

from ipfsmem.errors import UsageError
from ipfsmem.provider.contract import Provider, lasting_spec

#: One provider or several: specs such as a folder's path or `pinata`, or open providers.
ProviderChoice = str | Provider | Sequence[str | Provider] | None


def each_of(provider: ProviderChoice) -> list[str | Provider]:
    """Return the chosen providers as a list. Raises UsageError for anything else."""
    if provider is None:
        return []
    if isinstance(provider, str | Provider):
        return [provider]
    if not isinstance(provider, Sequence) or isinstance(provider, bytes | bytearray | memoryview | range):
        raise _wrong(provider)
    for one in provider:
        if not isinstance(one, str | Provider):
            raise _wrong(one)
    return list(provider)


def _wrong(given: object) -> UsageError:
    return UsageError(
        f"provider is a text, an open provider or a list of these, not {type(given).__name__}",
        hint="Give the path of a folder as a text, or an address such as git:PATH.",
    )


def specs_of(provider: ProviderChoice) -> tuple[str, ...]:
    """Return the specs to store in the configuration; an open provider cannot be stored."""
    return tuple(dict.fromkeys(lasting_spec(one) for one in each_of(provider) if isinstance(one, str)))
