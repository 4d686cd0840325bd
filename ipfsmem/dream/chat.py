"""A model that answers a conversation and may call tools, seen from here: messages in, one message out, and what it cost in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec


class Call(msgspec.Struct, frozen=True):
    """One call of a tool that the model wishes. `arguments` is the text that it wrote, JSON if it kept to the rules."""

    id: str
    name: str
    arguments: str


class Reply(msgspec.Struct, frozen=True):
    """What the model said."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    #: Tokens of what it was given, and of what it said, as the endpoint counts them; 0 where it does not.
    given: int = 0
    said: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """Answers conversations."""

    #: What it is called.
    name: str

    async def reply(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Reply:
        """The next message of a conversation, in the shape of OpenAI's chat completions, with these tools.

        Raises ProviderError or ConfigError.
        """

    async def close(self) -> None:
        """Let go of connections."""
