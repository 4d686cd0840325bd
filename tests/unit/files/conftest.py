"""What the tests of working copies share: each holds beside a plain memory and beside a sealed one."""

from __future__ import annotations

import pytest

from ipfsmem.mode import ModeName
from tests.support.files_lab import MODES


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> ModeName:
    """A plain memory and a sealed one."""
    found: ModeName = request.param
    return found
