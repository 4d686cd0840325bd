"""Long-running processes and commands in one vault, in random steps: see `bench.soak_handles`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.counterparts import required
from tests.support import effort

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, which only Linux has")
def test_acknowledged_writes_next_to_running_process_are_kept() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak", "handles", "--count", "48" if effort.THOROUGH else "6"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert " 0 failed" in done.stdout
    if required():
        assert "skipped:" not in done.stdout
