"""Open a vault's providers from their specs, and close those opened here.

A provider that cannot be opened is a value with the reason (`NotOpened`). Providers passed in open are used
unchanged and never closed. Providers are called only to close them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import config as configuration
from ipfsmem.device.local_vaults import local_vaults
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.provider.contract import Provider, open_provider, shown_spec

#: Tasks without a waiter: an event loop holds its tasks only weakly.
_CLOSING: set[asyncio.Task[None]] = set()


class NotOpened(msgspec.Struct, frozen=True):
    """A provider that cannot be opened now: its token is not set, its package is missing, or its spec is unknown.

    Its capabilities and contents are unknown. `problem` and `hint` are those of the ConfigError.
    """

    spec: str
    problem: str
    hint: str = ""

    @property
    def shown(self) -> str:
        """Return the spec without secrets."""
        return shown_spec(self.spec)

    def error(self) -> ProviderRefused:
        """Return the error for callers that need this provider."""
        return ProviderRefused(f"{self.shown} cannot be used: {self.problem}", hint=self.hint)


class Providers(msgspec.Struct, frozen=True):
    """An ordered list of providers, each open or with the reason why not."""

    each: tuple[Provider | NotOpened, ...] = ()

    @property
    def open(self) -> list[Provider]:
        """Return the open ones."""
        return [one for one in self.each if not isinstance(one, NotOpened)]

    @property
    def not_opened(self) -> list[NotOpened]:
        """Return those not open."""
        return [one for one in self.each if isinstance(one, NotOpened)]


class _Own(msgspec.Struct, frozen=True):
    spec: str
    settings: Mapping[str, Any]
    provider: Provider


class ProviderPool:
    """Opens providers from specs, each once, and closes them."""

    def __init__(
        self, home: Path | None = None, credentials: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """Set `home`, the folder of this device's vaults, whose providers are also in use, and `credentials` by spec,
        which come before those of the settings file."""
        self._own: list[_Own] = []
        self._credentials = credentials or {}
        self.home = home

    def open(self, given: Iterable[str | Provider]) -> Providers:
        """Open the providers of specs with the settings of their kinds from the settings file; keep open ones.

        A provider opened here with the same settings is reused. Raises ConfigError for an unreadable settings
        file; errors of single providers are in their values.
        """
        requested = [*given]
        specs = [one for one in requested if isinstance(one, str)]
        known = configuration.settings() if specs else configuration.Settings()
        each: list[Provider | NotOpened] = []
        for one in requested:
            if not isinstance(one, str):
                each.append(one)
                continue
            try:
                settings = {**known.of_provider(one), **self._credentials.get(one, {})}
                each.append(self._open(one, settings, specs, company=len(requested) > 1))
            except ConfigError as error:
                each.append(NotOpened(one, str(error), error.hint))
        return Providers(tuple(each))

    def open_all(self, given: Iterable[str | Provider]) -> list[Provider]:
        """Open all, each required. Raises the ConfigError of the first that cannot be opened."""
        providers = self.open(given)
        for one in providers.not_opened:
            raise ConfigError(one.problem, hint=one.hint)
        return providers.open

    def open_again(self, before: Providers) -> Providers:
        """Return the same list, retrying those that could not be opened: a token may be set by now."""
        if not before.not_opened:
            return before
        return self.open(one.spec if isinstance(one, NotOpened) else one for one in before.each)

    def _open(
        self, spec: str, settings: Mapping[str, Any], given: Sequence[str], *, company: bool
    ) -> Provider:
        for own in self._own:
            if own.spec == spec and own.settings == settings:
                return own.provider
        # A token is for one address, so each provider gets the specs of the others. With several providers, waits are short.
        context = {"beside": lambda: self._beside(spec, given), "company": company, "home": self.home}
        made = open_provider(spec, {**settings, **context})
        self._own.append(_Own(spec, settings, made))
        return made

    def _beside(self, spec: str, given: Sequence[str]) -> tuple[str, ...]:
        """Return the specs of the same kind that are in use, in this pool and by this device's vaults."""
        kind = spec.partition(":")[0]
        known = {*given, *(own.spec for own in self._own)}
        if self.home is not None:
            known.update(one for config in local_vaults(self.home).values() for one in config.providers)
        return tuple(sorted(one for one in known if one.partition(":")[0] == kind))

    async def aclose(self) -> None:
        """Close the providers opened here. May be called again."""
        own, self._own = self._own, []
        for one in own:
            await one.provider.close()

    def close(self) -> None:
        """Close without waiting: immediately if no event loop runs, else in a task of the running loop.

        Connections belong to the event loop that opened them. `asyncio.run` closes its loop before it returns.
        """
        if not self._own:
            return
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            loop = asyncio.new_event_loop()  # not asyncio.run: it would remove the caller's own loop
            try:
                loop.run_until_complete(self.aclose())
            finally:
                loop.close()
            return
        task = running.create_task(self.aclose())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)
