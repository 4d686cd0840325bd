"""Fixtures of the tests of linked folders: each test runs with a plain and a sealed vault."""

from __future__ import annotations

import pytest

from ipfsmem.mode import ModeName
from tests.support.files_lab import MODES


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> ModeName:
    """A plain and a sealed vault."""
    found: ModeName = request.param
    return found
