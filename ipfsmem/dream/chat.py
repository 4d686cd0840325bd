"""The interface of a chat model that may call tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool by the model. `arguments` is its text, JSON if it is valid."""

    id: str
    name: str
    arguments: str


class Reply(msgspec.Struct, frozen=True):
    """The answer of the model."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    #: Input and output tokens as reported by the endpoint; 0 if it reports none.
    given: int = 0
    said: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """Answers conversations."""

    #: The model's name.
    name: str

    async def reply(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Reply:
        """Return the next message of a conversation, in the shape of OpenAI's chat completions, with these tools.

        Raises ProviderError or ConfigError.
        """

    async def close(self) -> None:
        """Close connections."""
