"""Differences between a part and its record, as lines."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Final

#: Parts that vary from run to run or change daily.
MEASURED: Final = ("lines", "work", "times")
#: Smallest relative change of a measured figure that is shown.
_SHOWN: Final = 0.1


def as_text(value: Any) -> str:
    """A part in the form of its file."""
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def differences(name: str, recorded: Any, now: Any) -> list[str]:
    """The differences of a part from its record, one a line."""
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
