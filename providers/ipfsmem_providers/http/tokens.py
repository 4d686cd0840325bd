"""Token ownership: a token belongs to one origin (scheme, host, port) and is never sent to another.

A setting such as PEER_TOKEN is one token, or tokens with their origins:

    PEER_TOKEN="a long text"
    PEER_TOKEN="https://one.example=a-long-text https://two.example:8787=another"
    peer_token = { "https://one.example" = "a long text", "https://two.example:8787" = "another" }   # settings file

A token without an origin is for the only address of its kind in use. With two of them it is ambiguous and used for
neither; the error shows the syntax. The opener of providers passes those in use (the setting `beside`). No error
repeats a token.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ipfsmem.errors import ConfigError
from ipfsmem_providers.http.client import Origin, origin_of
from ipfsmem_providers.settings import setting

_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)
#: Before an address that starts another pair; a token may contain spaces (`basic:user:two words`).
_BETWEEN: Final = re.compile(r"\s+(?=https?://)", re.IGNORECASE)


def token_for(
    settings: Mapping[str, Any],
    name: str,
    url: str,
    *,
    kind: str,
    url_of: Callable[[str], str],
    url_setting: str = "",
) -> str:
    """Return the token of the setting `name` for `url`; "" without one.

    `url_of`: the URL of another provider of this `kind`, given its spec without `kind:`. `url_setting`: the
    setting with the URL for an empty spec. Raises ConfigError when one token would be for two origins, and
    for an unreadable setting.
    """
    value = settings.get(name.lower())
    if value is None:
        value = os.environ.get(name, "")
    mine = origin_of(url)
    pairs = _pairs(name, value)
    if mine is None:
        return ""
    if pairs is not None:
        return pairs.get(mine, "")
    token = str(value).strip()
    if not token:
        return ""
    rests = [*others_of(settings, kind), *([""] if url_setting and setting(settings, url_setting) else [])]
    origins = {mine}
    for rest in rests:
        with contextlib.suppress(ConfigError):  # reported when that one is opened
            origins.add(origin_of(url_of(rest)) or mine)
    if len(origins) > 1:
        names = sorted(map(shown, origins))
        example = " ".join(f"{each}=<its token>" for each in names)
        raise ConfigError(
            f"{name} is one token, and there are {len(origins)} addresses that it may be for: {', '.join(names)}. It was "
            "sent to none of them",
            hint=f'Name its address: {name}="{example}" (omit addresses without a token), or {name.lower()} as a table of such '
            f"pairs under [providers.{kind}] in the settings file.",
        )
    return token


def shown(origin: Origin) -> str:
    """Return an origin as people write it: without the default port."""
    scheme, host, port = origin
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}" if port == {"http": 80, "https": 443}[scheme] else f"{scheme}://{host}:{port}"


def others_of(settings: Mapping[str, Any], kind: str) -> list[str]:
    """Return the other specs of this kind in use, without `kind:`."""
    tell = settings.get("beside")
    specs = [spec.partition(":") for spec in (tell() if tell is not None else ())]
    return [rest for other, _, rest in specs if other == kind]


def _pairs(name: str, value: object) -> dict[Origin, str] | None:
    """Return tokens by origin; None for a single token without an origin."""
    if isinstance(value, Mapping):
        items = [(str(address), str(token)) for address, token in value.items()]
    else:
        text = str(value).strip()
        if not _ADDRESS.match(text):
            return None
        items = [(pair.partition("=")[0], pair.partition("=")[2]) for pair in _BETWEEN.split(text)]
    tokens: dict[Origin, str] = {}
    for address, token in items:
        origin, token = origin_of(address.strip()), token.strip()
        if origin is None or not token:
            raise ConfigError(
                f"{name} cannot be read: pair {len(tokens) + 1} is not an address and a token",
                hint=f'{name}="https://host.example=<its token>", and a space before a further pair.',
            )
        if tokens.setdefault(origin, token) != token:
            raise ConfigError(f"{name} has two tokens for {shown(origin)}", hint="Remove one of them.")
    return tokens
