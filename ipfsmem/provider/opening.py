"""The providers of one memory: those that it opened from specs are its own to close, those handed in open are not.

It opens and closes; it never calls anything else of a provider, and chooses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ipfsmem import config as configuration
from ipfsmem.device.namespaces import namespaces
from ipfsmem.errors import ConfigError
from ipfsmem.provider.contract import Provider, open_provider
from ipfsmem.provider.unavailable import Unready

#: Closings that nobody waits for: an event loop itself holds its tasks only weakly.
_CLOSING: set[asyncio.Task[None]] = set()


class _Own(msgspec.Struct, frozen=True):
    spec: str
    settings: Mapping[str, Any]
    provider: Provider


class Channels:
    """What was opened here so far."""

    def __init__(self, home: Path | None = None) -> None:
        """`home`: where the memories of this device lie, whose providers count as in use beside those opened here."""
        self._own: list[_Own] = []
        self.home = home

    def open(self, given: Iterable[str | Provider], *, standing: bool = False) -> list[Provider]:
        """Providers for specs, with the settings of their kinds from the settings file; an open one stands for itself.

        What was opened here with the same settings is used again. Raises ConfigError; but for `standing` ones, which
        were chosen before, one that cannot be opened now is like one that is down.
        """
        each = list(given)
        if not any(isinstance(one, str) for one in each):
            return [one for one in each if not isinstance(one, str)]
        known = configuration.settings()
        specs = [one for one in each if isinstance(one, str)]
        return [
            self._open(one, known.of_provider(one), specs, standing, len(each) > 1)
            if isinstance(one, str)
            else one
            for one in each
        ]

    def _open(
        self, spec: str, settings: Mapping[str, Any], given: Sequence[str], standing: bool, company: bool
    ) -> Provider:
        for own in self._own:
            if own.spec == spec and own.settings == settings:
                return own.provider
        try:
            # A token belongs to one of them, so each is told of the others; and who is not alone is not waited for long.
            told = {"beside": lambda: self._beside(spec, given), "company": company}
            made = open_provider(spec, {**settings, **told})
        except ConfigError as error:
            if not standing:
                raise
            return Unready(spec, error)
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
