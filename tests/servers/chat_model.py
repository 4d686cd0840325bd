"""An endpoint that speaks OpenAI's chat completions API; a function of the conversation is its model.

As strict as the reference (platform.openai.com/docs/api-reference/chat, read 2026-11): a JSON object with
`model` and `messages`; roles are `system`, `user`, `assistant` and `tool`; each tool call of an assistant
is answered by a `tool` message with its id before any other message; tools are functions with a JSON
Schema; a key in `Authorization: Bearer` where the server has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

#: The model's answer to the messages: a text, or calls as (name, arguments).
Says = Callable[[list[dict[str, Any]]], str | list[tuple[str, str]]]


class ChatServer:
    """The received requests, and the model."""

    def __init__(self, says: Says, model: str = "dreamer", key: str = "") -> None:
        self.says = says
        self.model = model
        self.key = key
        self.asked: list[dict[str, Any]] = []
        #: An answer in place of the model's, if not None.
        self.sick: Callable[[dict[str, Any]], web.StreamResponse | None] = lambda answer: None

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", self._complete)
        return app

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return _error(401, "Incorrect API key provided")
        asked = await request.json()
        if asked.keys() - {"model", "messages", "tools"}:
            return _error(400, "unrecognized request argument")
        if asked.get("model") != self.model:
            return _error(404, f"The model `{asked.get('model')}` does not exist")
        wrong = _wrong(asked["messages"]) or _wrong_tools(asked.get("tools", []))
        if wrong:
            return _error(400, wrong)
        self.asked.append(asked)
        said = self.says(asked["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
        if not isinstance(said, str):
            message["tool_calls"] = [
                {
                    "id": f"call_{len(self.asked)}_{n}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for n, (name, arguments) in enumerate(said)
            ]
        answer = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
        return self.sick(answer) or web.json_response(answer)


def _wrong(messages: list[dict[str, Any]]) -> str:
    """Return why a conversation is invalid; "" if valid."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "an assistant message with 'tool_calls' must be followed by tool messages"
        elif message["role"] not in ("system", "user", "assistant"):
            return "invalid role"
        open_calls |= {one["id"] for one in message.get("tool_calls", ())}
        if not isinstance(message["content"], str):
            return "content is invalid"
    return "tool calls are not answered" if open_calls else ""


def _wrong_tools(tools: list[dict[str, Any]]) -> str:
    fits = all(
        one["type"] == "function" and one["function"]["parameters"]["type"] == "object" for one in tools
    )
    return "" if fits else "tools are invalid"


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)
