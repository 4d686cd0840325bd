"""`memory.plugins`: other memory systems that recall asks as well, by the settings. None of them opens this vault."""

from __future__ import annotations

import builtins

import msgspec

from ipfsmem.config import settings
from ipfsmem.errors import ConfigError, IncompleteError, NotFoundError
from ipfsmem.open_vault.handle import VaultHandle
from ipfsmem.open_vault.method_group import MethodGroup, releases_lock


class PluginLine(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin: its packages with versions, whether the settings enable it, and why it cannot run; "" if it can."""

    name: str
    package: str
    on: bool
    problem: str


class PluginTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a plugin test: its blocks for the start of a session, and for a question."""

    name: str
    prompt_block: str
    prefetch: str


class MemoryPlugins(MethodGroup):
    """The plugins of this device. The error of one is logged and omits its answer."""

    def __init__(self, opened: VaultHandle) -> None:
        super().__init__(opened)

    def list(self) -> builtins.list[PluginLine]:
        """Return installed and enabled plugins, without running them. Raises ConfigError."""
        from ipfsmem.plugins.running import known_plugins

        return [
            PluginLine(name=one.name, package=one.package, on=one.on, problem=one.problem)
            for one in known_plugins(settings().plugins)
        ]

    @releases_lock
    def prompt_block(self, session: str = "") -> str:
        """Return the blocks of all plugins for the start of a session, each fenced under its name; "" without any."""
        return self._labelled(None, session)

    @releases_lock
    def prefetch(self, query: str, session: str = "") -> str:
        """Return the blocks of all plugins for a question, in the same way."""
        return self._labelled(query, session)

    def turn_complete(self, session: str, summary: str) -> None:
        """Tell all plugins that a turn ended, and its messages, without waiting. Saving a conversation does so automatically."""
        running = self._open.plugins()
        if running is not None:
            running.turn_complete(session, summary)

    @releases_lock
    def test(self, name: str, query: str) -> PluginTrial:
        """Return the answers of an enabled plugin. Raises NotFoundError, ConfigError if it cannot run, and IncompleteError with its
        errors."""
        plugin = next((one for one in self.list() if one.name == name), None)
        if plugin is None:
            raise NotFoundError(
                f"there is no plugin {name[:60]!r}", hint="List the installed plugins: ipfsmem plugin list"
            )
        if plugin.problem:
            raise ConfigError(f"the plugin {name} cannot run: {plugin.problem}")
        if not plugin.on:
            raise ConfigError(
                f"the plugin {name} is not enabled",
                hint=f"Enable it: ipfsmem config set plugins.on {','.join((*settings().plugins.names, name))}",
            )
        running = self._open.plugins()
        assert running is not None
        results, problem = running.tried(name, query)
        if problem:
            raise IncompleteError(f"the plugin {name} failed, {problem}")
        return PluginTrial(name=name, prompt_block=results[0].text, prefetch=results[1].text)

    def _labelled(self, query: str | None, session: str) -> str:
        running = self._open.plugins()
        if running is None:
            return ""
        from ipfsmem.plugins.fitting import labelled

        return labelled(
            running.prompt_blocks(session) if query is None else running.prefetched(query, session)
        )
