"""Regular expressions that are compiled on first use.

A short command loads a hundred and uses a few; compiling all of them took a tenth of its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, Generic, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


class _Lazy(Generic[AnyStr]):
    def __init__(self, pattern: AnyStr | Callable[[], AnyStr], flags: int) -> None:
        self._pattern: AnyStr | Callable[[], AnyStr] = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        text = self._pattern() if callable(self._pattern) else self._pattern
        pattern = re.compile(text, self._flags)
        # From now on the methods of the compiled pattern are attributes of this object.
        vars(self).update({method: getattr(pattern, method) for method in _METHODS})
        return getattr(pattern, name)


def lazy_pattern(pattern: AnyStr | Callable[[], AnyStr], flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an object with the methods of a compiled pattern; the first use raises re.error for an invalid one.

    `pattern`: the expression, or a function that returns it.
    """
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
