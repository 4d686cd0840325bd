"""Chat model behind an endpoint with OpenAI's chat completions API: OpenAI, Ollama, Google, or one that the user names.

The user chooses the endpoint. It receives the messages, and the key if needed; redirects are not followed, so no other host does.
Answers are bounded and checked, and never executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.dream.chat import Reply, ToolCall
from ipfsmem.errors import ProviderRefused
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.policy import Retry
from ipfsmem_providers.openai_endpoint import Kind, endpoint_of

#: Maximum bytes of an answer, and maximum seconds for it.
_MOST, _SECONDS = 4 * 1024 * 1024, 120.0
_HINT: Final = (
    'Under [model] in the settings file: provider = "openai", "google" or "ollama", or model and base_url.'
)
_KINDS: Final = {
    "openai": Kind("https://api.openai.com/v1", "", "OPENAI_API_KEY"),
    "google": Kind("https://generativelanguage.googleapis.com/v1beta/openai", "", "GOOGLE_API_KEY"),
    "ollama": Kind("http://127.0.0.1:11434/v1", "", ""),
}


class _Function(msgspec.Struct):
    name: str
    arguments: str = ""


class _ToolCall(msgspec.Struct):
    function: _Function
    id: str = ""


class _ChatMessage(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _ChatMessage


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _ChatAnswer(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class ChatEndpoint:
    """See ipfsmem.dream.chat.ChatModel."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings`: `provider`, `model`, `base_url`, `api_key_env`, as the user wrote them. Raises ConfigError."""
        endpoint = endpoint_of(settings, _KINDS, "chat models", _HINT)
        self.base_url, self.name = endpoint.base_url, endpoint.model
        self._http = Http(
            "model",
            trusted=[self.base_url],
            auth=endpoint.headers,
            settings={name: settings[name] for name in ("timing", "retry") if name in settings},
            retry=Retry(),
        )

    async def reply(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Reply:
        """See the contract."""
        payload: dict[str, Any] = {"model": self.name, "messages": [*messages]}
        if tools:
            payload["tools"] = [{"type": "function", "function": dict(tool)} for tool in tools]
        answer = await self._http.request(
            "POST",
            f"{self.base_url}/chat/completions",
            json=payload,
            idempotent=True,
            max_bytes=_MOST,
            stall=_SECONDS,
            total=_SECONDS,
            what="ask the model",
        )
        try:
            completion = read_json(answer.body, type=_ChatAnswer)
            message = completion.choices[0].message
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError):
            raise ProviderRefused(
                f"the model endpoint {self.base_url} returned an answer that is not a chat completion"
            ) from None
        usage = completion.usage or _Usage()
        calls = tuple(
            ToolCall(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ()
        )
        return Reply(
            message.content or "", calls, max(0, usage.prompt_tokens), max(0, usage.completion_tokens)
        )

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
