"""Every setting by name, with default, unit, range and description, derived from the types of the settings file.

So each setting is described once, and none is read without being listed. Reads no file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from ipfsmem.config import VARIABLES, Settings
from ipfsmem.errors import UsageError
from ipfsmem.recall.ranking import WEIGHTS

Value = str | int | float | bool
#: Accepted words for booleans.
_SWITCH: Final = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
#: Environment variables of settings inside tables.
_OF_TABLES: Final = {"embeddings.provider": "IPFSMEM_EMBEDDINGS"}


class Described(NamedTuple):
    """A setting. `default` None: unset. `choices`: its only values, if any."""

    name: str
    kind: type
    default: Value | None
    unit: str
    about: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str | None:
        """Return the environment variable that overrides the file."""
        return VARIABLES.get(self.name) or _OF_TABLES.get(self.name)

    @property
    def takes(self) -> str:
        """Describe the accepted values, as a noun phrase."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "a text"
        number = "a whole number" if self.kind is int else "a number"
        if self.least is None:
            return number
        return f"{number} {f'of {self.least:g} or more' if self.most is None else f'from {self.least:g} to {self.most:,.12g}'}"

    def value(self, text: str) -> Value:
        """Parse the text of a user. Raises UsageError."""
        converted: Value | None = None
        if self.kind is bool:
            converted = _SWITCH.get(text.lower())
        elif self.kind is str:
            converted = text if _is_unicode(text) and (not self.choices or text in self.choices) else None
        else:
            try:
                converted = self.kind(text)
            except ValueError:
                converted = None
        number = isinstance(converted, int | float) and self.kind is not bool
        if converted is None or (number and not self._holds(float(converted))):
            raise UsageError(f"{self.name} takes {self.takes}, and {text[:60]!a} is not that")
        return converted

    def _holds(self, number: float) -> bool:
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
        )


def _is_unicode(text: str) -> bool:
    """Tell whether a text can be encoded: arguments of a command line may contain other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def all_settings() -> Mapping[str, Described]:
    """Return every setting by name, in the order of the file, without the settings of providers."""
    return {one.name: one for one in _described(Settings, "")}


def setting(name: str) -> Described:
    """Return a setting by name. Raises UsageError, with the most similar name."""
    settings_by_name = all_settings()
    described = settings_by_name.get(name)
    if described is not None:
        return described
    if name == "namespace":
        raise UsageError(
            "the setting namespace was renamed to vault", hint="Its value: ipfsmem config show vault"
        )
    if name.startswith("providers."):
        raise UsageError(
            "settings of providers are often secrets, and these are no arguments of a command",
            hint="Write it into the file itself; its path: ipfsmem config path",
        )
    ends = [one for one in settings_by_name if one.rpartition(".")[2] == name]
    near = ends or get_close_matches(name, settings_by_name, n=1)
    raise UsageError(
        f"unknown setting {name[:60]!a}{f'; perhaps {near[0]}' if near else ''}",
        hint="List all settings: ipfsmem config show",
    )


def _described(table: type[msgspec.Struct], before: str) -> Iterator[Described]:
    hints = get_type_hints(table, include_extras=True)
    for field in msgspec.structs.fields(table):
        name = before + field.name
        inner = _without_none(hints[field.name])
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from _described(inner, name + ".")
        elif get_origin(inner) is dict:
            each = get_args(inner)[1]
            if name == "recall.weights":
                yield from (_one(f"{name}.{part}", each, usual) for part, usual in WEIGHTS.items())
        else:
            yield _one(name, inner, field.default)


def _one(name: str, annotated: Any, default: Any) -> Described:
    kind, meta = get_args(annotated) if get_origin(annotated) is Annotated else (annotated, msgspec.Meta())
    choices: tuple[str, ...] = ()
    if get_origin(kind) is Literal:
        choices, kind = get_args(kind), str
    elif get_origin(kind) in (UnionType, Union):  # a boolean that may also be a word
        kind = bool
    unit = (meta.extra or {}).get("unit", "")
    return Described(name, kind, default, unit, meta.description or "", meta.ge, meta.le, choices)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (UnionType, Union):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint
