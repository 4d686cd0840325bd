"""Advice on a text that was just written: likely secrets, and shortcomings that make a memory hard to find.

Interfaces collect it with `audit.collecting`; in Python it is a warning of the class `WritingAdvice`.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ipfsmem.bundle.writing_advice import WEAK_DESCRIPTION, secret_in, shortcomings
from ipfsmem.device.replica import Replica
from ipfsmem.errors import IpfsmemError
from ipfsmem.memories.memory_records import MemoryRecord

#: Characters of the texts of one call that are scanned.
_MOST: Final = 1_000_000
#: The name of the advice on descriptions among the notices that were shown.
_DESCRIPTION_SHOWN: Final = "advice: description"


class WritingAdvice(UserWarning):
    """Advice on a text that was written."""


def advise(
    replica: Replica,
    collected: list[str] | None,
    method: str,
    result: Any,
    arguments: Mapping[str, Any],
    *,
    repeats: bool,
) -> None:
    """Collect the advice on a call that wrote something, or warn of it. `repeats`: the reader is a model or a program that
    sees one answer at a time, not a person who needs the advice on descriptions once per vault and device."""
    if method == "write" and isinstance(result, MemoryRecord) and arguments.get("text") is None:
        advice = shortcomings(result.key, result.readable) if result.own else []
    else:
        advice = secret_in("\n".join(texts_in([*arguments.values()]))[:_MOST])
    if not repeats and WEAK_DESCRIPTION in advice and not _is_first(replica):
        advice.remove(WEAK_DESCRIPTION)
    if collected is not None:
        collected += [one for one in advice if one not in collected]
    elif advice:
        warnings.warn(" ".join(advice), WritingAdvice, stacklevel=_outside())


def _is_first(replica: Replica) -> bool:
    """Tell whether this is the first advice on a description here, and record it."""
    with contextlib.suppress(IpfsmemError):  # the text is written; advice must not fail that call
        if _DESCRIPTION_SHOWN in replica.notices_shown():
            return False
        with replica.transaction():
            replica.note_shown(_DESCRIPTION_SHOWN)
    return True


def texts_in(values: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts among some values, each with its name."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, bytes):
        yield values.decode("utf-8", "replace")
    elif depth < 6 and isinstance(values, Mapping):
        for name, value in values.items():
            yield from texts_in(value, depth + 1) if not isinstance(value, str) else (f"{name}: {value}",)
    elif depth < 6 and isinstance(values, list | tuple | set | frozenset):
        for value in values:
            yield from texts_in(value, depth + 1)


def _outside() -> int:
    """Return how many frames up the first caller outside this library is."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "ipfsmem",
        "contextlib",
    ):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level
