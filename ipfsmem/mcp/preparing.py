"""Generate `prepared.json`, from which the server answers before it has imported its tools.

`python tools/generate.py` writes it after a change of a tool, and `python -m ipfsmem.mcp.preparing` after a change of the SDK.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from msgspec import json

from ipfsmem.mcp import wire
from ipfsmem.mcp.addresses import TEMPLATES
from ipfsmem.mcp.greetings import FILE
from ipfsmem.mcp.server import MARKDOWN, NAME, PROMPTS, TITLE, arguments_of
from ipfsmem.tools import GUIDANCE, toolset
from ipfsmem.tools.toolset import ALL, SETS


def made(protocols: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the answers in the form of the protocol. `protocols`: its versions; None for those of the installed SDK."""
    if protocols is None:
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        protocols = HANDSHAKE_PROTOCOL_VERSIONS

    def none() -> Any:
        raise AssertionError("no tool is called here")

    tools = {one.name: wire.tool(one, structured=True) for one in toolset(none, [ALL])}
    return {
        "protocols": list(protocols),
        "initialize": {
            "capabilities": {
                "prompts": {"listChanged": False},
                "resources": {"listChanged": True, "subscribe": True},
                "tools": {"listChanged": False},
            },
            "serverInfo": {"name": NAME, "title": TITLE, "version": version("ipfsmem")},
            "instructions": GUIDANCE,
        },
        "prompts": [
            {"name": name, "title": title, "description": description, **arguments_of(name)}
            for name, (title, description) in PROMPTS.items()
        ],
        "templates": [
            {
                "uriTemplate": uri,
                "name": title,
                "title": title,
                "description": description,
                "mimeType": MARKDOWN,
            }
            for uri, title, description in TEMPLATES
        ],
        "sets": {ALL: list(tools), **{name: list(names) for name, names in SETS.items()}},
        "outputs": {name: tool.pop("outputSchema") for name, tool in tools.items()},
        "tools": tools,
    }


def encoded(protocols: Iterable[str] | None = None) -> bytes:
    """Return the bytes of the file; `protocols` as for `made`."""
    return json.format(json.encode(made(protocols)), indent=1) + b"\n"


if __name__ == "__main__":
    FILE.write_bytes(encoded())
