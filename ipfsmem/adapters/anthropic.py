"""Claude's memory tool (`memory_20250818`) on an ipfsmem vault, for the tool runner of the package `anthropic`.

    tool = memory_tool(memory)
    client.beta.messages.tool_runner(model=..., messages=[...], tools=[tool], max_tokens=...)

Without the tool runner, `MemoryDirectory(memory).run(block.input)` is all that is needed. Extra: `anthropic`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipfsmem.adapters.extras import extra
from ipfsmem.adapters.memory_directory import MemoryDirectory
from ipfsmem.memory import Memory

if TYPE_CHECKING:
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anthropic.types.beta import BetaCacheControlEphemeralParam

__all__ = ["MemoryDirectory", "async_memory_tool", "memory_tool"]


def memory_tool(
    memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
) -> BetaAbstractMemoryTool:
    """Return the memory tool for `client.beta.messages.tool_runner`. `memory`: a vault, or one scope of it (`memory.scope("x")`).

    Make one for each conversation: it knows what this conversation was shown, and replaces nothing else. Raises UsageError if the
    extra `anthropic` is not installed.
    """
    with extra("anthropic"):
        from ipfsmem.adapters.anthropic_tool import MemoryTool
    return MemoryTool(MemoryDirectory(memory), cache_control)


def async_memory_tool(
    memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
) -> BetaAsyncAbstractMemoryTool:
    """Return the memory tool for an asynchronous client; the work is done in a thread."""
    with extra("anthropic"):
        from ipfsmem.adapters.anthropic_tool import AsyncMemoryTool
    return AsyncMemoryTool(MemoryDirectory(memory), cache_control)
