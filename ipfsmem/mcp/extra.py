"""A check for the extra `mcp`, which the server needs."""

from __future__ import annotations

from importlib.util import find_spec

from ipfsmem.errors import UsageError


def need_extra() -> None:
    """Raise UsageError if the package is missing, or older than 2.0."""
    if find_spec("mcp_types") is None:
        raise UsageError(
            "the MCP server needs the extra mcp, which is not installed",
            hint="Install it as you installed ipfsmem: pip install 'ipfsmem[mcp]', uv tool install 'ipfsmem[mcp]' or "
            "pipx inject ipfsmem mcp; from a checkout '.[mcp]'.",
        )
