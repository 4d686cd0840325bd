"""Vectors of texts from an endpoint that speaks OpenAI's embeddings API: OpenAI itself, Ollama, Google's, or one that the user names.

The user named it, so it may be on this machine or anywhere. It gets the texts, and the key where one is needed; redirects are not
followed, so nobody else does. Its answers are bounded and checked: a vector for each text, of one length, of finite numbers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec

from ipfsmem.canonical import read_json
from ipfsmem.errors import ConfigError, ProviderRefused
from ipfsmem.recall.embedder import EmbedderIdentity
from ipfsmem.recall.vectors import MAX_DIMENSION
from ipfsmem_providers.http.client import Http, urls_of
from ipfsmem_providers.http.policy import ONCE, Retry

#: Bytes that a number of an answer may take, and what stands around the vectors.
_NUMBER, _AROUND = 32, 64 * 1024
_QUESTION_SECONDS, _BATCH_SECONDS = 3.0, 60.0
_KEY_HINT: Final = 'Put the key into a variable, and name that: api_key_env = "MY_KEY".'
_HINT: Final = 'Under [embeddings] in the settings file: provider = "openai", "google" or "ollama", or model and base_url.'


class _Kind(NamedTuple):
    base_url: str
    model: str
    key: str


_KINDS: Final = {
    "openai": _Kind("https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY"),
    "google": _Kind(
        "https://generativelanguage.googleapis.com/v1beta/openai", "text-embedding-004", "GOOGLE_API_KEY"
    ),
    "ollama": _Kind("http://127.0.0.1:11434/v1", "nomic-embed-text", ""),
}


class _Item(msgspec.Struct):
    index: int
    embedding: list[float]


class _Vectors(msgspec.Struct):
    data: list[_Item]


class EndpointEmbedder:
    """See ipfsmem.recall.embedder.Embedder."""

    unrelated = -1.0

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings`: `provider`, `model`, `base_url`, `api_key_env`, `dimensions`, as the user wrote them; `question`: asked while
        somebody waits, so once and not for long. Raises ConfigError."""
        name = str(settings.get("provider") or "").lower()
        base = str(settings.get("base_url") or "")
        kind = _KINDS.get(name or "", _Kind("", "", "")) if name or not base else _Kind("", "", "")
        if (name and name not in _KINDS) or not (kind.base_url or base):
            said = f"{name!r} is no provider of embeddings" if name else "no provider of embeddings is named"
            raise ConfigError(said, hint=_HINT)
        if "@" in base:
            raise ConfigError(
                "base_url carries a user name or a key, and no key stands in a file", hint=_KEY_HINT
            )
        self.base_url = urls_of([base or kind.base_url], "embeddings endpoint")[0]
        model = str(settings.get("model") or kind.model)
        if not model:
            raise ConfigError(f"no model is named for {self.base_url}", hint=_HINT)
        self._dimensions = int(settings.get("dimensions") or 0)
        if not 0 <= self._dimensions <= MAX_DIMENSION:
            raise ConfigError(f"embeddings have 1 to {MAX_DIMENSION} dimensions, not {self._dimensions}")
        variable = str(settings.get("api_key_env") or ("" if base else kind.key))
        key = os.environ.get(variable, "").strip() if variable else ""
        if variable and not key:
            raise ConfigError(
                f"{variable} is not set, which holds the key for {self.base_url}",
                hint=f"export {variable}=<the key>",
            )
        mark = blake2b(f"{self.base_url}\n{model}\n{self._dimensions}".encode(), digest_size=16).hexdigest()
        self.identity = EmbedderIdentity(model, self.base_url, mark, self._dimensions)
        self._seconds = _QUESTION_SECONDS if settings.get("question") else _BATCH_SECONDS
        self._http = Http(
            "embeddings",
            trusted=[self.base_url],
            auth={"Authorization": f"Bearer {key}"} if key else {},
            settings={name: settings[name] for name in ("timing", "retry") if name in settings},
            retry=ONCE if settings.get("question") else Retry(),
        )

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See the contract."""
        asked: dict[str, Any] = {
            "model": self.identity.name,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._dimensions:
            asked["dimensions"] = self._dimensions
        answer = await self._http.request(
            "POST",
            f"{self.base_url}/embeddings",
            json=asked,
            idempotent=True,
            max_bytes=_AROUND + len(texts) * MAX_DIMENSION * _NUMBER,
            stall=self._seconds,
            total=self._seconds,
            what="make vectors",
        )
        try:
            found = read_json(answer.body, type=_Vectors).data
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._refused("something that is no list of vectors") from None
        if sorted(item.index for item in found) != list(range(len(texts))):
            raise self._refused(f"{len(found)} vectors for {len(texts)} texts, or not each once")
        vectors = [item.embedding for item in sorted(found, key=lambda item: item.index)]
        length = self._dimensions or len(vectors[0])
        if not 0 < length <= MAX_DIMENSION or any(len(vector) != length for vector in vectors):
            raise self._refused(f"vectors that have not {length} numbers each, 1 to {MAX_DIMENSION}")
        if not all(any(vector) and all(map(isfinite, vector)) for vector in vectors):
            raise self._refused("a vector of numbers that are not finite, or all 0")
        return vectors

    def knows(self, question: str) -> float:
        """Who named a model chose one that knows their words."""
        return 1.0

    def _refused(self, what: str) -> ProviderRefused:
        return ProviderRefused(f"the embeddings endpoint {self.base_url} answered {what}")

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()
