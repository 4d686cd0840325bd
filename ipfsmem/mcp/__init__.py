"""The MCP server: the tools of `ipfsmem.tools`, the memories as resources, and prompts, over stdio or HTTP on this machine.

It translates between the protocol and the tools, and decides nothing about memories. It needs the extra `mcp`.
"""
