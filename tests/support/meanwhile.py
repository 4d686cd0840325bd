"""What another process writes between what one read and its own change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ipfsmem.memories.memories import Memories


def meanwhile(monkeypatch: pytest.MonkeyPatch, what: str, do: Callable[[], object]) -> None:
    """Do something just before the next change of this kind (`write`, `forget`) begins."""
    begin = Memories.changing

    def after(self: Memories, kind: str, *more: Any) -> Any:
        if kind == what:
            monkeypatch.setattr(Memories, "changing", begin)
            do()
        return begin(self, kind, *more)

    monkeypatch.setattr(Memories, "changing", after)
