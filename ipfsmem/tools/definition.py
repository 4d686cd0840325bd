"""The definition of a tool without a memory: its description, its schemas, and its function."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ipfsmem.tools.lenient import MAX_KEY
from ipfsmem.tools.schema import JSON, text
from ipfsmem.tools.tool import Tool, ToolResult
from ipfsmem.tools.tool_context import ToolContext


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """The one definition of a tool, from which MCP and all adapters are made."""

    name: str
    title: str
    description: str
    parameters: JSON
    returns: JSON
    run: Callable[[ToolContext, JSON], ToolResult]
    #: Arguments of any type that become text.
    side: frozenset[str] = frozenset()
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    def at(self, tool_context: ToolContext) -> Tool:
        """Return the tool for one memory."""
        run = self.run
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            parameters=self.parameters,
            returns=self.returns,
            answer=lambda args: run(tool_context, args),
            side=self.side,
            read_only=self.read_only,
            destructive=self.destructive,
            idempotent=self.idempotent,
        )


#: The argument that every operation on a key has.
SCOPE = text('Another scope; "" is everybody\'s.', most=64)
KEY = text("Key: a-z, 0-9, _ and -.", least=1, most=MAX_KEY)
