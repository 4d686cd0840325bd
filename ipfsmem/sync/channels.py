"""The providers of one memory: those that it opened from specs are its own to close, those handed in open are not.

It opens and closes; it never calls anything else of a provider, and chooses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ipfsmem import config as configuration
from ipfsmem.errors import ConfigError
from ipfsmem.sync.provider import Provider, open_provider
from ipfsmem.sync.unready import Unready

#: Closings that nobody waits for: an event loop itself holds its tasks only weakly.
_CLOSING: set[asyncio.Task[None]] = set()


class _Own(msgspec.Struct, frozen=True):
    spec: str
    settings: Mapping[str, Any]
    provider: Provider


class Channels:
    """What was opened here so far."""

    def __init__(self) -> None:
        self._own: list[_Own] = []

    def open(self, given: Iterable[str | Provider], *, standing: bool = False) -> list[Provider]:
        """Providers for specs, with the settings of their kinds from the settings file; an open one stands for itself.

        What was opened here with the same settings is used again. Raises ConfigError; but for `standing` ones, which
        were chosen before, one that cannot be opened now is like one that is down.
        """
        each = list(given)
        if not any(isinstance(one, str) for one in each):
            return [one for one in each if not isinstance(one, str)]
        known = configuration.settings()
        return [
            self._open(one, known.of_provider(one), standing) if isinstance(one, str) else one for one in each
        ]

    def _open(self, spec: str, settings: Mapping[str, Any], standing: bool) -> Provider:
        for own in self._own:
            if own.spec == spec and own.settings == settings:
                return own.provider
        try:
            made = open_provider(spec, settings)
        except ConfigError as error:
            if not standing:
                raise
            return Unready(spec, error)
        self._own.append(_Own(spec, settings, made))
        return made

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
