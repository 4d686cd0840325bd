"""Homes that earlier versions left are opened, read as on that day, written to and synced."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ipfsmem.memory import Memory
from tests.support.home_fixture import FIXTURES, KINDS, shown, unpack
from tests.support.operation_world import NAME


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [path.name for path in sorted(FIXTURES.iterdir())])
def test_kept_home_opens_and_shows_what_it_showed(name: str, kind: str, tmp_path: Path) -> None:
    home = unpack(name, kind, tmp_path)
    expected = json.loads((FIXTURES / name / "shown.json").read_text("utf-8"))[kind]
    with Memory.load(NAME, home=home) as memory:
        assert json.loads(json.dumps(shown(memory))) == expected
        assert memory.operations.list()
        memory.write("later", "Written by a later version.")
        if kind == "sealed":
            report = asyncio.run(memory.sync())
            assert report.published
        assert not [one for one in memory.check() if one.level == "error"]
