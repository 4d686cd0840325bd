"""Settings of providers: PINATA_JWT is the setting `pinata_jwt` of the caller, else that variable of the environment.

Reads texts and numbers, with clear errors for those that cannot be used. Knows no provider.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ipfsmem.errors import ConfigError


def setting(settings: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return the text of a setting, without spaces around it; `default` when it is not set or empty."""
    given = settings.get(name.lower())
    if given is None:
        given = os.environ.get(name)
    return str(given).strip() if given is not None and str(given).strip() else default


def needed(settings: Mapping[str, Any], name: str, hint: str) -> str:
    """Return the text of a setting that must be set. Raises ConfigError with the hint."""
    found = setting(settings, name)
    if not found:
        raise ConfigError(f"{name} is not set", hint=hint)
    return found


def choice(settings: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    """Return one of `allowed`, by default the first. ConfigError for anything else."""
    found = setting(settings, name, allowed[0]).lower()
    if found not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(allowed)} (got {found!r})")
    return found


def seconds(settings: Mapping[str, Any], name: str, default: float) -> float:
    """Return a number of seconds. ConfigError for anything else."""
    found = setting(settings, name)
    try:
        value = float(found) if found else default
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise ConfigError(f"{name} must be a number of seconds (got {found!r})")
    return value
