"""Reads the settings of providers: a caller's setting `pinata_jwt` overrides the environment variable PINATA_JWT.

Texts and numbers are validated, with an error that names the setting.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ipfsmem.errors import ConfigError


def setting(settings: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return the text of a setting, without spaces around it; `default` when it is not set or empty."""
    value = settings.get(name.lower())
    if value is None:
        value = os.environ.get(name)
    return str(value).strip() if value is not None and str(value).strip() else default


def required(settings: Mapping[str, Any], name: str, hint: str) -> str:
    """Return the text of a setting that must be set. Raises ConfigError with the hint."""
    value = setting(settings, name)
    if not value:
        raise ConfigError(f"{name} is not set", hint=hint)
    return value


def choice(settings: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    """Return one of `allowed`, by default the first. ConfigError for anything else."""
    value = setting(settings, name, allowed[0]).lower()
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(allowed)} (got {value!r})")
    return value


def seconds(settings: Mapping[str, Any], name: str, default: float) -> float:
    """Return a number of seconds: at least 0, below a million. ConfigError for anything else."""
    text = setting(settings, name)
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise ConfigError(f"{name} must be 0-999999 seconds (got {text!r})")
    return value
