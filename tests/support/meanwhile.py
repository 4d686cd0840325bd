"""Simulates a write of another process between a read and a change of this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ipfsmem.memories.memories import MemoryStore


def meanwhile(monkeypatch: pytest.MonkeyPatch, what: str, do: Callable[[], object]) -> None:
    """Call `do` just before the next change of this kind (`write`, `forget`) begins."""
    begin = MemoryStore.changing

    def after(self: MemoryStore, kind: str, *more: Any) -> Any:
        if kind == what:
            monkeypatch.setattr(MemoryStore, "changing", begin)
            do()
        return begin(self, kind, *more)

    monkeypatch.setattr(MemoryStore, "changing", after)
