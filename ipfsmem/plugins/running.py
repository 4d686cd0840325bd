"""Runs the enabled plugins: requests their texts together, fences each text with the name of its plugin, and logs failures.

An installed plugin runs only if the settings name it. A failure never reaches an agent, neither as an error nor as text.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from functools import partial
from importlib.metadata import EntryPoint
from typing import Final, NamedTuple

from ipfsmem.bundle.fence import clean_text
from ipfsmem.config import PluginSettings
from ipfsmem.plugins.contract import GROUP
from ipfsmem.plugins.fitting import PluginText
from ipfsmem.plugins.process import Given, PluginFailure, PluginProcess
from ipfsmem.wording import count

_LOG: Final = logging.getLogger("ipfsmem.plugins")
#: The name of the built-in memory, which no plugin may have.
BUILT_IN: Final = "ipfsmem"
_is_name: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}").fullmatch
#: Maximum characters of the summary of a turn, and of a question.
MOST_SAID: Final = 4_000
#: Failures in a row after which calls stop, and seconds until the next attempt.
FAILURES: Final = 3
REST: Final = 60.0


class InstalledPlugin(NamedTuple):
    """A plugin by name: its package, whether it is enabled, and why it cannot run; "" if it can."""

    name: str
    package: str
    on: bool
    problem: str
    point: EntryPoint | None


def known_plugins(settings: PluginSettings) -> list[InstalledPlugin]:
    """Return the installed plugins and those in the settings, in their order and then by name. Loads none of them."""
    from importlib.metadata import entry_points

    installed: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        installed.setdefault(point.name, []).append(point)
    names = [*settings.names, *sorted(installed.keys() - set(settings.names))]
    return [_known(name, installed.get(name, []), name in settings.names) for name in names]


def _known(name: str, points: Sequence[EntryPoint], on: bool) -> InstalledPlugin:
    packages = ", ".join(f"{one.dist.name} {one.dist.version}" for one in points if one.dist is not None)
    problem = ""
    if not _is_name(name) or name == BUILT_IN:
        problem = "no plugin can have this name"
    elif not points:
        problem = "no package that is installed has it"
    elif len({one.value for one in points}) > 1:
        problem = "several packages have one of this name"
    return InstalledPlugin(name, packages, on, problem, None if problem else points[0])


class _Running(NamedTuple):
    process: PluginProcess
    breaker: Breaker


class Plugins:
    """The plugins enabled in the settings. `clock`: monotonic seconds."""

    def __init__(self, settings: PluginSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._running: dict[str, _Running] = {}
        for one in known_plugins(settings) if settings.names else []:
            if one.on and one.point is not None:
                made = PluginProcess(one.point, settings.seconds, settings.characters)
                self._running[one.name] = _Running(made, Breaker(clock))
            elif one.on:
                _LOG.warning("the plugin %r is left out: %s", one.name, one.problem)

    def prompt_blocks(self, session: str) -> list[PluginText]:
        """Return the text of each plugin for the start of a session, in the order of the settings."""
        return self._ask("prompt_block", session)

    def prefetched(self, query: str, session: str) -> list[PluginText]:
        """Return the text of each plugin for a query."""
        return self._ask("prefetch", query[:MOST_SAID], session)

    def for_context(self, query: str | None, session: str, layout: str) -> list[PluginText]:
        """Return the text of each plugin for a context block: for the query, and for the start of a session if the layout is for
        that."""
        has_query = query is not None and query.strip() != ""
        plugin_texts = self.prompt_blocks(session) if layout in ("index", "full") else []
        plugin_texts += self.prefetched(query, session) if query is not None and has_query else []
        texts: dict[str, list[str]] = {}
        for one in plugin_texts:
            texts.setdefault(one.name, []).append(one.text)
        return [PluginText(name, "\n\n".join(texts[name])) for name in list(self._running) if name in texts]

    def turn_complete(self, session: str, summary: str) -> None:
        """Notify each plugin of a finished turn, without waiting."""
        for name, one in list(self._running.items()):
            if not one.breaker.is_open:
                call = one.process.call("on_turn_complete", session, summary[:MOST_SAID])
                call.add_done_callback(partial(self._taken, name, one.breaker))

    def close(self, wait: float | None = None) -> None:
        """End the plugins after the queued calls, within `wait` seconds (default: the time limit of a call)."""
        until = self._clock() + (self.settings.seconds if wait is None else wait)
        for one in self._running.values():
            one.process.close(max(0.0, until - self._clock()))
        self._running.clear()

    def tried(self, name: str, query: str) -> tuple[list[PluginText], str]:
        """Return the texts of one plugin for a query and for the start of a session, and its error ("" for none), for a person."""
        one = self._running[name]
        parts = []
        for method, arguments in (("prompt_block", ("",)), ("prefetch", (query, ""))):
            try:
                answer = one.process.call(method, *arguments).result()
            except PluginFailure as error:
                return [], f"{method}: {error}"
            parts.append(PluginText(method, answer.text))
        return parts, ""

    def _ask(self, method: str, *arguments: str) -> list[PluginText]:
        until = self._clock() + self.settings.seconds
        # Another thread may close these meanwhile.
        calls = [
            (name, one.breaker, one.process.call(method, *arguments))
            for name, one in list(self._running.items())
            if not one.breaker.is_open
        ]
        texts = {}
        for name, breaker, result in calls:
            try:
                result.result(
                    max(0.0, until - self._clock()) + 0.05
                )  # the plugin's own limit is reached first
            except Late:
                if result.cancel():
                    _LOG.warning("the plugin %s is left out: its previous call is still running", name)
                    continue
            except PluginFailure:
                pass
            answer = self._taken(name, breaker, result)
            if answer is not None and answer.text.strip():
                texts[name] = PluginText(name, clean_text(answer.text).strip())
        return list(texts.values())

    def _taken(self, name: str, breaker: Breaker, result: Future[Given]) -> Given | None:
        """Return the result of a call and record it in the breaker; None if it failed, which is logged."""
        try:
            answer = result.result(0)
        except (PluginFailure, Late) as error:
            why = str(error) or "it took too long"
            _LOG.warning("the plugin %s is left out: %s", name, why)
            if breaker.failed():
                _LOG.warning(
                    "the plugin %s failed %s in a row and is not asked for %d seconds",
                    name,
                    count(FAILURES, "time"),
                    REST,
                )
            return None
        breaker.worked()
        if answer.cut:
            most = self.settings.characters
            _LOG.warning(
                "the plugin %s returned more than %s characters; only the first are used", name, f"{most:,}"
            )
        return answer


class Breaker:
    """A circuit breaker: after some failures in a row no calls for a while, then one attempt. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are stopped now."""
        return self._failures >= FAILURES and self._clock() < self._until

    def worked(self) -> None:
        """Record a success, which resets the count."""
        self._failures = 0

    def failed(self) -> bool:
        """Record a failure; returns whether calls stop from now on."""
        self._failures += 1
        self._until = self._clock() + REST
        return self._failures >= FAILURES
