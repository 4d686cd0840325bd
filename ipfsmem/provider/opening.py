"""Opening the providers of a memory from their specs, and closing again what was opened here.

A provider that cannot be opened is a value that says why (`NotOpened`); only what is open has methods. Providers that
were handed in open are used as they are and never closed. Nothing here calls a provider but to close it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import config as configuration
from ipfsmem.device.namespaces import namespaces
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.provider.contract import Provider, open_provider

#: Closings that nobody waits for: an event loop itself holds its tasks only weakly.
_CLOSING: set[asyncio.Task[None]] = set()


class NotOpened(msgspec.Struct, frozen=True):
    """A provider that cannot be opened now: its token is not set, its package is gone, or its spec names none.

    Nothing is known of what it can do or holds. `problem` and `hint` are those of the ConfigError.
    """

    spec: str
    problem: str
    hint: str = ""

    def error(self) -> ProviderRefused:
        """What whoever needs this very provider is told."""
        return ProviderRefused(f"{self.spec} cannot be used: {self.problem}", hint=self.hint)


class Providers(msgspec.Struct, frozen=True):
    """A list of providers in its order, each open or with the reason why it is not."""

    each: tuple[Provider | NotOpened, ...] = ()

    @property
    def open(self) -> list[Provider]:
        """Those that can be called."""
        return [one for one in self.each if not isinstance(one, NotOpened)]

    @property
    def not_opened(self) -> list[NotOpened]:
        """Those that cannot."""
        return [one for one in self.each if isinstance(one, NotOpened)]


class _Own(msgspec.Struct, frozen=True):
    spec: str
    settings: Mapping[str, Any]
    provider: Provider


class ProviderPool:
    """Opens providers from specs, each once, and closes them."""

    def __init__(self, home: Path | None = None) -> None:
        """`home`: where the memories of this device lie, whose providers count as in use beside those opened here."""
        self._own: list[_Own] = []
        self.home = home

    def open(self, given: Iterable[str | Provider]) -> Providers:
        """The providers that specs name, with the settings of their kinds from the settings file; an open one stands
        for itself.

        What was opened here with the same settings is used again. Raises ConfigError for a settings file that cannot be
        read; what is wrong with one provider is in its value.
        """
        asked = [*given]
        specs = [one for one in asked if isinstance(one, str)]
        known = configuration.settings() if specs else configuration.Settings()
        each: list[Provider | NotOpened] = []
        for one in asked:
            if not isinstance(one, str):
                each.append(one)
                continue
            try:
                each.append(self._open(one, known.of_provider(one), specs, company=len(asked) > 1))
            except ConfigError as error:
                each.append(NotOpened(one, str(error), error.hint))
        return Providers(tuple(each))

    def open_all(self, given: Iterable[str | Provider]) -> list[Provider]:
        """The same where each is needed. Raises the ConfigError of the first that cannot be opened."""
        providers = self.open(given)
        for one in providers.not_opened:
            raise ConfigError(one.problem, hint=one.hint)
        return providers.open

    def open_again(self, before: Providers) -> Providers:
        """The same list, with what could not be opened then tried once more: a token may be set by now."""
        if not before.not_opened:
            return before
        return self.open(one.spec if isinstance(one, NotOpened) else one for one in before.each)

    def _open(
        self, spec: str, settings: Mapping[str, Any], given: Sequence[str], *, company: bool
    ) -> Provider:
        for own in self._own:
            if own.spec == spec and own.settings == settings:
                return own.provider
        # A token belongs to one of them, so each is told of the others; and who is not alone is not waited for long.
        told = {"beside": lambda: self._beside(spec, given), "company": company}
        made = open_provider(spec, {**settings, **told})
        self._own.append(_Own(spec, settings, made))
        return made

    def _beside(self, spec: str, given: Sequence[str]) -> tuple[str, ...]:
        """The specs of the same kind that are in use: here, and by the memories of this device."""
        kind = spec.partition(":")[0]
        known = {*given, *(own.spec for own in self._own)}
        if self.home is not None:
            known.update(one for config in namespaces(self.home).values() for one in config.providers)
        return tuple(sorted(one for one in known if one.partition(":")[0] == kind))

    async def aclose(self) -> None:
        """Close what was opened here. May be called again."""
        own, self._own = self._own, []
        for one in own:
            await one.provider.close()

    def close(self) -> None:
        """The same without waiting: at once where no event loop runs, else as soon as the one that runs comes to it.

        Connections belong to the loop that they were made in. `asyncio.run` has closed its own by the time it returns.
        """
        if not self._own:
            return
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            loop = asyncio.new_event_loop()  # not asyncio.run: that takes the caller's own loop away
            try:
                loop.run_until_complete(self.aclose())
            finally:
                loop.close()
            return
        task = running.create_task(self.aclose())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)
