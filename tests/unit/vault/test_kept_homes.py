"""Homes of earlier versions are opened, read as before, written to and synced."""

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
def test_home_of_an_earlier_version_shows_the_same_contents(name: str, kind: str, tmp_path: Path) -> None:
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
