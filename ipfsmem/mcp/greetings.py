"""Answers that need no import of the tools: the handshake, and the lists that depend on the server's options alone.

`mcp/preparing.py` makes them from the tools and stores them in `prepared.json`; a test compares it with the tools and with the
SDK's answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from msgspec import json

FILE: Final = Path(__file__).with_name("prepared.json")


class Greetings:
    """The prepared answers to a client that begins with a handshake, for one choice of tools."""

    def __init__(self, prepared: dict[str, Any], tools: list[Any], instructions: str | None = None) -> None:
        """`tools`: as in the protocol; `instructions`: replace the prepared ones."""
        self._protocols: list[str] = prepared["protocols"]
        self._initialize: dict[str, Any] = prepared["initialize"]
        if instructions is not None:
            self._initialize = {**self._initialize, "instructions": instructions}
        self._fixed: dict[str, Any] = {
            "ping": {},
            "tools/list": {"tools": tools},
            "prompts/list": {"prompts": prepared["prompts"]},
            "resources/templates/list": {"resourceTemplates": prepared["templates"]},
        }

    def initialize(self, params: Any) -> dict[str, Any] | None:
        """Return the answer to a handshake; None for one that the SDK must check."""
        if not isinstance(params, dict) or not isinstance(params.get("protocolVersion"), str):
            return None
        client = params.get("clientInfo")
        if not isinstance(params.get("capabilities"), dict) or not isinstance(client, dict):
            return None
        if not isinstance(client.get("name"), str) or not isinstance(client.get("version"), str):
            return None
        protocol = params["protocolVersion"]
        version = protocol if protocol in self._protocols else self._protocols[-1]
        return {"protocolVersion": version, **self._initialize}

    def answer(self, method: str, params: Any) -> dict[str, Any] | None:
        """Return the answer to a request after the handshake; None for any other request."""
        if params not in (None, {}) and not (isinstance(params, dict) and params.keys() <= {"_meta"}):
            return None
        return self._fixed.get(method)


def prepared() -> dict[str, Any]:
    """Load the prepared answers."""
    greeting: dict[str, Any] = json.decode(FILE.read_bytes())
    return greeting


def chosen(
    greeting: dict[str, Any], names: Iterable[str] | None, *, read_only: bool, structured: bool
) -> list[dict[str, Any]] | None:
    """Return the tools of some names (each a tool, a set, or several with commas); None for an unknown name."""
    tools, sets = greeting["tools"], greeting["sets"]
    words = ["everyday"] if names is None else [word.strip() for one in names for word in one.split(",")]
    tool_names = [name for word in words if word for name in sets.get(word, (word,))]
    if not tool_names or not all(name in tools for name in tool_names):
        return None
    definitions = []
    for name in dict.fromkeys(tool_names):
        if read_only and not tools[name]["annotations"]["readOnlyHint"]:
            continue
        output = {"outputSchema": greeting["outputs"][name]} if structured else {}
        definitions.append({**tools[name], **output})
    return definitions
