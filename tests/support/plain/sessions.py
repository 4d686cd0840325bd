"""The items of a session's parts, read from format section 5.1 alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

_MOST = 2**53 - 1
_LEVELS = 512
Place = tuple[int, str, int]


class _Nothing(Exception):
    """A line that is stored and ignored."""


class _Number(NamedTuple):
    text: str


def _double(text: str) -> float | None:
    """Return a number of an item; None for one that is not finite."""
    return float(text) if abs(float(text)) != float("inf") else None


def _json(text: str, number: Callable[[str], Any]) -> Any:
    """Parse JSON with numbers in this reader's form. Raises _Nothing."""

    def refused(name: str) -> Any:
        raise _Nothing(name)

    depth, inside, escaped = 0, False, False
    for letter in text:
        if escaped:
            escaped = False
        elif inside:
            escaped, inside = letter == "\\", letter != '"'
        else:
            inside = letter == '"'
            depth += (letter in "{[") - (letter in "}]")
            if depth > _LEVELS:
                raise _Nothing("too deep")
    try:
        return json.loads(text, parse_int=number, parse_float=number, parse_constant=refused)
    except ValueError as error:
        raise _Nothing from error


def _number(value: Any) -> int:
    if not isinstance(value, _Number):
        raise _Nothing("no number")
    double = float(value.text)
    if not 0 <= double <= _MOST or not double.is_integer():
        raise _Nothing("no whole number from 0 to 2^53-1")
    return int(double)


def _list(value: Any, size: int) -> list[Any]:
    if type(value) is not list or len(value) != size:
        raise _Nothing("no list of that size")
    return value


def items(parts: Iterable[tuple[str, str]]) -> list[tuple[Place, Any]]:
    """Return the items of parts (device, body) in order; numbers in items as doubles."""
    found: dict[Place, Any] = {}
    pieces: dict[tuple[Place, int], dict[int, str]] = {}
    gone: set[Place] = set()
    for dev, body in parts:
        for text in body.split("\n"):
            try:
                line = _json(text, _Number)
                if type(line) is not dict:
                    continue
                line = {name: one for name, one in line.items() if one is not None}
                place = (_number(line.get("at")), dev, _number(line.get("n", _Number("0"))))
                kinds = {"item", "gone", "piece"} & line.keys()
                if len(kinds) != 1 or ("piece" in kinds) != ("text" in line):
                    continue
                if "item" in kinds:
                    if type(line["item"]) is dict:
                        found[place] = _json(text, _double)["item"]
                elif "gone" in kinds:
                    at, who, n = _list(line["gone"], 3)
                    if type(who) is str and re.fullmatch("[0-9a-f]{16}", who):
                        gone.add((_number(at), who, _number(n)))
                else:
                    i, many = map(_number, _list(line["piece"], 2))
                    if i < many and type(line["text"]) is str:
                        pieces.setdefault((place, many), {})[i] = line["text"]
            except _Nothing:
                continue
    for (place, many), held in pieces.items():
        if len(held) == many:
            try:
                item = _json(_whole("".join(held[i] for i in sorted(held))), _double)
            except _Nothing:
                continue
            if type(item) is dict:
                found[place] = item
    return sorted(
        ((place, item) for place, item in found.items() if place not in gone), key=lambda one: one[0]
    )


def _whole(text: str) -> str:
    """Join surrogate halves of a character that was cut."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
