"""Patterns that are compiled when they are first used. A short command loads a hundred and uses a few; compiling them all took a tenth
of its time.
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
        made = re.compile(text, self._flags)
        # The methods of the compiled one are found as attributes from now on.
        vars(self).update({method: getattr(made, method) for method in _METHODS})
        return getattr(made, name)


def lazy_pattern(pattern: AnyStr | Callable[[], AnyStr], flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, as far as its methods go; one that is wrong is said by its first use. `pattern`: the text of it, or what
    makes that."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
