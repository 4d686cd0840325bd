"""Imports packages of extras for tests: skipped where a package is missing, failed where counterparts are
required."""

from __future__ import annotations

import importlib
from types import ModuleType

from tests.interop.counterparts import missing


def need_extra(name: str, module: str) -> ModuleType:
    """Return a module of an extra. Without it the test is skipped, or fails with
    IPFSMEM_REQUIRE_COUNTERPARTS=1."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"the extra {name} is not installed: {error}")
