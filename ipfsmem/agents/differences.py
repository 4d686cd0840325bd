"""Show the difference of a program's settings: removals and additions with their line, without unchanged values.

Settings contain tokens. So JSON is compared as values, not as lines, which may hold another value next to our comma.
Of removals and additions our own texts are shown, and of others only the names. Pure functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

from ipfsmem.agents.json_text import JsonNode, Part, comments, read, value_of

#: Replaces hidden text.
_HIDDEN: Final = "..."
_NOTHING: Final = JsonNode("{", 0, 0, [])
#: A TOML line that is a table header, empty, or one of our marks; and the name at the beginning of another line.
_open_line = re.compile(r"\s*(\[[A-Za-z0-9_.-]+\]\s*|# (>>>|<<<) ipfsmem.*)?")
#: An entry of YAML between braces or brackets.
_entry = re.compile(r'["{].*[]}](, )?')
_name = re.compile(r"\s*[A-Za-z0-9_.-]+ =(?= )")


def difference(
    name: str, before: bytes | None, after: bytes | None, *, by_line: bool, ours: Collection[str]
) -> str:
    """Return the difference of two texts of settings; None: a missing file. `by_line`: TOML or YAML. `ours`: our plain values,
    as JSON, and lines of TOML and YAML. Raises FormatError for an unreadable text."""
    old, new = ((data or b"").decode("utf-8-sig", "replace") for data in (before, after))
    head = (f"--- {_called(name, before)}", f"+++ {_called(name, after)}")
    if by_line:
        return "\n".join((*head, *_lines(old.splitlines(), new.splitlines(), ours)))
    shown = _JsonDifference(old, new, ours)
    return "\n".join((*head, *shown.between(read(old) or _NOTHING, read(new) or _NOTHING, ())))


def _called(name: str, data: bytes | None) -> str:
    return "/dev/null" if data is None else name


class _JsonDifference:
    """The difference of two JSON texts."""

    def __init__(self, old: str, new: str, ours: Collection[str]) -> None:
        self.old, self.new, self.ours = old, new, ours

    def between(self, a: JsonNode, b: JsonNode, path: tuple[str, ...]) -> Iterator[str]:
        """Yield the difference of two objects or arrays, each part with its first line."""
        if a.kind == "{":
            gone, come = ({part.key: part for part in node.parts} for node in (a, b))
            pairs = [(part, come.get(key)) for key, part in gone.items()]
            pairs_come = [(None, part) for key, part in come.items() if key not in gone]
            for one, other in (*pairs, *pairs_come):
                yield from self._pair(one, other, path)
            return
        was, now = ([json.dumps(value_of(part.value)) for part in node.parts] for node in (a, b))
        for what, i, j, k, m in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
            if what == "equal":
                continue
            old, new = a.parts[i:j], b.parts[k:m]
            for one, other in zip_longest(old, new):
                yield from self._pair(one, other, path)

    def _pair(self, one: Part | None, other: Part | None, path: tuple[str, ...]) -> Iterator[str]:
        if one is not None and other is not None:
            if json.dumps(value_of(one.value)) == json.dumps(value_of(other.value)):
                return
            if one.value.kind and one.value.kind == other.value.kind:
                yield from self.between(one.value, other.value, (*path, one.key) if one.key else path)
                return
        for sign, text, part in (("-", self.old, one), ("+", self.new, other)):
            if part is not None:
                yield f"@@ {sign}{_line(text, part)} @@ {'.'.join(path)}".rstrip()
                yield from (
                    f"{sign}{line}" for line in (_indent(text, part) + self._said(text, part)).splitlines()
                )

    def _said(self, text: str, part: Part) -> str:
        """Return a part verbatim, or with others' values hidden."""
        value = value_of(part.value)
        if self._shown(value) == value and not [*comments(text, part.start, part.value.end)]:
            return text[part.start : part.value.end]
        shown = json.dumps(self._shown(value), indent=2, ensure_ascii=False)
        shown = f"{json.dumps(part.key, ensure_ascii=False)}: {shown}" if part.key else shown
        return shown.replace("\n", "\n" + _indent(text, part))

    def _shown(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._shown(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._shown(each) for each in value]
        is_shown = value is None or isinstance(value, bool) or json.dumps(value) in self.ours
        return value if is_shown else _HIDDEN


def _line(text: str, part: Part) -> int:
    return text.count("\n", 0, part.start) + 1


def _indent(text: str, part: Part) -> str:
    """Return the indentation of a part on a line of its own, else ""."""
    before = text[text.rfind("\n", 0, part.start) + 1 : part.start]
    return "" if before.strip() else before


def _lines(old: list[str], new: list[str], ours: Collection[str]) -> Iterator[str]:
    """Yield removed and added lines of TOML or YAML."""
    for what, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for sign, lines, begin, end in (("-", old, i, j), ("+", new, k, m)):
            if what != "equal" and begin < end:
                yield f"@@ {sign}{begin + 1} @@"
                for line in lines[begin:end]:
                    yield f"{sign}{line if line in ours else _hidden_line(line, ours)}"


def _hidden_line(line: str, ours: Collection[str]) -> str:
    """Hide all text of a line but ours: in YAML an entry may be inside a line."""
    if _open_line.fullmatch(line):
        return line
    within = next((one for one in ours if _entry.fullmatch(one) and one in line), "")
    if within:
        return f"{_HIDDEN} {within.rstrip(', ')} {_HIDDEN}"
    name = _name.match(line)
    return f"{name[0]} {_HIDDEN}" if name else _HIDDEN
