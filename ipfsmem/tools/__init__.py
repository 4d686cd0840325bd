"""Tools for models: each operation of a memory as one tool, with a name, a description for models, and JSON Schemas.

`toolset` returns them for one memory; the MCP server and every adapter are made from these. No tool approves pending texts,
changes keys, members or providers, or reads anything but the memory.
"""

from __future__ import annotations

from ipfsmem.tools.tool import Tool, ToolResult
from ipfsmem.tools.toolset import EVERYDAY, GRAPH, GUIDANCE, LIFE, PEERS, toolset

__all__ = ["EVERYDAY", "GRAPH", "GUIDANCE", "LIFE", "PEERS", "Tool", "ToolResult", "toolset"]
