"""Claude's memory tool (`memory_20250818`) on an ipfsmem memory, for the tool runner of the package `anthropic`.

    tool = memory_tool(memory)
    client.beta.messages.tool_runner(model=..., messages=[...], tools=[tool], max_tokens=...)

Without the tool runner, `MemoryDirectory(memory).run(block.input)` is all that is needed. Extra: `anthropic`.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from ipfsmem.adapters.extras import extra
from ipfsmem.adapters.memory_directory import CommandError, MemoryDirectory
from ipfsmem.memory import Memory

if TYPE_CHECKING:
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

__all__ = ["MemoryDirectory", "async_memory_tool", "memory_tool"]


def memory_tool(
    memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
) -> BetaAbstractMemoryTool:
    """The memory tool for `client.beta.messages.tool_runner`. `memory`: a memory, or one scope of it (`memory.scope("x")`).

    Make one for each conversation: it knows what this conversation was shown, and replaces nothing else. Raises UsageError
    when the extra `anthropic` is not installed.
    """
    tool: BetaAbstractMemoryTool = _tools().blocking(MemoryDirectory(memory), cache_control)
    return tool


def async_memory_tool(
    memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
) -> BetaAsyncAbstractMemoryTool:
    """The same for an asynchronous client; the work is done in a thread."""
    tool: BetaAsyncAbstractMemoryTool = _tools().asynchronous(MemoryDirectory(memory), cache_control)
    return tool


class _Tools(NamedTuple):
    blocking: Any
    asynchronous: Any


@functools.cache
def _tools() -> _Tools:
    """The classes, which need the package."""
    with extra("anthropic"):
        from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
        from pydantic import BaseModel

    def run(directory: MemoryDirectory, command: object) -> str:
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
            return run(self._directory, input)

        def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
            return run(self._directory, command)

        def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
            return run(self._directory, command)

        def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
            return run(self._directory, command)

        def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
            return run(self._directory, command)

        def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
            return run(self._directory, command)

        def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
            return run(self._directory, command)

        def clear_all_memory(self) -> str:
            return self._directory.clear()

    class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
        """The same, in threads."""

        def __init__(
            self, directory: MemoryDirectory, cache_control: BetaCacheControlEphemeralParam | None
        ) -> None:
            super().__init__(cache_control=cache_control)
            self._directory = directory

        async def _run(self, command: object) -> str:
            return await asyncio.to_thread(run, self._directory, command)

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
            return await asyncio.to_thread(self._directory.clear)

    return _Tools(MemoryTool, AsyncMemoryTool)
