"""What a model may call: each operation of a memory as one tool, with a name, words for the model, and JSON Schemas.

`toolset` gives them for one memory; the MCP server and every adapter are made from these. No tool promotes others' texts,
touches keys, members or providers, or reads anything beside the memory.
"""

from __future__ import annotations

from ipfsmem.tools.tool import Tool, ToolResult
from ipfsmem.tools.toolset import EVERYDAY, GRAPH, GUIDANCE, LIFE, PEERS, toolset

__all__ = ["EVERYDAY", "GRAPH", "GUIDANCE", "LIFE", "PEERS", "Tool", "ToolResult", "toolset"]
