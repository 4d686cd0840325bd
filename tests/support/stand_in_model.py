"""A model on loopback for real agent programs: four wire formats, one script, every request recorded.

A script maps the program's request to the next step: a tool call or a final sentence. Tests inspect the
requests, which are all that a model sees. As an HTTP proxy it refuses every connection and records the
host."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, Self

_SERVER = "ipfsmem"
#: Prefix of the id of a call whose result is left out.
_ASIDE = "aside"
#: Maximum number of searches or waits for a tool.
_PATIENCE = 60


class Call(NamedTuple):
    """A tool call. `tool` is the server's name of it, or a name of the program's own."""

    tool: str
    arguments: dict[str, Any]
    #: Whether its result is left out of `DeviceCounter.results`.
    aside: bool = False


class Seen(NamedTuple):
    """One request: the model's input before its next step."""

    #: Names of the tools, as the program has them; also of tools that a search found.
    tools: tuple[str, ...]
    #: Every text of the request in order, decoded.
    text: str
    #: The results of tools in order, except those of a search or wait for a tool.
    results: tuple[str, ...]
    #: The number of omitted results.
    asides: int = 0

    def has(self, tool: str) -> bool:
        return self.full_name(tool) is not None

    def full_name(self, tool: str) -> str | None:
        """Return the program's name of a tool of the server, or of its own tool."""
        if tool in self.tools:
            return tool
        for name in self.tools:
            plain = name.replace(".", "_").replace("-", "_")
            if plain.endswith(f"_{tool}") and plain.removesuffix(f"_{tool}").rstrip("_").endswith(_SERVER):
                return name
        return None


Step = Call | str
Script = Callable[[Seen], Step]


def steps(*calls: Call, final: str = "done") -> Script:
    """Make one call after another, counted by the results that came back."""

    def script(seen: Seen) -> Step:
        done = len(seen.results)
        return found(seen, calls[done]) if done < len(calls) else final

    return script


def found(seen: Seen, call: Call) -> Call:
    """Return a call, preceded by what a model does while the tool is missing: search, if the program has a
    search, and wait, because the first request may be sent before the server has answered."""
    if seen.has(call.tool) or seen.asides > _PATIENCE:
        return call
    if seen.asides % 2 == 0:
        for search, query in (
            ("ToolSearch", f"select:mcp__{_SERVER}__{call.tool}"),
            ("tool_search", call.tool),
        ):
            if search in seen.tools:
                return Call(search, {"query": query}, aside=True)
    for shell, argument in (
        ("Bash", "command"),
        ("exec_command", "cmd"),
        ("bash", "command"),
        ("run_shell_command", "command"),
    ):
        if shell in seen.tools:
            return Call(shell, {argument: "sleep 0.5", "description": "wait"}, aside=True)
    return call


