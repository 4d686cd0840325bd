"""An endpoint that speaks OpenAI's embeddings API and computes real vectors: each word and each trigram is
hashed to a dimension and a sign.

As strict as the reference (platform.openai.com/docs/api-reference/embeddings, read 2026-11): a JSON object
with `model` and `input`, a text or 1 to 2,048 non-empty texts; `dimensions` from 1 to the model's;
`encoding_format` is `float` or `base64`; a key in `Authorization: Bearer` where the server has one.
Anything else is answered with an `error` object."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from math import sqrt
from typing import Any

from aiohttp import web

DIMENSION = 256
_words = re.compile(r"\w+")


def vector_of(text: str, dimension: int = DIMENSION, salt: str = "") -> list[float]:
    """The vector of a text, of length 1."""
    numbers = [0.0] * dimension
    for word in _words.findall(text.lower()) or [text]:
        parts = [word, *(f"{word}$"[at : at + 3] for at in range(len(word) - 1))]
        for weight, part in zip([2.0] + [1.0] * len(parts), parts, strict=False):
            hashed = int.from_bytes(blake2b((salt + part).encode(), digest_size=8).digest())
            numbers[hashed % dimension] += weight if hashed >> 40 & 1 else -weight
    length = sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers] if any(numbers) else [1.0] + [0.0] * (dimension - 1)


class EmbeddingsServer:
    """The received requests, and scripted answers."""

    def __init__(self, models: dict[str, int] | None = None, key: str = "") -> None:
        """`models`: the dimensions of each. `key`: the required API key."""
        self.models = models or {"hashed-words": DIMENSION}
        self.key = key
        #: Every received text, in order.
        self.texts: list[str] = []
        self.asked: list[str] = []
        #: Answers in place of the real one, if not None.
        self.sick: Callable[[dict[str, Any]], web.StreamResponse | None] = lambda answer: None
        #: The status with which a text, and its whole batch, is refused; 0: accepted. And how often that
        #: happened.
        self.refuses: Callable[[str], int] = lambda text: 0
        self.refused = 0

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/embeddings", self._embed)
        return app

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return _error(401, "Incorrect API key provided", "invalid_api_key")
        if request.content_type != "application/json":
            return _error(400, "you must provide a JSON body", "invalid_request_error")
        asked = await request.json()
        if not isinstance(asked, dict) or asked.keys() - {
            "model",
            "input",
            "encoding_format",
            "dimensions",
            "user",
        }:
            return _error(400, "unrecognized request argument", "invalid_request_error")
        most = self.models.get(asked.get("model"))
        if most is None:
            return _error(404, f"The model `{asked.get('model')}` does not exist", "model_not_found")
        texts = [asked["input"]] if isinstance(asked.get("input"), str) else asked.get("input")
        if not isinstance(texts, list) or not 1 <= len(texts) <= 2048:
            return _error(400, "input is invalid", "invalid_request_error")
        if not all(isinstance(text, str) and text for text in texts):
            return _error(400, "input cannot be an empty string", "invalid_request_error")
        if asked.get("encoding_format", "float") != "float":
            return _error(400, "this server answers floats", "invalid_request_error")
        dimension = asked.get("dimensions", most)
        if not isinstance(dimension, int) or not 1 <= dimension <= most:
            return _error(400, "dimensions is invalid", "invalid_request_error")
        if status := max(map(self.refuses, texts)):
            self.refused += 1
            return _error(status, "input is too large to process", "invalid_request_error")
        self.texts += texts
        self.asked.append(asked["model"])
        answer = {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": at,
                    "embedding": vector_of(text, dimension, asked["model"]),
                }
                for at, text in enumerate(texts)
            ],
            "model": asked["model"],
            "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
        }
        return self.sick(answer) or web.json_response(answer)


def _error(status: int, message: str, code: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return web.json_response({"error": error}, status=status)
