"""A client of the MCP SDK 1.x, which only knows the protocol with a handshake, uses `ipfsmem serve mcp`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ipfsmem.bundle.fence import NOTICE
from ipfsmem.errors import LockedError
from ipfsmem.memory import Memory
from ipfsmem.tools import EVERYDAY
from tests.interop.counterparts import cached_where_asked, missing, run
from tests.support.extras import need_extra
from tests.support.mcp_lab import surroundings

pytestmark = pytest.mark.interop
CLIENT = Path(__file__).parent / "old_mcp" / "client.py"
#: The last release of 1.x as of 2026-11-23.
PACKAGE = "mcp==1.30.0"


def packages() -> Path:
    """A folder with that SDK and its dependencies."""

    def install(target: Path) -> None:
        run([sys.executable, "-m", "pip", "install", "-q", "--no-cache-dir", "--target", target, PACKAGE])

    try:
        return cached_where_asked("old_mcp", PACKAGE.partition("==")[2], install)
    except (AssertionError, OSError, LockedError, subprocess.TimeoutExpired) as error:
        missing(f"the old SDK could not be installed: {error}")


def test_old_mcp_client_reads_writes_and_receives_notifications(tmp_path: Path) -> None:
    need_extra("mcp", "mcp_types")
    folder = packages()
    with Memory.create("default", "local", home=tmp_path / "ipfsmem"):
        pass
    done = subprocess.run(
        [sys.executable, "-S", CLIENT, sys.executable, "-m", "ipfsmem.cli", "serve", "mcp", "--structured"],
        input=json.dumps(surroundings(tmp_path)),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert told["version"] == "2025-11-25" and tuple(told["tools"]) == EVERYDAY
    assert told["refused"] and NOTICE in told["text"] and "> by an old client" in told["read"]
    assert told["resources"] == ["memory:///", "memory:///made"] and told["prompts"] == ["memory", "save"]
    assert told["event"] == ["notifications/resources/updated", "memory:///made"]
    with Memory.load(home=tmp_path / "ipfsmem") as memory:
        assert memory.read("made").file.body == "again"  # type: ignore[union-attr]
