"""Resolve the settings of an endpoint with OpenAI's API: address, model, key. Nothing is requested.

A provider's name implies all three unless overridden; the key is in an environment variable, never in a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ipfsmem.errors import ConfigError
from ipfsmem_providers.http.client import urls_of

_KEY_HINT: Final = 'Put the key into a variable, and name that: api_key_env = "MY_KEY".'


class Kind(NamedTuple):
    """The defaults of a provider's name. `key`: the variable with the key, "" if none is needed."""

    base_url: str
    model: str
    key: str


class Endpoint(NamedTuple):
    """Address and model, and the headers with the key."""

    base_url: str
    model: str
    headers: dict[str, str]


def endpoint_of(settings: Mapping[str, Any], kinds: Mapping[str, Kind], what: str, hint: str) -> Endpoint:
    """Return the endpoint of `provider`, `model`, `base_url` and `api_key_env`, as the user wrote them;
    `what` it is of, for errors.

    Raises ConfigError.
    """
    name = str(settings.get("provider") or "").lower()
    base = str(settings.get("base_url") or "")
    kind = kinds.get(name or "", Kind("", "", "")) if name or not base else Kind("", "", "")
    if (name and name not in kinds) or not (kind.base_url or base):
        message = f"unknown provider {name!r} for {what}" if name else f"no provider for {what} is named"
        raise ConfigError(message, hint=hint)
    if "@" in base:
        raise ConfigError(
            "base_url contains a user name or a key, and keys are not allowed in a file", hint=_KEY_HINT
        )
    address = urls_of([base or kind.base_url], f"{what} endpoint")[0]
    model = str(settings.get("model") or kind.model)
    if not model:
        raise ConfigError(f"no model is named for {address}", hint=hint)
    variable = str(settings.get("api_key_env") or ("" if base else kind.key))
    key = os.environ.get(variable, "").strip() if variable else ""
    if variable and not key:
        raise ConfigError(
            f"{variable} is not set, the key for {address}", hint=f"export {variable}=<the key>"
        )
    return Endpoint(address, model, {"Authorization": f"Bearer {key}"} if key else {})
