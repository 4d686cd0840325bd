"""The MCP server: the tools of `ipfsmem.tools`, memories as resources, and prompts, over stdio or HTTP on this machine.

It translates between the protocol and the tools, and has no rules of its own about memories. It needs the extra `mcp`.
"""
