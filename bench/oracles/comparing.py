"""How today's figures differ from the recorded ones, in lines."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Final

#: Parts that differ a little from run to run or from day to day.
MEASURED: Final = ("lines", "work", "times")
#: A measured figure that differs by more than this share is shown.
_SHOWN: Final = 0.1


def as_text(value: Any) -> str:
    """A part as its file has it."""
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def differences(name: str, recorded: Any, now: Any) -> list[str]:
    """The lines in which a part differs from its record."""
    if name in MEASURED:
        return _moved(recorded, now)
    if isinstance(now, dict) and all(isinstance(one, int | str) for one in now.values()):
        both = sorted({*recorded, *now})
        return [
            f"{one}: {recorded.get(one, 'new')} -> {now.get(one, 'gone')}"
            for one in both
            if recorded.get(one) != now.get(one)
        ]
    before, after = as_text(recorded).splitlines(), as_text(now).splitlines()
    return list(difflib.unified_diff(before, after, f"{name} as recorded", "today", lineterm=""))


def _moved(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    found = []
    for name in sorted({*recorded, *now}):
        before, after = recorded.get(name, {}), now.get(name, {})
        moved = [
            f"{what} {before.get(what)} -> {after.get(what)}"
            for what in {**before, **after}
            if abs(after.get(what, 0) - before.get(what, 0)) > _SHOWN * max(before.get(what, 0), 1)
        ]
        if moved:
            found.append(f"{name}: {', '.join(moved)}")
    return found
