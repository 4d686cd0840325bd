"""The classes behind `anthropic.memory_tool`: the interface of the package `anthropic`, implemented by a `MemoryDirectory`.

They subclass classes of that package, so only this module imports it at the top; it is imported when a tool is made.
"""

from __future__ import annotations

from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from pydantic import BaseModel

from ipfsmem.adapters.memory_directory import CommandError, MemoryDirectory
from ipfsmem.in_thread import in_thread


def _run(directory: MemoryDirectory, command: object) -> str:
    try:
        return directory.run(dict(command) if isinstance(command, BaseModel) else command)
    except CommandError as error:
        raise ToolError(str(error)) from None


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool."""

    def __init__(
        self, directory: MemoryDirectory, cache_control: BetaCacheControlEphemeralParam | None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._directory = directory

    def call(self, input: object) -> str:
        return _run(self._directory, input)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return _run(self._directory, command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return _run(self._directory, command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return _run(self._directory, command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return _run(self._directory, command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return _run(self._directory, command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return _run(self._directory, command)

    def clear_all_memory(self) -> str:
        return self._directory.clear()


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for asynchronous clients, in threads."""

    def __init__(
        self, directory: MemoryDirectory, cache_control: BetaCacheControlEphemeralParam | None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._directory = directory

    async def _run(self, command: object) -> str:
        return await in_thread(lambda: _run(self._directory, command))

    async def call(self, input: object) -> str:
        return await self._run(input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await self._run(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await self._run(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await self._run(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await self._run(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await self._run(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await self._run(command)

    async def clear_all_memory(self) -> str:
        return await in_thread(self._directory.clear)
