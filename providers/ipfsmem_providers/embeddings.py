"""Embeddings from an endpoint with OpenAI's embeddings API: OpenAI, Ollama, Google, or one that the user names.

The user chooses the endpoint. It receives the texts, and the key if needed; redirects are not followed, so no other host does.
Answers are bounded and checked: one vector per text, of equal length and finite numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import isfinite
from typing import Any, Final

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.vectors import MAX_DIMENSION
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.policy import ONCE, Retry
from ipfsmem_providers.openai_endpoint import Kind, endpoint_of

#: Maximum bytes of a number in an answer, and of the text around the vectors.
_NUMBER, _AROUND = 32, 64 * 1024
_QUESTION_SECONDS, _BATCH_SECONDS = 3.0, 60.0
_HINT: Final = 'Under [embeddings] in the settings file: provider = "openai", "google" or "ollama", or model and base_url.'


_OPENAI: Final = Kind("https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY")
_KINDS: Final = {
    "openai": _OPENAI,
    # Anthropic makes no vectors; its users ask OpenAI's, as InitRunner does.
    "anthropic": _OPENAI,
    "google": Kind(
        "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-embedding-001", "GOOGLE_API_KEY"
    ),
    "ollama": Kind("http://127.0.0.1:11434/v1", "nomic-embed-text", ""),
}


class _Item(msgspec.Struct):
    index: int
    embedding: list[float]


class _Vectors(msgspec.Struct):
    data: list[_Item]


class EndpointEmbedder:
    """See ipfsmem.recall.embedder.Embedder."""

    unrelated = -1.0
    waits = True

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings`: `provider`, `model`, `base_url`, `api_key_env`, `dimensions`, as the user wrote them.

        `question`: for a query, with a short time-out and without retries. Raises ConfigError.
        """
        endpoint = endpoint_of(settings, _KINDS, "embeddings", _HINT)
        self.base_url, model = endpoint.base_url, endpoint.model
        self._dimensions = int(settings.get("dimensions") or 0)
        if not 0 <= self._dimensions <= MAX_DIMENSION:
            raise ConfigError(f"embeddings have 1 to {MAX_DIMENSION} dimensions, not {self._dimensions}")
        mark = blake2b(f"{self.base_url}\n{model}\n{self._dimensions}".encode(), digest_size=16).hexdigest()
        self.identity = EmbedderIdentity(model, self.base_url, mark, self._dimensions)
        self._seconds = _QUESTION_SECONDS if settings.get("question") else _BATCH_SECONDS
        self._http = Http(
            "embeddings",
            trusted=[self.base_url],
            auth=endpoint.headers,
            settings={name: settings[name] for name in ("timing", "retry") if name in settings},
            retry=ONCE if settings.get("question") else Retry(),
        )

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See the contract."""
        payload: dict[str, Any] = {
            "model": self.identity.name,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._dimensions:
            payload["dimensions"] = self._dimensions
        answer = await self._http.request(
            "POST",
            f"{self.base_url}/embeddings",
            json=payload,
            idempotent=True,
            max_bytes=_AROUND + len(texts) * MAX_DIMENSION * _NUMBER,
            stall=self._seconds,
            total=self._seconds,
            what="make vectors",
        )
        try:
            items = read_json(answer.body, type=_Vectors).data
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._refused("an answer that is not a list of vectors") from None
        if sorted(item.index for item in items) != list(range(len(texts))):
            raise self._refused(f"{len(items)} vectors for {len(texts)} texts, or some twice")
        vectors = [item.embedding for item in sorted(items, key=lambda item: item.index)]
        length = self._dimensions or len(vectors[0])
        if not 0 < length <= MAX_DIMENSION or any(len(vector) != length for vector in vectors):
            raise self._refused(f"vectors without {length} numbers each, 1 to {MAX_DIMENSION}")
        if not all(any(vector) and all(map(isfinite, vector)) for vector in vectors):
            raise self._refused("a vector of numbers that are not finite, or all 0")
        return vectors

    def knows(self, question: str) -> float:
        """Trust that the user's model knows the user's language."""
        return 1.0

    def _refused(self, what: str) -> ProviderRefused:
        return ProviderRefused(f"the embeddings endpoint {self.base_url} answered {what}")

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
