"""Refuses to open SQLite files in the package with `open`: closing such a descriptor drops the locks of
the whole process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ipfsmem.device import database_file

_ROOT = Path(__file__).parents[2]
_TESTS = str(_ROOT / "tests")
_OURS = (str(_ROOT / "ipfsmem"), str(_ROOT / "providers"))
_MAKER = database_file.find_or_make.__code__


def refuse() -> None:
    """From now on `open` of a SQLite file raises AssertionError in the package; tests may open any file."""
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open":
        return
    path = arguments[0]
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, str) or os.path.basename(path) not in database_file.DATABASE_FILES:
        return
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if frame.f_code is _MAKER or file.startswith(_TESTS):
            return
        if file.startswith(_OURS):
            raise AssertionError(f"{file}:{frame.f_lineno} opens {path}: closing it drops SQLite's locks")
        frame = frame.f_back
