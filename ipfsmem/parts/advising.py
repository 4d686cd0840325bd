"""Says what could be better about what was just written: what looks like a secret, and habits by which a memory is hard to find.

It is advice, and nothing is refused. Each interface that collects it tells it in its own way (`noting.collecting`); in Python it is a warning of
the class `WritingAdvice`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ipfsmem.bundle.habits import secret_in, shortcomings
from ipfsmem.memories.readings import Reading

#: Characters of the texts of one call that are looked through.
_MOST: Final = 1_000_000


class WritingAdvice(UserWarning):
    """What could be better about a text that was written."""


def advise(collected: list[str] | None, method: str, result: Any, given: Iterable[Any]) -> None:
    """Say what could be better about a call that wrote something, where it is collected, else as a warning."""
    if method == "write" and isinstance(result, Reading):
        said = shortcomings(result.key, result.readable) if result.own else []
    else:
        said = secret_in("\n".join(texts_in(given))[:_MOST])
    if collected is not None:
        collected += [one for one in said if one not in collected]
    elif said:
        warnings.warn(" ".join(said), WritingAdvice, stacklevel=_outside())


def texts_in(values: Any, depth: int = 0) -> Iterator[str]:
    """The texts among some values, each with the name under which it stands."""
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
    """How many calls above is the first one of a program that uses the library."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "ipfsmem",
        "contextlib",
    ):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level