class StandInModel:
    """A server on its own port. `script` may be changed between two runs of a program."""

    def __init__(self) -> None:
        self.script: Script = steps()
        #: Reported number of tokens of each request: a large one makes a program shorten the conversation.
        self.tokens = 10
        self.requests: list[Seen] = []
        #: Method and path of every request, to the model or elsewhere.
        self.paths: list[str] = []
        #: Hosts to which a program tried to connect.
        self.refused: list[str] = []
        #: The script's exceptions.
        self.errors: list[BaseException] = []
        self.numbers = itertools.count(1)
        handler = type("Bound", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def text(self) -> str:
        """Return all texts that the model received since the last `begin`."""
        return "\n".join(one.text for one in self.requests)

    @property
    def results(self) -> tuple[str, ...]:
        """Return the results of tools of the longest request."""
        return max((one.results for one in self.requests), key=len, default=())

    def begin(self, script: Script) -> None:
        """Start a new run of a program."""
        self.script = script
        self.requests, self.paths, self.errors = [], [], []

    def next_step(self, seen: Seen) -> Step:
        self.requests.append(seen)
        try:
            return self.script(seen)
        except BaseException as error:
            self.errors.append(error)
            return f"the script failed: {error!r}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _texts(value: object) -> Iterable[str]:
    """Return every string in a JSON value, except field names and non-text data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name not in ("type", "role", "id", "call_id", "tool_use_id", "signature"):
                yield from _texts(one)


def _joined(value: object) -> str:
    return "\n".join(_texts(value))


def _is_aside(call: str) -> bool:
    return call.startswith(_ASIDE)


class _Handler(BaseHTTPRequestHandler):
    model: ClassVar[StandInModel]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Suppress the log."""

    def do_CONNECT(self) -> None:
        if self.path == self.model.url.removeprefix(
            "http://"
        ):  # a program that also asks its proxy for loopback
            self.send_response(200)
            self.end_headers()
            self.close_connection = False
            return
        self.model.refused.append(self.path)
        self.send_response(403)
        self.send_header("content-length", "0")
        self.end_headers()
        self.close_connection = True

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        self.model.paths.append(f"GET {self.path}")
        if self.path.startswith("http://"):
            self.model.refused.append(self.path)
        one = {"id": "stand-in", "object": "model", "created": 1, "owned_by": "nobody"}
        self._json({"object": "list", "data": [one], "models": []} if "models" in self.path else {})

    def do_POST(self) -> None:
        self.model.paths.append(f"POST {self.path}")
        if self.path.startswith("http://"):
            self.model.refused.append(self.path)
        body = self._body()
        path = self.path.split("?")[0]
        if path.endswith("count_tokens"):
            self._json({"input_tokens": len(json.dumps(body)) // 4})
        elif path.endswith("/messages"):
            self._anthropic(body)
        elif path.endswith("/responses"):
            self._responses(body)
        elif path.endswith("/chat/completions"):
            self._chat(body)
        elif ":countTokens" in path:
            self._json({"totalTokens": 100})
        elif ":streamGenerateContent" in path or ":generateContent" in path:
            self._gemini(body, stream=":stream" in path)
        else:
            self._json({})

    def _body(self) -> dict[str, Any]:
        data = b""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        found = json.loads(data) if data else {}
        return found if isinstance(found, dict) else {}

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _events(self, events: Iterable[tuple[str, object]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, value in events:
            line = value if isinstance(value, str) else json.dumps(value)
            self.wfile.write(f"event: {name}\n".encode() if name else b"")
            self.wfile.write(f"data: {line}\n\n".encode())
        self.wfile.flush()
        self.close_connection = True

    def _step(self, seen: Seen) -> tuple[str, str, dict[str, Any], str]:
        """Return a sentence, or the program's name of a tool with its arguments and an id. A request
        without tools is a side request of the program."""
        number = f"{next(self.model.numbers):06}"
        if not seen.tools:
            return "{}", "", {}, number
        step = self.model.next_step(seen)
        if isinstance(step, str):
            return step, "", {}, number
        call = f"{_ASIDE if step.aside else 'call'}{number}"
        return "", seen.full_name(step.tool) or step.tool, step.arguments, call

    def _anthropic(self, body: dict[str, Any]) -> None:
        blocks = [
            block
            for message in body.get("messages", [])
            if isinstance(message.get("content"), list)
            for block in message["content"]
        ]
        answers = [one for one in blocks if one.get("type") == "tool_result"]
        results = [_joined(one.get("content")) for one in answers if not _is_aside(one["tool_use_id"])]
        names = [one.get("name", "") for one in body.get("tools", [])]
        for one in answers:
            parts = one.get("content")
            names += (
                [part["tool_name"] for part in parts if "tool_name" in part]
                if isinstance(parts, list)
                else []
            )
        text = _joined([body.get("system"), body.get("messages")])
        seen = Seen(tuple(names), text, tuple(results), len(answers) - len(results))
        sentence, tool, arguments, call = self._step(seen)
        usage = {
            "input_tokens": self.model.tokens,
            "output_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        block: dict[str, Any] = {"type": "text", "text": sentence}
        if tool:
            block = {"type": "tool_use", "id": call, "name": tool, "input": arguments}
        stop = "tool_use" if tool else "end_turn"
        message = {"id": f"msg_{call}", "type": "message", "role": "assistant", "model": body.get("model"),
                   "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage}  # fmt: skip
        if not body.get("stream"):
            self._json(message)
            return
        first = {**block, "text": ""} if not tool else {**block, "input": {}}
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            if tool
            else {"type": "text_delta", "text": sentence}
        )
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": first},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]  # fmt: skip
        self._events((one["type"], one) for one in events)

    def _responses(self, body: dict[str, Any]) -> None:
        names: list[str] = []
        spaces: dict[str, tuple[str, str]] = {}

        def add(tool: dict[str, Any]) -> None:
            if tool.get("type") == "namespace":
                for one in tool.get("tools", []):
                    full = f"{tool['name']}__{one['name']}"
                    spaces[full] = (tool["name"], one["name"])
                    names.append(full)
            elif name := tool.get("name") or (tool.get("type") == "tool_search" and "tool_search"):
                names.append(name)

        for tool in body.get("tools", []):
            add(tool)
        results, asides = list[str](), 0
        given = [one for one in body.get("input", []) if isinstance(one, dict)]
        for one in given:
            if one.get("type") in ("function_call_output", "custom_tool_call_output"):
                if _is_aside(one["call_id"]):
                    asides += 1
                else:
                    results.append(_joined(one.get("output")))
            elif one.get("type") == "tool_search_output":
                asides += 1
                for tool in one.get("tools", []):
                    add(tool)
        text = _joined([body.get("instructions"), given])
        sentence, tool_name, arguments, call = self._step(Seen(tuple(names), text, tuple(results), asides))
        item: dict[str, Any]
        if not tool_name:
            content = [{"type": "output_text", "text": sentence, "annotations": []}]
            item = {
                "type": "message",
                "id": f"m_{call}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        elif tool_name == "tool_search":
            item = {
                "type": "tool_search_call",
                "id": f"t_{call}",
                "call_id": call,
                "execution": "client",
                "arguments": arguments,
                "status": "completed",
            }
        else:
            item = {"type": "function_call", "id": f"f_{call}", "call_id": call, "name": tool_name,
                    "arguments": json.dumps(arguments), "status": "completed"}  # fmt: skip
            if tool_name in spaces:
                item["namespace"], item["name"] = spaces[tool_name]
        usage = {"input_tokens": self.model.tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}  # fmt: skip
        base = {
            "id": f"resp_{call}",
            "object": "response",
            "created_at": 1,
            "model": "stand-in",
            "output": [],
            "status": "in_progress",
        }
        whole = {**base, "status": "completed", "output": [item], "usage": usage}
        if not body.get("stream"):
            self._json(whole)
            return
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": base},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        self._events((one["type"], one) for one in events)

    def _chat(self, body: dict[str, Any]) -> None:
        names = [one["function"]["name"] for one in body.get("tools") or [] if one.get("function")]
        messages = body.get("messages", [])
        answers = [one for one in messages if one.get("role") == "tool"]
        results = [_joined(one.get("content")) for one in answers if not _is_aside(one["tool_call_id"])]
        seen = Seen(tuple(names), _joined(messages), tuple(results), len(answers) - len(results))
        sentence, tool, arguments, call = self._step(seen)
        message: dict[str, Any] = {"role": "assistant", "content": sentence or None}
        if tool:
            function = {"name": tool, "arguments": json.dumps(arguments)}
            message["tool_calls"] = [{"index": 0, "id": call, "type": "function", "function": function}]
        base = {"id": f"x_{call}", "created": 1, "model": body.get("model")}
        finish = "tool_calls" if tool else "stop"
        usage = {"prompt_tokens": self.model.tokens, "completion_tokens": 5, "total_tokens": 15}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self._json({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        chunk = {**base, "object": "chat.completion.chunk"}
        self._events(
            [
                ("", {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
                ("", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}),
                ("", {**chunk, "choices": [], "usage": usage}),
                ("", "[DONE]"),
            ]
        )

    def _gemini(self, body: dict[str, Any], *, stream: bool) -> None:
        names = [f["name"] for one in body.get("tools") or [] for f in one.get("functionDeclarations", [])]
        parts = [part for one in body.get("contents", []) for part in one.get("parts", [])]
        results = [
            _joined(part["functionResponse"].get("response")) for part in parts if "functionResponse" in part
        ]
        text = _joined([body.get("systemInstruction"), body.get("contents")])
        sentence, tool, arguments, call = self._step(Seen(tuple(names), text, tuple(results)))
        part = {"functionCall": {"name": tool, "args": arguments}} if tool else {"text": sentence}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": self.model.tokens, "candidatesTokenCount": 5, "totalTokenCount": 15},
            "modelVersion": "stand-in", "responseId": call,
        }  # fmt: skip
        if stream:
            self._events([("", answer)])
        else:
            self._json(answer)
